"""Coverage-guided fuzzing (atheris) of what strangers' bytes meet first: none of it may raise, whatever it is given.

`python tests/fuzz/guided.py TARGET [libFuzzer options]`, TARGET one of decode, jsonrpc, transcode, openapi; without
options it runs until it is stopped. tests/hostile/test_hostile_guided.py runs each for a bounded number of inputs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["arion_tds"]):
    from arion_tds.backends import transcode
    from arion_tds.decode import table
    from arion_tds.decode.rules import INLINE_ONLY
    from arion_tds.model import template
    from arion_tds.model.backend import JsonBody, QueryParam, RestBackend
    from arion_tds.model.delivery import CATALOG, ResourceId
    from arion_tds.model.http import HttpRequest
    from arion_tds.model.source import OpenApiSource
    from arion_tds.openapi.expand import expand
    from arion_tds.openapi.limits import Limits
    from arion_tds.server import jsonrpc, search

NAME = ResourceId("s/c", "ns.tool")


def decode(data: bytes) -> None:
    """A payload of each type: a value or a problem, exactly one of them."""
    for kind in CATALOG:
        found = table.decode(kind, NAME, data, INLINE_ONLY)
        assert (found.value is None) != (found.problem is None)


def parse(data: bytes) -> None:
    """A body of /mcp and of /mcp/search."""
    jsonrpc.parse(data)
    search.parse(data, 100)


def transcoded(data: bytes) -> None:
    """A path template and arguments: what is built keeps the template's segments, and no line break gets into it."""
    given = atheris.FuzzedDataProvider(data)
    text = "/" + given.ConsumeUnicodeNoSurrogates(40)
    path = template.parse(text)
    if isinstance(path, str):
        return
    value = given.ConsumeUnicodeNoSurrogates(40)
    arguments: dict[str, object] = {one.path[0]: value for one in path.variables()} | {"q": value, "b": {"c": value}}
    body = given.PickValueInList([None, JsonBody(("b", "c"))])
    backend = RestBackend("POST", path, "c", (QueryParam("q", ("q",)),), body)
    built = transcode.build(backend, arguments)
    if isinstance(built, HttpRequest):
        assert not set(built.target) & set("\r\n\0 ")
        literal = "".join(part for part in path.parts if isinstance(part, str)).partition("?")[0]
        assert built.target.partition("?")[0].count("/") == literal.count("/")


def document(data: bytes) -> None:
    """An OpenAPI document: tools, or why there are none."""
    found = expand(OpenApiSource(namespace="ns", document=data, cluster="c"), Limits(max_operations=50))
    assert not (found.tools and found.problems)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "decode": decode,
    "jsonrpc": parse,
    "transcode": transcoded,
    "openapi": document,
}

if __name__ == "__main__":
    atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[sys.argv[1]])
    atheris.Fuzz()
