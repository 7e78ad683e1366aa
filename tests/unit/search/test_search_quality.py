"""Search finds what people and agents look for: a floor under the figures of `make search-eval`, on two small sets."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from arion_tds import schema
from arion_tds.model.backend import McpBackend
from arion_tds.model.tool import Tool
from arion_tds.search import tokenize
from arion_tds.search.index import SearchIndex
from arion_tds.search.query import search

SETS = Path(__file__).resolve().parents[3] / "benchmarks" / "search-eval"


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def ndcg(index: SearchIndex, query: str, relevant: set[str]) -> float:
    found = [key in relevant for key, _ in search(index, query, limit=10).items]
    gain = sum(1 / math.log2(place + 2) for place, hit in enumerate(found) if hit)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(10, len(relevant))))


@pytest.mark.parametrize(("name", "floor"), [("livemcpbench", 34), ("livemcp-agent", 51)])
def test_labelled_queries_find_their_tools(name: str, floor: float) -> None:
    index = SearchIndex()
    for row in lines(SETS / name / "tools.jsonl.gz"):
        input_schema = schema.Schema(json.dumps(row["input_schema"]).encode())
        made = Tool(
            namespace=row["namespace"],
            name=row["name"],
            description=row["description"],
            input_schema=input_schema,
            backend=McpBackend("", row["name"]),
        )
        index.add(row["id"], made.namespace, tokenize.document(made))
    queries = lines(SETS / name / "queries.dev.jsonl.gz")
    mean = 100 * sum(ndcg(index, one["query"], set(one["relevant"])) for one in queries) / len(queries)
    assert mean > floor
