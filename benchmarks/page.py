"""Results as Markdown tables and as bar charts in SVG, and how they come into the docs. Pure but for `put`."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence
from html import escape
from typing import Any

from benchmarks import machine
from benchmarks.registry import BENCHMARKS

Bar = tuple[str, float]
"""A label and a value above zero."""
WIDTH, ROW, LETTER, MARGIN = 1000, 22, 6.5, 80


def table(results: dict[str, Any]) -> str:
    """What `make bench` found: a row per figure, with its bar where there is one."""
    lines = ["| what | figure | | bar | load before |", "|---|---|---:|---:|---:|"]
    declared = {one.title: one for one in BENCHMARKS}
    for run in results["runs"]:
        one = declared.get(run["title"])
        if one is None:
            continue
        words = f"{one.words} (`{one.title}`)"
        if "failed" in run:
            lines.append(f"| {words} | **failed**: {escape(run['failed'], quote=False).replace('|', '∣')} | | | |")
            continue
        load = f"{run['load']}"
        for figure in one.figures:
            bar = "" if figure.at_most is None else f"≤ {number(figure.at_most)}"
            bar = bar if figure.at_least is None else f"≥ {number(figure.at_least)}"
            value = figure.of(run["line"])
            shown = "–" if value is None else f"{number(value)} {figure.unit}".strip()
            lines.append(f"| {words} | {figure.words} | {shown} | {bar} | {load} |")
            words = load = ""
    took = sum(run["seconds"] for run in results["runs"])
    quick = " **A smoke at small sizes, no figures.**" if results["quick"] else ""
    return f"{machine.sentence(results['machine'])} Took {took:.0f} s.{quick}\n\n" + "\n".join(lines) + "\n"


def cpu_bars(results: dict[str, Any]) -> list[Bar]:
    """The figures that are CPU milliseconds."""
    declared = {one.title: one for one in BENCHMARKS}
    bars: list[Bar] = []
    for run in results["runs"]:
        one = declared.get(run["title"])
        for figure in one.figures if one and "line" in run else ():
            value = figure.of(run["line"])
            if figure.unit == "ms" and "CPU" in figure.words and isinstance(value, int | float) and value > 0:
                bars.append((f"{one.words}: {figure.words}", float(value)))
    return bars


def number(value: object) -> str:
    """Three digits that matter, thousands with commas."""
    if not isinstance(value, int | float):
        return str(value)
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits > 0 else f"{value:.0f}"


def chart(bars: Sequence[Bar], title: str) -> str:
    """Horizontal bars on a logarithmic axis, readable on light and dark."""
    low = math.floor(math.log10(min((value for _, value in bars), default=1)))
    high = math.ceil(math.log10(max((value for _, value in bars), default=10)))
    left = round(LETTER * max((len(label) for label, _ in bars), default=1)) + 16
    span = (WIDTH - left - MARGIN) / max(1, high - low)
    height = (len(bars) + 3) * ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{left}" y="15" font-weight="bold">{escape(title)} (logarithmic)</text>',
    ]
    for power in range(low, high + 1):
        x = left + (power - low) * span
        parts.append(f'<line x1="{x:.0f}" y1="{ROW}" x2="{x:.0f}" y2="{height - ROW}" stroke="#ccc"/>')
        parts.append(f'<text x="{x:.0f}" y="{height - 6}" text-anchor="middle">{10.0**power:,g}</text>')
    for at, (label, value) in enumerate(bars):
        y, length = (at + 1) * ROW + 6, max(1, (math.log10(value) - low) * span)
        parts.append(f'<text x="{left - 8}" y="{y + 10}" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{ROW - 10}" fill="#3b6ea5"/>')
        parts.append(f'<text x="{left + length + 4:.1f}" y="{y + 10}">{number(value)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def put(path: pathlib.Path, marker: str, text: str) -> None:
    """Replace what stands between the markers of that name. ValueError where the page has none."""
    page = path.read_text()
    begin, end = f"<!-- {marker}: begin -->\n", f"<!-- {marker}: end -->"
    if begin not in page or end not in page:
        msg = f"{path} has no markers {begin.strip()} and {end}"
        raise ValueError(msg)
    head, rest = page.split(begin, 1)
    path.write_text(head + begin + text + end + rest.split(end, 1)[1])
