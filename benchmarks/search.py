"""What search costs: CPU time (not wall) of indexing, changing and asking catalogs of 10,000 and 50,000 tools.

`python -m benchmarks.search [FOLDER] [--sizes 10000,50000]`. Prints one line of JSON; times in milliseconds unless
the name says otherwise. With the labelled sets in FOLDER the catalogs are their texts recombined, else invented.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from arion_tds.model.tool import Tool
from arion_tds.search import tokenize
from arion_tds.search.index import SearchIndex
from arion_tds.search.query import search
from arion_tds.search.vectors import Vectors
from benchmarks.search_data import DEFAULT_FOLDER, catalog

Figures = dict[str, float]


def spent(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return (time.process_time() - start) * 1000


def percentiles(name: str, times: Iterable[float]) -> Figures:
    done = sorted(times)
    return {f"{name}_p50": done[len(done) // 2], f"{name}_p99": done[int(len(done) * 0.99)]}


def resident() -> float:
    """Megabytes; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(tools: dict[str, Tool], queries: list[str]) -> Figures:
    figures: Figures = {"bytes_a_tool": sum(map(size, tools.values())) / len(tools)}
    figures["tokenize_first"] = spent(lambda: [tokenize.document(tool) and None for tool in tools.values()])
    figures["tokenize_again"] = spent(lambda: [tokenize.document(tool) and None for tool in tools.values()])
    documents = {key: tokenize.document(tool) for key, tool in tools.items()}
    index = SearchIndex()
    gc.collect()
    gc.freeze()  # as a server does: what was loaded is not looked through again
    before = resident()
    load = spent(lambda: [index.add(key, tools[key].namespace, documents[key]) for key in tools])
    figures["add_us"] = load / len(tools) * 1000
    figures["memory_mb"] = resident() - before
    gc.collect()
    gc.freeze()
    space = next(iter(tools.values())).namespace
    words = {name[:3] for name in tools}
    asked: dict[str, Callable[[str], object]] = {
        "query": lambda text: search(index, text, limit=10),
        "query_typos": lambda text: search(index, text.replace("at", "ta").replace("er", "re"), limit=10),
        "query_namespace": lambda text: search(index, text, limit=10, namespaces=space),
        "query_permits": lambda text: search(index, text, limit=10, permits=lambda _: True),
        "query_visible": lambda text: search(index, text, limit=10, visible=lambda _: True),
    }
    for name, ask in asked.items():
        figures |= percentiles(name, [spent(lambda text=text, ask=ask: ask(text)) for text in queries])
    figures |= percentiles("prefix", [spent(lambda text=text: search(index, text, limit=10)) for text in sorted(words)])
    figures |= percentiles("list", [spent(lambda at=at: search(index, "", limit=50, offset=at)) for at in range(100)])
    some = list(tools)[:: max(len(tools) // 500, 1)]

    def change(key: str) -> None:
        index.add(key, tools[key].namespace, tokenize.document(tools[key]))

    figures |= percentiles("replace_with_tokenize", [spent(lambda key=key: change(key)) for key in some])
    figures |= percentiles("remove", [spent(lambda key=key: index.remove(key)) for key in some])
    return figures


def size(tool: Tool) -> int:
    return len(tool.name) + len(tool.description) + len(tool.input_schema.text)


def vectors(count: int, dimensions: int) -> Figures:
    chance = np.random.default_rng(5)
    known = Vectors(dimensions)
    for at in range(count):
        known.add(f"key{at}", chance.standard_normal(dimensions, np.float32) / np.float32(dimensions) ** 0.5)
    asked = chance.standard_normal(dimensions, np.float32)
    return percentiles(f"vectors_{dimensions}", [spent(lambda: known.nearest(asked, 100)) for _ in range(30)])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    arguments.add_argument("--sizes", default="10000,50000")
    chosen = arguments.parse_args()
    result: dict[str, object] = {"benchmark": "search", "real_texts": chosen.folder.is_dir()}
    for count in map(int, chosen.sizes.split(",")):
        figures = measure(*catalog(count, chosen.folder)) | vectors(count, 384)
        result[str(count)] = {name: round(value, 3) for name, value in figures.items()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
