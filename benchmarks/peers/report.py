"""What the comparison found, as Markdown: the whole table, the README's short one, and bars. Pure."""

from __future__ import annotations

import dataclasses
from typing import Any

from benchmarks import machine
from benchmarks.page import Bar, number

OURS = "arion-tds"


@dataclasses.dataclass(frozen=True)
class Measure:
    """A row: where its value stands in a gateway's results, and whether more is better."""

    words: str
    path: tuple[str, ...]
    unit: str
    more_is_better: bool | None = False
    """None: neither."""

    def of(self, gateway: dict[str, Any]) -> float | str | None:
        """The value, the reason why there is none, or None where it was not asked for."""
        found: Any = gateway
        for key in self.path:
            if not isinstance(found, dict):
                return None
            if "failed" in found:
                return str(found["failed"])
            found = found.get(key)
        if isinstance(found, dict):
            return str(found.get("failed", ""))
        return found if isinstance(found, int | float) else None

    def ratio(self, ours: object, theirs: object) -> float | None:
        """How many times better ours is; below 1 theirs is."""
        if not isinstance(ours, int | float) or not isinstance(theirs, int | float) or not ours or not theirs:
            return None
        if self.more_is_better is None:
            return None
        return ours / theirs if self.more_is_better else theirs / ours


def _calls(kind: str, words: str) -> list[Measure]:
    rows = []
    for concurrent in (1, 16, 64):
        path = (f"{kind} 1", f"calls {concurrent}")
        rows += [
            Measure(f"{words}, {concurrent} at once: CPU per call", (*path, "cpu_ms_per_call"), "ms"),
            Measure(f"{words}, {concurrent} at once: calls per second", (*path, "calls_per_second"), "/s", True),  # noqa: FBT003
        ]
    busy = (f"{kind} 1", "calls 16")
    return [
        *rows,
        Measure(f"{words}, 16 at once: cores that the gateway used", (*busy, "gateway_busy"), "", None),
        Measure(f"{words}, 16 at once: cores of client and service", (*busy, "client_and_service_busy"), "", None),
    ]


MEASURES = (
    *_calls("rest", "REST tool"),
    *_calls("mcp", "MCP tool"),
    *(
        Measure(f"{size:,} {words}: {what}", (f"{kind} {size}", *path), unit)
        for kind, words in (("rest", "REST tools"), ("mcp", "tools of an MCP server"))
        for size in (1_000, 10_000)
        for what, path, unit in (
            ("CPU of the whole list", ("list", "cpu_ms"), "ms"),
            ("time of the whole list", ("list", "p50_ms"), "ms"),
            ("memory", ("rss_mb",), "MB"),
            ("start to first list", ("start_s",), "s"),
        )
    ),
    Measure("one REST tool: start to first list", ("rest 1", "start_s"), "s"),
    Measure("one REST tool: CPU of that", ("rest 1", "start_cpu_s"), "s"),
    Measure("one REST tool: memory", ("rest 1", "rss_mb"), "MB"),
    Measure("one MCP server: start to first list", ("mcp 1", "start_s"), "s"),
    Measure("one MCP server: CPU of that", ("mcp 1", "start_cpu_s"), "s"),
    Measure("one MCP server: memory", ("mcp 1", "rss_mb"), "MB"),
)

SHORT = (
    Measure("REST call, CPU", ("rest 1", "calls 16", "cpu_ms_per_call"), "ms"),
    Measure("REST calls per second, 16 at once", ("rest 1", "calls 16", "calls_per_second"), "", True),  # noqa: FBT003
    Measure("MCP call, CPU", ("mcp 1", "calls 16", "cpu_ms_per_call"), "ms"),
    Measure("MCP calls per second, 16 at once", ("mcp 1", "calls 16", "calls_per_second"), "", True),  # noqa: FBT003
    Measure("1,000 tools of an MCP server listed, CPU", ("mcp 1000", "list", "cpu_ms"), "ms"),
    Measure("start to first list", ("rest 1", "start_s"), "s"),
    Measure("memory with one tool", ("rest 1", "rss_mb"), "MB"),
    Measure("memory with 10,000 tools of an MCP server", ("mcp 10000", "rss_mb"), "MB"),
)


def table(results: dict[str, Any]) -> str:
    """Every measure, with the ratio in brackets; reasons in notes below."""
    gateways = results["gateways"]
    notes: list[str] = []
    heads = [f"{name} {one['version']}" for name, one in gateways.items()]
    lines = [f"| | {' | '.join(heads)} |", "|---" + "|---:" * len(heads) + "|"]
    for measure in MEASURES:
        cells = [_cell(measure, name, gateways, notes) for name in gateways]
        lines.append(f"| {measure.words} | {' | '.join(cells)} |")
    quick = " **A smoke, no figures.**" if results["quick"] else ""
    pinned = "pinned" if results["pinned"] else "not pinned: one core"
    told = (
        f"{machine.sentence(results['machine'])} Load before: {results['load']}; {pinned}; took {results['seconds']} s."
    )
    words = "In brackets: how many times better ours is (below 1: theirs is)."
    numbered = [f"{at}. {note}" for at, note in enumerate(notes, 1)]
    return "\n".join([told + quick, "", words, "", *lines, "", *numbered]).rstrip() + "\n"


def short(results: dict[str, Any]) -> str:
    """The README's table."""
    gateways = results["gateways"]
    lines = [f"| | {' | '.join(gateways)} |", "|---" + "|---:" * len(gateways) + "|"]
    for measure in SHORT:
        cells = [_cell(measure, name, gateways, None) for name in gateways]
        lines.append(f"| {measure.words} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(measure: Measure, name: str, gateways: dict[str, Any], notes: list[str] | None) -> str:
    value = measure.of(gateways[name])
    if isinstance(value, str):
        if notes is None:
            return "–"
        note = f"{name}: {value}".replace("\n", " ")
        if note not in notes:
            notes.append(note)
        return f"– ({notes.index(note) + 1})"
    if value is None:
        return "–"
    ours = measure.of(gateways[OURS]) if OURS in gateways and name != OURS else None
    ratio = measure.ratio(ours, value)
    shown = f"{number(value)} {measure.unit}".strip()
    return shown if ratio is None else f"{shown} (×{number(ratio)})"


def bars(results: dict[str, Any]) -> list[Bar]:
    """CPU per call at 16 concurrent."""
    found: list[Bar] = []
    for kind in ("rest", "mcp"):
        measure = Measure("", (f"{kind} 1", "calls 16", "cpu_ms_per_call"), "ms")
        for name, one in results["gateways"].items():
            value = measure.of(one)
            if isinstance(value, int | float) and value > 0:
                found.append((f"{kind.upper()} tool, {name} {one['version']}", float(value)))
    return found
