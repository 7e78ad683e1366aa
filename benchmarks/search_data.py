"""Catalogs and labelled queries for the search benchmarks.

In: a folder of sets (`<set>/tools.jsonl`, `<set>/queries.dev.jsonl`, gzipped or not), or nothing. Out: tools, queries.
Without the folder, catalogs are made of invented words with a natural (Zipf) distribution. Always the same for a seed.
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import random
from pathlib import Path
from typing import Any

from arion_tds import schema
from arion_tds.model.backend import McpBackend
from arion_tds.model.tool import Tool

DEFAULT_FOLDER = Path(__file__).resolve().parent / "search-eval"


@dataclasses.dataclass(frozen=True)
class Query:
    """A query and the ids that answer it."""

    text: str
    relevant: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Labelled:
    """A set: its tools by id, and queries with the ids that answer them."""

    name: str
    tools: dict[str, Tool]
    queries: list[Query]


def tool(namespace: str, name: str, description: str, input_schema: dict[str, object]) -> Tool:
    return Tool(
        namespace=namespace,
        name=name,
        description=description,
        input_schema=schema.Schema(json.dumps(input_schema, ensure_ascii=False, separators=(",", ":")).encode()),
        backend=McpBackend("", name),
    )


def labelled(folder: Path) -> list[Labelled]:
    return [_read(inner) for inner in sorted(folder.glob("*")) if any(inner.glob("tools.jsonl*"))]


def _read(inner: Path) -> Labelled:
    rows = _lines(inner, "tools.jsonl")
    tools = {
        row["id"]: tool(row["namespace"], row["name"], row["description"], row.get("input_schema", {})) for row in rows
    }
    queries = _lines(inner, "queries.dev.jsonl")
    return Labelled(inner.name, tools, [Query(row["query"], frozenset(row["relevant"])) for row in queries])


def _lines(inner: Path, name: str) -> list[Any]:
    packed = inner / f"{name}.gz"
    text = gzip.decompress(packed.read_bytes()) if packed.is_file() else (inner / name).read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def catalog(count: int, folder: Path, seed: int = 7) -> tuple[dict[str, Tool], list[str]]:
    """`count` tools of about 1.5 KB each and 300 queries: real texts recombined, or invented ones."""
    chance = random.Random(seed)
    sets = labelled(folder) if folder.is_dir() else []
    if not sets:
        return _invented(count, chance)
    known = [known for inner in sets for known in inner.tools.values() if "properties" in known.input_schema.value()]
    spaces = sorted({known.namespace for known in known})
    made: dict[str, Tool] = {}
    for number in itertools.count():
        if len(made) == count:
            break
        parts = chance.sample(known, 4)
        properties = {key: value for part in parts for key, value in part.input_schema.value()["properties"].items()}
        text = f"{parts[0].description} {parts[1].description}"[:700]
        new = tool(
            chance.choice(spaces), f"{parts[0].name}_{number}", text, {"type": "object", "properties": properties}
        )
        if len(new.input_schema.text) + len(text) < 3000:
            made[new.qualified] = new
    texts = [query.text for inner in sets for query in inner.queries]
    return made, chance.sample(texts, 300)


def _invented(count: int, chance: random.Random) -> tuple[dict[str, Tool], list[str]]:
    parts = [
        "ba",
        "cor",
        "den",
        "fil",
        "gro",
        "han",
        "jel",
        "kin",
        "lor",
        "mat",
        "nes",
        "pol",
        "ras",
        "sim",
        "tor",
        "vex",
    ]
    lexicon = ["".join(chance.choices(parts, k=2 + number % 3)) for number in range(20_000)]
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(lexicon))))

    def some(number: int) -> list[str]:
        return chance.choices(lexicon, cum_weights=weights, k=number)

    made: dict[str, Tool] = {}
    for number in range(count):
        properties = {
            "_".join(some(2)): {"type": "string", "description": " ".join(some(12))}
            for _ in range(chance.randint(4, 9))
        }
        new = tool(
            f"service{number % 200}",
            "_".join([*some(2), str(number)]),
            " ".join(some(60)),
            {"type": "object", "properties": properties},
        )
        made[new.qualified] = new
    return made, [" ".join(some(20)) for _ in range(300)]
