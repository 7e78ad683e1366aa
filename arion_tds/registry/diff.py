"""What a reduction changed in the end, for those who publish it: a tool that went and came back equal is no change."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from arion_tds.model.tool import Tool


@dataclasses.dataclass(frozen=True, slots=True)
class Diff:
    """`replaced` pairs are (old, new), of one qualified name, and differ. In order of first touch."""

    added: tuple[Tool, ...] = ()
    removed: tuple[Tool, ...] = ()
    replaced: tuple[tuple[Tool, Tool], ...] = ()
    toolkits_changed: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.replaced or self.toolkits_changed)


def diff(pairs: Iterable[tuple[Tool | None, Tool | None]], *, toolkits_changed: bool) -> Diff:
    """From (before, after) of every qualified name that was touched. None: not there; the same object: no change."""
    added: list[Tool] = []
    removed: list[Tool] = []
    replaced: list[tuple[Tool, Tool]] = []
    for before, after in pairs:
        if before is after:
            continue
        if before is None:
            if after is not None:
                added.append(after)
        elif after is None:
            removed.append(before)
        else:
            replaced.append((before, after))
    return Diff(tuple(added), tuple(removed), tuple(replaced), toolkits_changed)
