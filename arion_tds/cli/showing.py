"""What people see: tables and colour on a terminal, lines with tabs where output is piped, JSON where it was asked for.

In: cells and sentences, which may hold anything that somebody pushed. Out: standard output, without control characters.
`rich` is imported only where a terminal is looked at.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

Cell = str | tuple[str, str]
"""Text, or text and a style (`red`, `bold green`)."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")

STATES: Final = {
    "served": "green",
    "restricted": "yellow",
    "not_listed": "yellow",
    "older_version": "yellow",
    "pending": "yellow",
}
"""Styles of an explanation's states; the others are red."""


def on_terminal() -> bool:
    """Whether somebody looks at standard output."""
    return sys.stdout.isatty()


def clean(text: str) -> str:
    """Text that cannot steer a terminal."""
    return _CONTROL.sub(" ", text)


def as_json(value: object) -> None:
    """JSON for machines."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def line(*parts: Cell) -> None:
    """One line of text."""
    if not on_terminal():
        print("".join(clean(_text(part)) for part in parts))
        return
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False).print(Text.assemble(*((clean(_text(part)), _style(part)) for part in parts)))


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """A table with a head on a terminal; else a line per row, cells parted by tabs. The last column may wrap."""
    if not on_terminal():
        for row in rows:
            print("\t".join(clean(_text(cell)) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for at, column in enumerate(columns):
        made.add_column(column, no_wrap=at < len(columns) - 1, overflow="ellipsis")
    for row in rows:
        made.add_row(*(Text(clean(_text(cell)), _style(cell)) for cell in row))
    Console(highlight=False).print(made)


def ago(at: float | None, now: float | None = None) -> str:
    """How long ago that was (seconds since the epoch); "-" for never."""
    if at is None:
        return "-"
    seconds = max(0.0, (time.time() if now is None else now) - at)  # noqa: TID251 - what a person's clock says
    return span(seconds)


def span(seconds: float | None) -> str:
    """Seconds in one unit; "-" for none."""
    if seconds is None:
        return "-"
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{int(seconds / size)} {unit}"
    return f"{round(seconds)} s"


def counted(count: int, what: str) -> str:
    """A number and its noun."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def shortened(text: str, most: int = 100) -> str:
    """The first line of it, cut."""
    first = text.strip().split("\n", 1)[0]
    return first if len(first) <= most else first[: most - 1] + "…"


def state(of: dict[str, Any]) -> tuple[str, str]:
    """An explanation's state in its colour."""
    word = str(of.get("state", ""))
    return word.replace("_", " "), STATES.get(word, "red")


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]


def _style(cell: Cell) -> str:
    return "" if isinstance(cell, str) else cell[1]
