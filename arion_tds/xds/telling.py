"""What the client says: log lines, each distinct problem once in a while, and events for whoever observes.

In: what happened. Out: lines of the logger `arion_tds.xds`. Called by xds.stream and xds.handling.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from arion_tds.model.delivery import Kind
from arion_tds.xds.response import ServerError
from arion_tds.xds.status import Observer, Said

_log = logging.getLogger("arion_tds.xds")

_LOGGED: Final = 2000
"""Characters of a NACK that are logged; the status has all of it."""


class Teller:
    """Owned by the client."""

    def __init__(self, clock: Callable[[], float], observer: Observer) -> None:
        """`clock` gives seconds."""
        self.observer = observer
        self._clock = clock
        self._said = Said()

    def answered(self, kind: Kind, error: str) -> None:
        """An ACK (no error) or a NACK is on the wire."""
        self.observer.answered(kind, accepted=not error)
        if error:
            text = error if len(error) <= _LOGGED else error[:_LOGGED] + "…"
            self._warn(("nack", kind, error), "NACK %s: %s", kind.short, text)

    def dropped(self, type_url: str) -> None:
        """A response of a type that was not asked for."""
        self.observer.dropped(type_url)
        self._warn(("dropped", type_url), "a response was dropped: its type %r was not asked for", type_url)

    def errors(self, kind: Kind, errors: Iterable[ServerError]) -> None:
        """Resources that the control plane cannot give."""
        for error in errors:
            fate = "dropped here" if error.dropped else "what is in use stays"
            self._warn(
                ("error", kind, error),
                "%s %s cannot be had, %s: code %d, %s",
                kind.short,
                error.name,
                fate,
                error.code,
                error.message,
            )

    def ended(self, address: str, why: str, delay: float, *, ours: bool) -> None:
        """A stream is over; the next one begins in `delay` seconds."""
        if ours:
            _log.info("%s", why)
            return
        self._warn(
            ("ended", why),
            "control plane %s: %s; what it sent stays served; next try in %.1f s",
            address,
            why,
            delay,
        )

    def broke(self, what: str, error: Exception) -> None:
        """A bug of ours; to be called while the exception is being handled."""
        if self._said.news(("broke", what, repr(error)), self._clock()):
            _log.exception("%s broke on an error of our own", what)

    def all_there(self) -> None:
        """Ready: every type's first content is served."""
        _log.info("first content of every type is in")

    def not_all(self, silent: Sequence[str], seconds: float) -> None:
        """Ready all the same: the time is up. `silent`: types without a settled response."""
        _log.warning(
            "ready without all of the first content after %g s (initial_fetch_timeout); no word on: %s",
            seconds,
            ", ".join(silent) or "none, but some is still being applied",
        )

    def _warn(self, key: tuple[object, ...], text: str, *values: object) -> None:
        if self._said.news(key, self._clock()):
            _log.warning(text, *values)
