"""Session ids of the handshake revisions: signed, self-contained, so that nothing has to be remembered. No I/O.

In: a key, a clock (seconds since the epoch) and a source of randomness. Out: ids to hand out, and for an id that comes
back whether it is ours, unexpired and not ended. Any worker or replica with the same key accepts it. What is kept, both
bounded: ids that were ended by DELETE in this process, and ids whose signature was good. An id that is not good is
answered with 404, which makes clients initialize again. Called by front.

An id is base64url of: format (1 byte), revision (1), issued (4, seconds), random (16), HMAC-SHA256 cut to 20: 42 bytes,
so no padding. The subject that the id is bound to is signed but not in it.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hmac
import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from arion_tds.server.eras import LEGACY_REVISIONS

MIN_KEY: Final = 16
"""Bytes that a key must have at least."""

_FORMAT: Final = 1
_HEAD: Final = struct.Struct(">BBI16s")
_MAC: Final = 20
_LENGTH: Final = (_HEAD.size + _MAC) * 4 // 3


@dataclasses.dataclass(frozen=True, slots=True)
class Session:
    """A good session id: the revision that was negotiated, and the seconds that are left of it."""

    id: str
    revision: str
    remaining: float


class Sessions:
    """Issues, checks and ends session ids. Owned by the app; used by fronts of the same event loop."""

    def __init__(
        self,
        key: bytes,
        *,
        clock: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        lifetime: float = 24 * 3600.0,
        max_ended: int = 10_000,
        max_known: int = 4096,
    ) -> None:
        """`lifetime` in seconds from issue. ValueError for a short key.

        `max_ended`: ids remembered after DELETE. `max_known`: ids whose signature need not be checked again.
        """
        if len(key) < MIN_KEY:
            msg = f"a session key of {len(key)} bytes is too short: use at least {MIN_KEY} random bytes"
            raise ValueError(msg)
        self._key = key
        self._clock = clock
        self._random = random_bytes
        self._lifetime = lifetime
        self._max_ended = max_ended
        self._ended: OrderedDict[bytes, None] = OrderedDict()
        self._max_known = max_known
        self._known: dict[tuple[str, str | None], bytes] = {}  # a client sends its id with every request
        self.issued = 0

    def issue(self, revision: str, subject: str | None = None) -> str:
        """A new id for a client of that (handshake) revision."""
        self.issued += 1
        head = _HEAD.pack(_FORMAT, LEGACY_REVISIONS.index(revision), int(self._clock()), self._random(16))
        return base64.urlsafe_b64encode(head + self._sign(head, subject)).decode()

    def check(self, identity: str, subject: str | None = None) -> Session | None:
        """The session, or None if the id is not ours, not this subject's, expired or ended."""
        head = self._known.get((identity, subject)) or self._open(identity, subject)
        if head is None or head in self._ended:
            return None
        _, revision, issued, _ = _HEAD.unpack(head)
        remaining = issued + self._lifetime - self._clock()
        return Session(identity, LEGACY_REVISIONS[revision], remaining) if remaining > 0 else None

    def end(self, identity: str, subject: str | None = None) -> bool:
        """Make the id bad from now on. False if it was not good."""
        head = self._open(identity, subject)
        if head is None or self.check(identity, subject) is None:
            return False
        self._ended[head] = None
        if len(self._ended) > self._max_ended:
            self._ended.popitem(last=False)
        return True

    def _open(self, identity: str, subject: str | None) -> bytes | None:
        if len(identity) != _LENGTH or not identity.isascii():
            return None
        try:
            raw = base64.b64decode(identity, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        head = raw[: _HEAD.size]
        if not hmac.compare_digest(raw[_HEAD.size :], self._sign(head, subject)) or head[0] != _FORMAT:
            return None
        if len(self._known) >= self._max_known:
            del self._known[next(iter(self._known))]
        self._known[identity, subject] = head
        return head

    def _sign(self, head: bytes, subject: str | None) -> bytes:
        bound = head if subject is None else head + b"\0" + subject.encode()
        return hmac.digest(self._key, bound, "sha256")[:_MAC]
