"""The body of a search, and its answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from front_samples import published, tool

from arion_tds.server import search
from arion_tds.server.settings import Found, SearchAsk


def parsed(cap: int = 100, **body: bytes) -> Any:
    return search.parse(json.dumps(body).encode(), cap)


def test_defaults() -> None:
    ask = SearchAsk(query="invoice", namespaces=None, limit=10, offset=0)
    assert parsed(query="invoice") == (ask, False)
    assert parsed() == (SearchAsk(query="", namespaces=None, limit=10, offset=0), False)
    assert parsed(cap=3, query="x") == (SearchAsk(query="x", namespaces=None, limit=3, offset=0), False)


def test_namespaces_are_one_or_several() -> None:
    one, _ = parsed(query="x", namespace="shop")
    several, _ = parsed(query="x", namespace=["shop", "bank"])
    assert one.namespaces == ("shop",)
    assert several.namespaces == ("shop", "bank")


def test_more_than_the_cap_is_capped_and_said() -> None:
    ask, capped = parsed(cap=20, query="x", limit=21)
    assert (ask.limit, capped) == (20, True)
    ask, capped = parsed(cap=20, query="x", limit=20)
    assert (ask.limit, capped) == (20, False)
    assert parsed(cap=20, query="x", limit=10**30)[0].limit == 20


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", ""),
        (b"[]", ""),
        (b"{", ""),
        (b'{"query":5}', "query"),
        (b'{"query":"' + b"x" * 5000 + b'"}', "query"),
        (b'{"query":"x","namespace":5}', "namespace"),
        (b'{"query":"x","namespace":["a",5]}', "namespace"),
        (b'{"query":"x","namespace":[' + b",".join([b'"a"'] * 257) + b"]}", "namespace"),
        (b'{"query":"x","limit":0}', "limit"),
        (b'{"query":"x","limit":-1}', "limit"),
        (b'{"query":"x","limit":true}', "limit"),
        (b'{"query":"x","limit":2.5}', "limit"),
        (b'{"query":"x","limit":null}', "limit"),
        (b'{"query":"x","offset":-1}', "offset"),
        (b'{"query":"x","offset":1000001}', "offset"),
        (b'{"query":"x","max_results":5}', "max_results"),
    ],
)
def test_a_bad_body_names_the_field(body: bytes, field: str) -> None:
    found = search.parse(body, 100)
    assert isinstance(found, search.Wrong)
    assert found.field == field
    assert json.loads(search.wrong(found))["error"]["field"] == field


def test_the_answer_holds_definitions_scores_and_where_to_go_on() -> None:
    view = published(tool("a", output=b'{"type":"array"}'), tool("b")).view
    found = Found(
        hits=[(view.tools["shop.a"], 1.23456789), (view.tools["shop.b"], 1)],
        total=5,
        ranking="words",
        corrected={"invoce": "invoice"},
    )
    ask = SearchAsk(query="x", namespaces=None, limit=2, offset=1)
    assert json.loads(search.render(found, ask, capped=True)) == {
        "tools": [
            {
                "name": "shop.a",
                "namespace": "shop",
                "description": "does a",
                "inputSchema": {"type": "object"},
                "outputSchema": {"type": "array"},
                "score": 1.234568,
            },
            {
                "name": "shop.b",
                "namespace": "shop",
                "description": "does b",
                "inputSchema": {"type": "object"},
                "score": 1.0,
            },
        ],
        "total": 5,
        "ranking": "words",
        "corrected": {"invoce": "invoice"},
        "next_offset": 3,
        "capped": 2,
    }


def test_an_empty_answer_is_short() -> None:
    ask = SearchAsk(query="x", namespaces=None, limit=2, offset=0)
    body = search.render(Found(hits=[], total=0, ranking="words"), ask, capped=False)
    assert json.loads(body) == {"tools": [], "total": 0, "ranking": "words"}
