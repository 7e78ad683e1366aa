"""Every benchmark is in the registry and can be imported; its line of JSON becomes rows, bars and a chart."""

from __future__ import annotations

import importlib
import pathlib
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from benchmarks import page
from benchmarks.registry import BENCHMARKS

FOLDER = pathlib.Path(page.__file__).parent
RESULTS: dict[str, Any] = {
    "machine": {
        "date": "2026-01-02",
        "cpu": "A <fast> processor",
        "cores": 2,
        "memory_gb": 8,
        "kernel": "Linux 6",
        "python": "3.11.7",
        "arion-tds": "0.1.0 (abc)",
        "libraries": {"aiohttp": "3.14.5"},
    },
    "quick": False,
    "runs": [
        {
            "title": "rest_call",
            "load": 0.1,
            "seconds": 5.0,
            "line": {"cpu_ms_per_call": 0.2871, "calls_per_second": 3102},
        },
        {"title": "mcp_call", "load": 0.2, "seconds": 3.0, "failed": "status 1: no | such file"},
        {"title": "rbac 10000", "load": 0.3, "seconds": 2.0, "line": {"call_extra_us": 1.9}},
    ],
}


@pytest.mark.parametrize("module", sorted({one.module for one in BENCHMARKS}))
def test_a_benchmark_can_be_imported(module: str) -> None:
    assert hasattr(importlib.import_module(f"benchmarks.{module}"), "main")


def test_every_module_that_reports_is_in_the_registry() -> None:
    reporting = {
        path.stem
        for path in FOLDER.glob("*.py")
        if "rig.report(" in path.read_text() and "__main__" in path.read_text()
    }
    assert reporting - {"rig"} <= {one.module for one in BENCHMARKS}


def test_two_rows_never_have_the_same_title() -> None:
    titles = [one.title for one in BENCHMARKS]
    assert len(titles) == len(set(titles))


def test_figures_become_rows_with_their_bar_and_a_failure_says_so() -> None:
    told = page.table(RESULTS)
    assert told.startswith(
        "2026-01-02, A <fast> processor, 2 cores, 8 GB, Linux 6, Python 3.11.7, arion-tds 0.1.0 (abc);"
    )
    assert "| REST tool called, 16 at once (`rest_call`) | CPU per call | 0.287 ms | ≤ 0.3 | 0.1 |" in told
    assert "3,102 /s" in told
    assert "**failed**: status 1: no ∣ such file" in told
    assert "| extra CPU per listed tool | – |" in told
    assert "Took 10 s." in told


def test_the_chart_is_an_svg_of_the_figures_in_milliseconds_of_cpu() -> None:
    bars = page.cpu_bars(RESULTS)
    assert bars == [("REST tool called, 16 at once: CPU per call", 0.2871)]
    drawn = ET.fromstring(page.chart(bars, "CPU < all"))
    assert "0.287" in [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    ET.fromstring(page.chart([], "nothing"))


def test_only_what_stands_between_the_markers_is_replaced(tmp_path: pathlib.Path) -> None:
    doc = tmp_path / "page.md"
    doc.write_text("before\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nafter\n")
    page.put(doc, "bench", "new\n")
    assert doc.read_text() == "before\n<!-- bench: begin -->\nnew\n<!-- bench: end -->\nafter\n"
    with pytest.raises(ValueError, match="no markers"):
        page.put(doc, "peers", "new\n")


@pytest.mark.parametrize(
    ("name", "marker"), [("docs/benchmarks.md", "bench"), ("docs/benchmarks.md", "peers"), ("README.md", "peers")]
)
def test_the_pages_have_a_place_for_the_tables(name: str, marker: str, tmp_path: pathlib.Path) -> None:
    copy = tmp_path / "page.md"
    copy.write_text((FOLDER.parent / name).read_text())
    page.put(copy, marker, "| a table |\n")
    assert f"<!-- {marker}: begin -->\n| a table |\n<!-- {marker}: end -->" in copy.read_text()
