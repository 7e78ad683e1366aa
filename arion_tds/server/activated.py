"""Which tools a handshake session has found: they are listed for it from then on (progressive disclosure). No I/O.

In: session ids (good ones) and what was found in them; publications. Out: published names by session, and word that a
session's list changed. Called by disclosure (`add`), methods (`of`) and front (`end`, `learn`, `listen`). What is kept
is in the memory of this process, which tells other workers what it finds, and bounded; losing it costs a client no more
than another search. In 2026-07-28 lists never differ between connections, so nothing is kept there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from arion_tds.view import Published, View


def _unheard(session: str) -> None:
    del session


def _unshared(session: str, names: tuple[str, ...]) -> None:
    del session, names


class Activated:
    """Sessions with the tools that each has found, the least recently used first to go. One per listener."""

    def __init__(self, published: Published, *, max_sessions: int = 10_000, max_tools: int = 64) -> None:
        """`max_tools` of each session: what was found longest ago makes room."""
        self._max_sessions = max_sessions
        self._max_tools = max_tools
        self._sessions: OrderedDict[str, dict[str, None]] = OrderedDict()
        self._holders: dict[str, set[str]] = {}  # by published name: the sessions that have found it
        self._told: Callable[[str], None] = _unheard
        self._found: Callable[[str, tuple[str, ...]], None] = _unshared
        self._stop = published.listen(self._published_anew)

    def __len__(self) -> int:
        return len(self._sessions)

    def listen(self, told: Callable[[str], None], found: Callable[[str, tuple[str, ...]], None] = _unshared) -> None:
        """Call `told(session)` whenever the session's list is another than before, `found` after every `add`."""
        self._told = told
        self._found = found

    def add(self, session: str, names: Iterable[str]) -> None:
        """The session has found these tools, by published name, the best first."""
        best = tuple(names)[: self._max_tools]
        self._found(session, best)
        self.learn(session, best)

    def learn(self, session: str, names: Iterable[str]) -> None:
        """Like `add`, of what another process has found."""
        known = self._sessions.get(session)
        if known is None:
            known = self._sessions[session] = {}
            if len(self._sessions) > self._max_sessions:
                self.end(next(iter(self._sessions)))
        self._sessions.move_to_end(session)
        new = False
        for name in reversed(list(names)[: self._max_tools]):
            new = new or name not in known
            known.pop(name, None)
            known[name] = None  # found again: as good as new
            self._holders.setdefault(name, set()).add(session)
        while len(known) > self._max_tools:
            self._release(next(iter(known)), session)
            del known[next(iter(known))]
        if new:
            self._told(session)

    def of(self, session: str | None) -> Sequence[str]:
        """What the session has found, in the order of names. Some of it may not exist any more."""
        known = None if session is None else self._sessions.get(session)
        if session is None or known is None:
            return ()
        self._sessions.move_to_end(session)
        return sorted(known)

    def end(self, session: str) -> None:
        """The session is over."""
        for name in self._sessions.pop(session, ()):
            self._release(name, session)

    def close(self) -> None:
        """Follow publications no longer."""
        self._stop()

    def _release(self, name: str, session: str) -> None:
        holders = self._holders[name]
        holders.discard(session)
        if not holders:
            del self._holders[name]

    def _published_anew(self, old: View, new: View) -> None:
        if not self._holders:
            return
        told: set[str] = set()
        for name in new.touched:
            holders = self._holders.get(name)
            if holders is None:
                continue
            before, after = old.tools.get(name), new.tools.get(name)
            if before is None or after is None or not before.same(after):
                told |= holders
        for session in told:
            self._told(session)
