"""Requests that we build, judged by an implementation that is not ours: openapi-core's request validator.

For operations of real vendors' documents: arguments made from the tool's input schema, the request built from them, and
the validator must accept it against the original document. Skipped where the documents are not at hand.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import random
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from openapi_arguments import Generator
from openapi_core import Config, OpenAPI
from openapi_core.datatypes import RequestParameters
from werkzeug.datastructures import Headers, ImmutableMultiDict

from arion_tds import schema as json_schema
from arion_tds.model.backend import OperationBackend
from arion_tds.model.http import HttpRequest
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.openapi.binding import Binding
from arion_tds.openapi.document import Decoded, decode
from arion_tds.openapi.expand import expand
from arion_tds.openapi.limits import Limits
from arion_tds.openapi.request import build

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "openapi" / "corpus"
CORPUS = Path(os.environ.get("OPENAPI_CORPUS", BESIDE))

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus of OpenAPI documents (OPENAPI_CORPUS)")


class Sent:
    """An HttpRequest as openapi-core wants to see it."""

    def __init__(self, request: HttpRequest) -> None:
        path, _, query = request.target.partition("?")
        headers = dict(request.headers)
        cookies = [pair.partition("=")[::2] for pair in headers.pop("cookie", "").split("; ") if pair]
        self.host_url = "http://upstream.test"
        self.path = unquote(path)
        self.method = request.method.lower()
        self.body = request.body
        self.content_type = headers.get("content-type", "")
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(parse_qsl(query, keep_blank_values=True)),
            header=Headers(headers),
            cookie=ImmutableMultiDict([(name, unquote(value)) for name, value in cookies]),
        )


def plain(root: dict[str, Any]) -> dict[str, Any]:
    """The document on one server and without security, which are not the request builder's business."""
    document = {**copy.deepcopy(root), "servers": [{"url": "http://upstream.test"}]}
    document.pop("security", None)
    for item in document["paths"].values():
        item.pop("servers", None)
        for operation in item.values():
            if isinstance(operation, dict):
                operation.pop("security", None)
                operation.pop("servers", None)
    return document


def made(tool: Tool) -> HttpRequest | None:
    """The request of some arguments that the tool's schema accepts, or None where none were found."""
    backend = tool.backend
    assert isinstance(backend, OperationBackend)
    assert isinstance(backend.binding, Binding)
    schema = tool.input_schema.value()
    for attempt, optional in enumerate((0.4, 0.4, 0.1, 0.0)):
        arguments = Generator(schema, f"{tool.name}{attempt}", optional=optional).arguments()
        if tool.input_schema.matches(arguments):
            request = build(backend.binding, arguments)
            if isinstance(request, HttpRequest):
                return request
            assert "argument" in request.message
    return None


@functools.cache
def judged(name: str, most: int) -> tuple[int, dict[str, str]]:
    """How many operations were judged, and what the validator had against which."""
    data = (CORPUS / name).read_bytes()
    decoded = decode(data, Limits())
    assert isinstance(decoded, Decoded)
    source = OpenApiSource(namespace="t", document=data, cluster="c", path_prefix="", skip_unsupported=True)
    tools = list(expand(source, Limits(), "off").tools)
    random.Random(name).shuffle(tools)
    validator = OpenAPI.from_dict(plain(decoded.root), config=Config(spec_validator_cls=None))
    count, refused = 0, {}
    for tool in tools[:most]:
        request = made(tool)
        if request is None:
            continue
        count += 1
        try:
            validator.validate_request(Sent(request))
        except Exception as error:  # noqa: BLE001 - whatever the oracle raises is a refusal
            refused[tool.name] = f"{type(error).__name__}: {error} <- {error.__cause__!r} {request}"[:600]
    return count, refused


# What openapi-core 0.23 refuses although the document allows it, by what its message holds.
EXCUSES = {
    "DeserializeError('deepObject'": "refuses a deepObject that is absent, a list, or one branch of an anyOf",
    "CastError(value='1', type='object')": "casts every value of a deepObject form to the first branch of an anyOf",
    "Tried to write read-only property": "takes readOnly in a parameter's schema for a property's",
    "Value b'": "does not decode JSON under the media types */* and application/json-patch+json, or base64 bytes",
    "is not of type 'string'": "leaves the parts of a multipart body as bytes",
    "does not contain discriminating property": "does not read multipart properties through oneOf",
    "could not be resolved": "takes a discriminator without mapping for a component's name, whatever the tags say",
    "Missing required path parameter": "does not know the path styles label and matrix",
    "Missing required header parameter: Authorization": "asks for a header that OpenAPI says to ignore",
    "Cookie parameter error: object": "does not know an object in a cookie without explode",
    "DeserializeError('spaceDelimited'": "does not know spaceDelimited in a multipart body",
}

DOCUMENTS = {
    "github-api.json": 110,
    "openai.yaml": 60,
    "kubernetes-core-v1.json": 60,
    "stripe.json": 30,
    "spotify.yml": 96,
    "figma.yaml": 47,
    "notion.json": 24,
    "unicode-operation-ids.json": 21,
    "petstore-3.0.4.json": 19,
    "parameters-style-3.1.yaml": 25,
    "cafe-3.2.yaml": 12,
    "discriminators.yaml": 10,
    "museum.yaml": 8,
    "schema-circular.yaml": 3,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_we_send_is_what_the_document_describes(name: str) -> None:
    count, refused = judged(name, DOCUMENTS[name])
    assert count >= DOCUMENTS[name] // 2, "the generator found too few arguments"
    unexcused = {tool: why for tool, why in refused.items() if not any(text in why for text in EXCUSES)}
    assert unexcused == {}


def test_at_least_three_hundred_operations_are_accepted() -> None:
    found = {name: judged(name, most) for name, most in DOCUMENTS.items() if name != "stripe.json"}
    assert sum(count - len(refused) for count, refused in found.values()) >= 300


@pytest.mark.parametrize(
    "name", ["github-api.json", "stripe.json", "openai.yaml", "cafe-3.2.yaml", "discriminators.yaml"]
)
def test_names_do_not_depend_on_the_order_of_paths(name: str) -> None:
    decoded = decode((CORPUS / name).read_bytes(), Limits())
    assert isinstance(decoded, Decoded)
    paths = list(decoded.root["paths"].items())
    random.Random(1).shuffle(paths)

    def named(root: dict[str, Any]) -> dict[Any, str]:
        document = json.dumps(root).encode()
        source = OpenApiSource(namespace="t", document=document, cluster="c", skip_unsupported=True)
        found = {}
        for tool in expand(source, Limits(), "off").tools:
            assert isinstance(tool.backend, OperationBackend)
            binding = tool.backend.binding
            assert isinstance(binding, Binding)
            found[binding.method, str(binding.path), binding.query] = tool.name
        return found

    assert named({**decoded.root, "paths": dict(paths)}) == named(decoded.root)


@pytest.mark.parametrize("name", ["github-api.json", "stripe.json", "kubernetes-core-v1.json", "openai.yaml"])
def test_every_schema_stands_on_its_own_and_the_same_bytes_give_the_same_table(name: str) -> None:
    source = OpenApiSource(namespace="t", document=(CORPUS / name).read_bytes(), cluster="c", skip_unsupported=True)
    first = expand(source, Limits())
    assert first == expand(source, Limits())
    assert first.skipped == ()
    for tool in first.tools:
        assert len(tool.qualified) <= 64
        assert json_schema.check(tool.input_schema.value()) is None
        if tool.output_schema is not None:
            assert json_schema.check(tool.output_schema.value()) is None
            assert tool.output_schema.text.count(b'"$ref":"#/$defs/') == tool.output_schema.text.count(b'"$ref":')
