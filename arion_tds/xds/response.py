"""One response, checked as it is read: faults that void the whole of it, resources that are refused, what concerns us.

In: the response's entries, one call each (so that the driver can read a long one in slices). Out: a `Checked`. Called
by xds.stream (entries) and xds.session (the end).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Final

from arion_tds.model.delivery import Delivered, Delivery, Kind, ResourceId
from arion_tds.model.problem import Problem
from arion_tds.xds import ids
from arion_tds.xds.held import Held

_GONE_CODES: Final = frozenset({5, 7})
"""NOT_FOUND, PERMISSION_DENIED: the resource may be dropped; every other code keeps what is in use (cncf/xds TP3)."""

MAX_REASON: Final = 16 * 1024
"""Bytes of a NACK's error_detail: it travels in a request, and servers log it."""

_MAX_PROBLEM: Final = 2000
"""Characters of one resource's part in it."""


@dataclasses.dataclass(frozen=True, slots=True)
class ServerError:
    """An entry of `resource_errors`: what the server says about a resource that it cannot give. `code` is gRPC's."""

    name: str
    code: int
    message: str
    dropped: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Checked:
    """What a response comes to. `fault` non-empty: it is void as a whole. `names` and `gone` are the IDs as text."""

    delivery: Delivery
    names: tuple[str, ...]
    gone: tuple[str, ...]
    problems: tuple[Problem, ...]
    errors: tuple[ServerError, ...]
    fault: str
    entries: int


class Intake:
    """Reads one response of a type that was asked for. Owned by the reader of the stream."""

    __slots__ = (
        "_entries",
        "_errors",
        "_fault",
        "_gone",
        "_held",
        "_names",
        "_problems",
        "_scopes",
        "_seen",
        "_updates",
        "generation",
        "kind",
        "nonce",
    )

    def __init__(self, kind: Kind, nonce: str, scopes: Collection[str], held: Held, generation: int) -> None:
        """`scopes` are those consumed when the response came, `generation` numbers them."""
        self.kind = kind
        self.nonce = nonce
        self.generation = generation
        self._scopes = scopes
        self._held = held
        self._seen: set[str] = set()
        self._updates: list[Delivered] = []
        self._names: list[str] = []
        self._gone: dict[str, ResourceId] = {}
        self._problems: list[Problem] = []
        self._errors: list[tuple[str, int, str]] = []
        self._fault = ""
        self._entries = 0

    def update(self, name: str, version: str, type_url: str | None, payload: bytes) -> None:
        """An entry of `resources`. `type_url` None: it has no `resource`, as a TTL heartbeat."""
        self._entries += 1
        if not name:
            self._void(f"the resource at position {self._entries} has no name")
            return
        if name in self._seen:
            self._void(f"resource {name!r} is named twice")
            return
        self._seen.add(name)
        if type_url is not None and type_url != self.kind.value:
            self._void(f"resource {name!r} is of type {type_url!r} in a response of type {self.kind.value!r}")
            return
        parsed = ids.read(self.kind, name)
        if isinstance(parsed, str):
            self._problems.append(Problem(name, parsed))
        elif parsed.scope in self._scopes:
            if type_url is not None:
                self._updates.append(Delivered(parsed, version, payload))
                self._names.append(name)
            elif not self._held.alive(parsed, version):
                self._void(f"resource {name!r} has no content, and version {version!r} is not the one in use")

    def remove(self, name: str) -> None:
        """An entry of `removed_resources`; to be called after every `update`."""
        self._entries += 1
        if not name:
            self._void("a removed resource has no name")
            return
        if name in self._seen:
            self._void(f"resource {name!r} is named twice, as removed")
            return
        self._seen.add(name)
        if name == ids.WILDCARD:
            return
        scope = ids.scope_of_glob(name) if self.kind.scoped else None
        if scope is not None:
            self._empty(scope)
            return
        parsed = ids.read(self.kind, name)
        if isinstance(parsed, str):
            self._problems.append(Problem(name, parsed))
        elif parsed.scope in self._scopes:
            self._gone[name] = parsed

    def error(self, name: str, code: int, message: str) -> None:
        """An entry of `resource_errors`; to be called after every `update` and `remove`."""
        self._entries += 1
        self._errors.append((name, code, message))

    def checked(self) -> Checked:
        """The end of the response."""
        if self._fault:
            nothing = Delivery(self.kind, (), ())
            return Checked(nothing, (), (), (), (), self._fault, self._entries)
        errors = tuple(self._judge(*error) for error in self._errors)
        delivery = Delivery(self.kind, tuple(self._updates), tuple(self._gone.values()))
        return Checked(
            delivery, tuple(self._names), tuple(self._gone), tuple(self._problems), errors, "", self._entries
        )

    def _void(self, why: str) -> None:
        if not self._fault:
            self._fault = why

    def _empty(self, scope: str) -> None:
        """The server says that nothing of the scope exists: whatever we hold of it is gone."""
        if scope in self._scopes:
            for name in self._held.names(scope):
                parsed = ids.parse(name)
                if isinstance(parsed, ResourceId) and name not in self._seen:
                    self._gone.setdefault(name, parsed)

    def _judge(self, name: str, code: int, message: str) -> ServerError:
        drop = code in _GONE_CODES
        if drop and name not in self._seen:
            scope = ids.scope_of_glob(name) if self.kind.scoped else None
            parsed = ids.read(self.kind, name)
            if scope is not None:
                self._empty(scope)
            elif isinstance(parsed, ResourceId) and parsed.scope in self._scopes and self._held.has(parsed):
                self._gone.setdefault(name, parsed)
        return ServerError(name, code, message, drop)


def reason(problems: tuple[Problem, ...], entries: int) -> str:
    """The NACK's text: every refused resource and why, as far as `MAX_REASON` bytes reach."""
    head = f"{len(problems)} of {entries} resources rejected: "
    parts: list[str] = []
    # Room for the longest "… and N more" is set aside, so that the cut never needs a second pass.
    room = MAX_REASON - len(head.encode()) - 32
    for done, problem in enumerate(problems):
        text = str(problem)
        if len(text) > _MAX_PROBLEM:
            text = text[: _MAX_PROBLEM - 1] + "…"
        room -= len(text.encode(errors="replace")) + 2
        if room < 0:
            return f"{head}{'; '.join(parts)}; … and {len(problems) - done} more"
        parts.append(text)
    return head + "; ".join(parts)
