"""Who asks, as far as a front needs to know, and how a front is told that somebody is refused.

Made by auth.access (JWT) or here (anonymous); read by server, view and calls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from arion_tds.model.context import nothing_granted
from arion_tds.model.rbac import Rbac


class Caller(Protocol):
    """One caller. The same object may serve many requests of the same token."""

    @property
    def subject(self) -> str | None:
        """Binds sessions: a session id works only for the subject that it was issued to. None: nobody in particular."""
        ...

    @property
    def lasts(self) -> float | None:
        """Seconds that the caller may still be taken for who they are. None: for ever."""
        ...

    def allows(self, rbac: Rbac | None) -> bool:
        """Whether the caller may use (and therefore see) a tool with this rbac."""
        ...

    def denied(self, guards: Sequence[Rbac]) -> int:
        """Which of these the caller may not use: bit n for guards[n]. Equal answers mean equal lists."""
        ...


class Mask:
    """Remembers the last answer of `Caller.denied`: the guards of a View stay the same object while they can."""

    __slots__ = ("_allows", "_guards", "_mask")

    def __init__(self, allows: Callable[[Rbac | None], bool]) -> None:
        """`allows` judges one rbac, and never changes its mind."""
        self._allows = allows
        self._guards: Sequence[Rbac] | None = None
        self._mask = 0

    def __call__(self, guards: Sequence[Rbac]) -> int:
        """See `Caller.denied`."""
        if guards is not self._guards:
            mask = 0
            for position, rbac in enumerate(guards):
                if not self._allows(rbac):
                    mask |= 1 << position
            self._guards, self._mask = guards, mask
        return self._mask


class Anonymous:
    """A caller without a token: only tools that ask for nothing."""

    __slots__ = ("_mask",)

    subject: str | None = None
    lasts: float | None = None

    def __init__(self) -> None:
        self._mask = Mask(nothing_granted)

    def allows(self, rbac: Rbac | None) -> bool:
        """No token matches no permission: ALLOW lists hide the tool, DENY lists do not."""
        return nothing_granted(rbac)

    def denied(self, guards: Sequence[Rbac]) -> int:
        """See `Caller.denied`."""
        return self._mask(guards)


@dataclasses.dataclass(frozen=True, slots=True)
class Denial:
    """The caller is refused: HTTP status, a sentence, and headers such as WWW-Authenticate."""

    status: int
    message: str
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
