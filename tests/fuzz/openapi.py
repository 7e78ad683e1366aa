"""Mutated OpenAPI documents: expansion never raises and never hangs, and its tools never build a broken request.

`python tests/fuzz/openapi.py [COUNT] [SEED]` runs COUNT mutations (10,000 by default); test_openapi_fuzz runs a few
hundred. Seeds are the case documents of the unit tests. A mutation is one of bytes, or of one value in the tree.
"""

from __future__ import annotations

import copy
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

from arion_tds import schema as json_schema
from arion_tds.model.backend import OperationBackend
from arion_tds.model.http import HttpRequest, HttpResponse
from arion_tds.model.result import CallFailure
from arion_tds.model.source import OpenApiSource
from arion_tds.openapi.binding import Binding
from arion_tds.openapi.document import Decoded, decode
from arion_tds.openapi.expand import expand
from arion_tds.openapi.limits import Limits
from arion_tds.openapi.request import build
from arion_tds.openapi.respond import respond

CASES = Path(__file__).parent.parent / "unit" / "openapi" / "cases"
SLOWEST = 2.0
"""Seconds that one mutation may take before it counts as a hang."""

WRONG: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**40, "", "x", "#", "#/", "#/components", "#/paths", "/", "..", "\x00", "日本"),
    *(
        [],
        {},
        [{}],
        [[]],
        {"": {}},
        {"$ref": "#"},
        {"$ref": "#/components/schemas/A"},
        {"$ref": 5},
        {"$ref": "http://x"},
    ),
    *({"type": "object"}, {"type": ["string", "null"]}, {"allOf": [{"$ref": "#/components"}]}, {"nullable": True}),
    *("http://[", "{x}", "/{x}/../{y}", {"discriminator": {"propertyName": "a", "mapping": {"b": "C"}}}),
)
KEYS = (
    "$ref",
    "type",
    "in",
    "name",
    "style",
    "schema",
    "content",
    "required",
    "items",
    "allOf",
    "servers",
    "x-y",
    "",
    "/",
)
VALUES: tuple[Any, ...] = (None, True, 0, 1.5, "", "..", "a/b", "é\r\n", [], ["a", None], {}, {"a": {"b": [1]}}, "AAEC")


def seeds() -> list[bytes]:
    """The documents that mutations start from."""
    return [path.read_bytes() for path in sorted(CASES.glob("*.yaml"))]


def _places(value: Any, found: list[tuple[Any, Any]]) -> None:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found.append((value, key))
        _places(inner, found)


def _tree(rng: random.Random, data: bytes) -> bytes:
    decoded = decode(data, Limits())
    if not isinstance(decoded, Decoded):
        return data
    root = json.loads(json.dumps(decoded.root))
    for _ in range(rng.randint(1, 3)):
        found: list[tuple[Any, Any]] = []
        _places(root, found)
        if not found:
            break
        holder, key = rng.choice(found)
        other, other_key = rng.choice(found)
        match rng.randrange(5):
            case 0:
                holder[key] = copy.deepcopy(rng.choice(WRONG))
            case 1:
                del holder[key]
            case 2:
                holder[key] = json.loads(json.dumps(other[other_key]))
            case 3 if isinstance(holder, dict):
                holder[rng.choice(KEYS)] = holder.pop(key)
            case _:
                target = holder[key]
                if isinstance(target, dict):
                    target[rng.choice(KEYS)] = copy.deepcopy(rng.choice(WRONG))
                elif isinstance(target, list):
                    target.append(copy.deepcopy(rng.choice(WRONG)))
    return json.dumps(root).encode()


def _bytes(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[at] = rng.randrange(256)
            case 1:
                del changed[at : at + rng.randint(1, 30)]
            case 2:
                changed[at:at] = bytes(rng.choice(b"&*!{}[]:,-#\"'|>%@`\t\n ") for _ in range(rng.randint(1, 4)))
            case _:
                other = rng.randrange(len(changed))
                changed[at:at] = changed[other : other + rng.randint(1, 60)]
        if not changed:
            changed = bytearray(b" ")
    return bytes(changed)


def check(rng: random.Random, document: bytes) -> bool:
    """Expand one document and use its tools. Whether it gave any; raises what expansion must never raise."""
    source = OpenApiSource(namespace="t", document=document, cluster="c", skip_unsupported=rng.random() < 0.8)
    output = rng.choice(("loose", "strict", "off"))
    expansion = expand(source, Limits(), output)  # type: ignore[arg-type]
    assert not (expansion.problems and expansion.tools)
    for tool in expansion.tools:
        assert json_schema.check(tool.input_schema.value()) is None
        if tool.output_schema is not None:
            assert json_schema.check(tool.output_schema.value()) is None
        backend = tool.backend
        assert isinstance(backend, OperationBackend)
        assert isinstance(backend.binding, Binding)
        names = [*tool.input_schema.value().get("properties", {}), "body"]
        arguments = {name: rng.choice(VALUES) for name in names if rng.random() < 0.9}
        made = build(backend.binding, arguments)
        if isinstance(made, HttpRequest):
            assert made.target.startswith("/")
            assert made.target.isascii()
            assert not set(made.target) & set(" \r\n\0#")
            assert all("\r" not in text and "\n" not in text for pair in made.headers for text in pair)
        else:
            assert isinstance(made, CallFailure)
        response = HttpResponse(rng.choice((200, 204, 404)), (("content-type", "application/json"),), b'{"a":[1]}')
        respond(backend.binding, tool.output_schema, response)
    return bool(expansion.tools)


def run(count: int, seed: int) -> dict[str, float]:
    """That many mutations. Prints the document that fails, and raises what it raised."""
    rng = random.Random(seed)
    originals = seeds()
    served, slowest = 0, 0.0
    for _ in range(count):
        document = rng.choice(originals)
        document = _tree(rng, document) if rng.random() < 0.8 else _bytes(rng, document)
        started = time.process_time()
        try:
            served += check(rng, document)
        except BaseException:
            sys.stderr.write(document.decode("utf-8", "replace"))
            raise
        slowest = max(slowest, time.process_time() - started)
        assert slowest < SLOWEST, document
    return {"mutations": count, "served": served, "slowest_seconds": round(slowest, 3)}


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(run(*(int(word) for word in [*sys.argv[1:], *("10000", "1")[len(sys.argv) - 1 :]][:2]))) + "\n"
    )
