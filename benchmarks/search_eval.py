"""How well search finds tools: recall and nDCG on labelled queries, beside plainer BM25.

`python -m benchmarks.search_eval [FOLDER] [--queries N] [--embeddings URL --model NAME --dimensions N]`. Prints a table
and a last line of JSON. With an OpenAI-compatible endpoint, also the words fused with its vectors.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from arion_tds.model.gateway import Embeddings
from arion_tds.model.tool import Tool
from arion_tds.search import remote, scoring, tokenize
from arion_tds.search.index import SearchIndex
from arion_tds.search.query import FUSED, search
from arion_tds.search.tokenize import Document
from arion_tds.search.vectors import Vector, Vectors
from benchmarks.search_data import DEFAULT_FOLDER, Labelled, Query, labelled

Ranker = Callable[[str], list[str]]
MEASURES = ("R@1", "R@5", "R@10", "nDCG@10")


def ours(inner: Labelled) -> Ranker:
    index = SearchIndex()
    for key, tool in inner.tools.items():
        index.add(key, tool.namespace, tokenize.document(tool))
    return lambda text: [key for key, _ in search(index, text, limit=10).items]


def fused(endpoint: Endpoint) -> Callable[[Labelled], Ranker]:
    """As a gateway with `search.embeddings` ranks once every tool has its vector."""

    def make(inner: Labelled) -> Ranker:
        index, known = SearchIndex(), Vectors(endpoint.settings.dimensions)
        for key, tool in inner.tools.items():
            index.add(key, tool.namespace, tokenize.document(tool))
        texts = [remote.text(tool) for tool in inner.tools.values()]
        for key, vector in zip(inner.tools, endpoint.vectors(texts), strict=True):
            known.add(key, vector)

        def rank(text: str) -> list[str]:
            dense = known.nearest(endpoint.vectors([remote.query(text)])[0], FUSED)
            return [key for key, _ in search(index, text, limit=10, dense=dense).items]

        return rank

    return make


class Endpoint:
    """An embedding endpoint; every text is asked for once."""

    def __init__(self, url: str, settings: Embeddings) -> None:
        self.url = url
        self.settings = settings
        self._known: dict[str, Vector] = {}

    def vectors(self, texts: list[str]) -> list[Vector]:
        missing = list(dict.fromkeys(text for text in texts if text not in self._known))
        for at in range(0, len(missing), self.settings.max_batch_size):
            batch = missing[at : at + self.settings.max_batch_size]
            body = remote.body(self.settings, batch, dimensions=False)
            request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as response:
                found = remote.read(response.read(), len(batch), self.settings.dimensions)
            if isinstance(found, str):
                sys.exit(f"{self.url}: {found}")
            self._known |= zip(batch, found, strict=True)
        return [self._known[text] for text in texts]


def plain(tool: Tool) -> list[str]:
    return re.findall(r"\w+", f"{tool.name} {tool.description}".lower())


def split_twice(tool: Tool) -> list[str]:
    return split(f"{tool.name} {tool.name} {tool.description}")


def split(text: str) -> list[str]:
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return re.findall(r"[^\W_\d]+|\d+", text.lower())


def words_only(
    of_tool: Callable[[Tool], list[str]], of_query: Callable[[str], list[str]]
) -> Callable[[Labelled], Ranker]:
    """BM25 over bare words, by the same postings: what fields, stop words and stems are measured against."""

    def make(inner: Labelled) -> Ranker:
        index = SearchIndex()
        for key, tool in inner.tools.items():
            terms = {word: 4 * count for word, count in Counter(of_tool(tool)).items()}
            index.add(key, tool.namespace, Document(terms, sum(terms.values()), ()))

        def rank(text: str) -> list[str]:
            scores = scoring.scores(
                index.words, [(word, float(count)) for word, count in Counter(of_query(text)).items()]
            )
            order = sorted(range(len(index.keys)), key=lambda slot: (-scores[slot], index.keys[slot]))[:10]
            return [index.keys[slot] for slot in order if scores[slot]]

        return rank

    return make


def measure(rank: Ranker, queries: list[Query]) -> list[float]:
    sums = [0.0] * 4
    for query in queries:
        found = [key in query.relevant for key in rank(query.text)]
        for at, depth in enumerate((1, 5, 10)):
            sums[at] += sum(found[:depth]) / len(query.relevant)
        gain = sum(1 / math.log2(place + 2) for place, hit in enumerate(found) if hit)
        sums[3] += gain / sum(1 / math.log2(place + 2) for place in range(min(10, len(query.relevant))))
    return [100 * value / len(queries) for value in sums]


def misspelled(query: Query, chance: random.Random) -> Query:
    """About 30 % of the words over four letters with one slip after the first letter."""

    def slip(found: re.Match[str]) -> str:
        word = found.group()
        if chance.random() > 0.3:
            return word
        at = chance.randrange(1, len(word) - 1)
        letter = chance.choice("abcdefghijklmnopqrstuvwxyz")
        return chance.choice(
            (
                word[:at] + word[at + 1 :],
                word[:at] + letter + word[at:],
                word[:at] + letter + word[at + 1 :],
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            )
        )

    return Query(re.sub(r"[A-Za-z]{5,}", slip, query.text), query.relevant)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    arguments.add_argument("--queries", type=int, default=None, help="only the first N of each set")
    arguments.add_argument("--embeddings", metavar="URL", help="an OpenAI-compatible endpoint: its vectors are fused")
    arguments.add_argument("--model", default="default")
    arguments.add_argument("--dimensions", type=int, default=384)
    chosen = arguments.parse_args()
    sets = labelled(chosen.folder) if chosen.folder.is_dir() else []
    if not sets:
        sys.exit(
            f"no sets in {chosen.folder}: give the folder that holds <set>/tools.jsonl and <set>/queries.dev.jsonl"
        )
    rankers = {
        "plain BM25": (words_only(plain, lambda text: re.findall(r"\w+", text.lower())), False),
        "split + name x2": (words_only(split_twice, split), False),
        "arion-tds": (ours, False),
        "arion-tds, typos": (ours, True),
    }
    if chosen.embeddings is not None:
        settings = Embeddings(cluster="", model_id=chosen.model, dimensions=chosen.dimensions)
        rankers["arion-tds, fused"] = (fused(Endpoint(chosen.embeddings, settings)), False)
    means = {}
    print(f"{'':18}{'set':18}" + "".join(f"{name:>9}" for name in MEASURES))
    for title, (make, damaged) in rankers.items():
        rows = []
        for inner in sets:
            queries = inner.queries[: chosen.queries]
            if damaged:
                chance = random.Random(1)
                queries = [misspelled(query, chance) for query in queries]
            rows.append(measure(make(inner), queries))
            print(f"{title:18}{inner.name:18}" + "".join(f"{value:9.1f}" for value in rows[-1]))
        mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        means[title] = dict(zip(MEASURES, (round(value, 1) for value in mean), strict=True))
        print(f"{title:18}{'mean':18}" + "".join(f"{value:9.1f}" for value in mean), flush=True)
    print(json.dumps({"benchmark": "search_eval", "sets": len(sets), "mean": means}))


if __name__ == "__main__":
    main()
