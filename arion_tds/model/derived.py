"""The tools of a source or server once it was expanded or asked: between the workers, ingest and freshness."""

from __future__ import annotations

import dataclasses

from arion_tds.model.tool import Tool


@dataclasses.dataclass(frozen=True, slots=True)
class Derived:
    """The tools, or why there are none. `left_out` says which parts are not served (as they were meant), and why.

    `remembered`: the server was not asked; it is what it listed in an earlier life of the gateway.
    """

    tools: tuple[Tool, ...] = ()
    problem: str | None = None
    left_out: tuple[str, ...] = ()
    remembered: bool = False
