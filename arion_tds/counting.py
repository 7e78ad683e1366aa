"""What a catalog costs a model's context, in tokens: by tool, namespace and scope, counted when nothing else happens.

In: publications of one scope. Out: counts. Kept by catalog, run by app, shown by admin, search and metrics.

Nothing is counted before an operator asks or a gateway discloses its tools step by step, nor while publications follow
each other: a count is worth no ingest time.
Until a tool has been counted its size is estimated, so every answer is complete at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from arion_tds.search import tokens
from arion_tds.view import Entry, Published, View

_log = logging.getLogger("arion_tds.counting")

QUIET: Final = 0.5
"""Seconds without a publication before counting goes on."""

PATIENCE: Final = 20
"""Times that counting lets publications go first, at most."""

SLICE: Final = 100
"""Tools counted at once, in a thread."""


class TokenCounts:
    """The counts of one scope. All state is the event loop's; `Entry.tokens` is written here and nowhere else."""

    def __init__(self, published: Published, *, quiet: float = QUIET) -> None:
        """Follows `published` from now on; `run` does the counting."""
        self._published = published
        self._quiet = quiet
        self._sums: dict[str, int] = {}  # by namespace, of what is counted and of the estimates of the rest
        self._total = 0
        self._waiting: dict[str, None] = {}  # published names
        self._asked = asyncio.Event()
        self._changed = asyncio.Event()
        self._loaded = False
        published.listen(self._published_anew)

    @property
    def pending(self) -> int:
        """Tools whose count is still an estimate."""
        return len(self._waiting)

    @property
    def exact(self) -> bool:
        """Whether what is counted is exact: false without the extra `tokens`, and before the first count."""
        return self._loaded and tokens.exact()

    def want(self) -> None:
        """Somebody will want to know: start counting."""
        self._asked.set()

    def of(self, entry: Entry) -> int:
        """Tokens of one tool, of this moment's best knowledge."""
        if entry.tokens >= 0:
            return entry.tokens
        if self._loaded:
            return tokens.count([tokens.text(entry.tool)])[0]
        return _estimate(entry)

    @property
    def total(self) -> int:
        """Tokens of all tools, those not counted yet by estimate."""
        self.want()
        return self._total

    def by_namespace(self) -> Mapping[str, int]:
        """Tokens of the tools of each namespace, those not counted yet by estimate."""
        self.want()
        return dict(self._sums)

    async def run(self) -> None:
        """Count what comes, until cancelled."""
        await self._asked.wait()
        try:
            await self._follow()
        except Exception:  # noqa: BLE001 - top of a task: counts are no reason to end a gateway
            _log.exception("tokens are not counted any more: what is shown from now on is estimated")

    async def _follow(self) -> None:
        await asyncio.to_thread(tokens.load)
        self._loaded = True
        while True:
            await self._changed.wait()
            await self._until_quiet()
            self._changed.clear()
            while self._waiting:
                await self._count()

    async def _until_quiet(self) -> None:
        for _ in range(PATIENCE):
            seen = self._published.view.revision
            await asyncio.sleep(self._quiet)
            if seen == self._published.view.revision:
                return

    async def _count(self) -> None:
        tools = self._published.view.tools
        chosen = [tools[name] for name, _ in zip(self._waiting, range(SLICE), strict=False)]
        texts = [tokens.text(entry.tool) for entry in chosen]
        counts = await asyncio.to_thread(tokens.count, texts)
        tools = self._published.view.tools  # another one, perhaps
        for entry, found in zip(chosen, counts, strict=True):
            if tools.get(entry.published) is entry:
                del self._waiting[entry.published]
                self._add(entry, found - _estimate(entry))
                entry.tokens = found

    def _published_anew(self, old: View, new: View) -> None:
        for name in new.touched:
            before = old.tools.get(name)
            if before is not None:
                self._add(before, -(before.tokens if before.tokens >= 0 else _estimate(before)))
                before.tokens = -1
            after = new.tools.get(name)
            if after is not None:
                self._add(after, _estimate(after))
                self._waiting[name] = None
            else:
                self._waiting.pop(name, None)
        if self._waiting:
            self._changed.set()

    def _add(self, entry: Entry, tokens: int) -> None:
        space = entry.tool.namespace
        self._total += tokens
        left = self._sums.get(space, 0) + tokens
        if left:
            self._sums[space] = left
        else:
            del self._sums[space]  # each of its tools had some


def _estimate(entry: Entry) -> int:
    tool = entry.tool
    return tokens.estimate(
        len(tool.namespace) + len(tool.name) + len(tool.description) + len(tool.input_schema.text) + 3
    )
