"""What an embedding endpoint is asked, and what its answers are worth."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from search_samples import tool

from arion_tds.model.gateway import Embeddings
from arion_tds.schema import Schema
from arion_tds.search import remote

SETTINGS = Embeddings(cluster="c", model_id="m", dimensions=2)


def answer(*embeddings: Any, indexes: list[int | None] | None = None) -> bytes:
    numbers = range(len(embeddings)) if indexes is None else indexes
    data = [{"object": "embedding", "index": at, "embedding": one} for at, one in zip(numbers, embeddings, strict=True)]
    return json.dumps({"object": "list", "data": data, "model": "m", "usage": {"total_tokens": 5}}).encode()


def test_a_request_names_the_model_the_texts_and_the_length_where_it_should() -> None:
    assert json.loads(remote.body(SETTINGS, ["a", "b"], dimensions=True)) == {
        "model": "m",
        "input": ["a", "b"],
        "dimensions": 2,
    }
    assert json.loads(remote.body(SETTINGS, ["a"], dimensions=False)) == {"model": "m", "input": ["a"]}


def test_a_tool_is_embedded_by_name_description_and_parameters_up_to_a_limit() -> None:
    assert (
        remote.text(tool("git.clone", "Copies", repo_url="from where", depth="")) == "git clone: Copies repo url depth"
    )
    assert remote.text(tool("git.pull", "Fetches")) == "git pull: Fetches"
    long = remote.text(tool("git.clone", "x" * 9000, url=""))
    assert len(long) <= remote.MAX_TEXT
    assert long.endswith("x url")
    odd = dataclasses.replace(tool("git.odd", "Odd"), input_schema=Schema(b'{"properties":[1]}'))
    assert remote.text(odd) == "git odd: Odd"


def test_queries_that_differ_in_blanks_are_one_query() -> None:
    assert remote.query("  clone \n a   repo ") == "clone a repo"


def test_vectors_come_in_the_order_of_the_indexes() -> None:
    found = remote.read(answer([0, 2], [3, 0], indexes=[1, 0]), 2, 2)
    assert isinstance(found, list)
    assert np.array(found).tolist() == [[1, 0], [0, 1]]
    found = remote.read(answer([0, 2], [3, 0], indexes=[None, None]), 2, 2)
    assert isinstance(found, list)
    assert np.array(found).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not what an embedding endpoint says"),
        (b"[" * 100_000, "not what an embedding endpoint says"),
        (b"\xff", "not what an embedding endpoint says"),
        (b"{}", "not what an embedding endpoint says"),
        (b'{"data":[{"embedding":[1,"x"]}]}', "not what an embedding endpoint says"),
        (b'{"data":[{"embedding":"AAAA"}]}', "not what an embedding endpoint says"),
        (b'{"data":[{"embedding":[NaN,1]},{"embedding":[1,1]}]}', "not what an embedding endpoint says"),
        (b'{"data":[{"embedding":[1e999,1]},{"embedding":[1,1]}]}', "not"),
        (answer([1, 1]), "1 embeddings for 2 texts"),
        (answer([1, 1], [1, 1], [1, 1]), "3 embeddings for 2 texts"),
        (answer([1, 1], [1, 1, 1]), "an embedding of 3 numbers where 2 are configured"),
        (answer([1, 1], [0, 0]), "zeros only"),
        (answer([1, 1], [1, 2], indexes=[0, 0]), "the indexes of 2 embeddings are not 0 to 1"),
        (answer([1, 1], [1, 2], indexes=[0, 7]), "the indexes of 2 embeddings are not 0 to 1"),
    ],
)
def test_an_answer_that_cannot_be_used_says_why(body: bytes, why: str) -> None:
    found = remote.read(body, 2, 2)
    assert isinstance(found, str)
    assert why in found


def test_the_largest_answer_that_is_read_has_room_for_every_number() -> None:
    longest = -1.2345678901234567e-300
    texts = 3
    body = answer(*[[longest] * 2] * texts)
    assert len(body) < remote.most_bytes(SETTINGS, texts)
