"""Control-plane documents: the envelope, and the payload that they would be delivered as."""

from __future__ import annotations

from typing import Any

import pytest

from arion_tds.decode.document import document
from arion_tds.decode.rules import INLINE_ONLY
from arion_tds.decode.table import decode
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.model.tool import Tool


def envelope(**more: object) -> dict[str, Any]:
    return {
        "apiVersion": "ctl.arion.io/v1alpha1",
        "kind": "McpTool",
        "metadata": {"name": "tenant-a-mcp/main/weather.get_forecast"},
        "spec": {
            "namespace": "weather",
            "name": "get_forecast",
            "description": "Forecast of a city",
            "restBackend": {"method": "GET", "path": "/v1/{{city}}", "cluster": "weather_api"},
        },
        **more,
    }


def mistakes(value: object) -> list[str]:
    made, problems = document(value)
    assert made is None
    return [str(problem) for problem in problems]


def test_a_document_becomes_the_resource_that_it_would_be_delivered_as() -> None:
    made, problems = document(envelope())
    assert problems == []
    assert made is not None
    assert (made.kind, made.id, made.fleet) == (
        Kind.TOOL,
        ResourceId("tenant-a-mcp/main", "weather.get_forecast"),
        "arion",
    )
    decoded = decode(made.kind, made.id, made.payload, INLINE_ONLY)
    assert decoded.warnings == ()
    assert isinstance(decoded.value, Tool)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("McpTool", Kind.TOOL),
        ("McpOpenApiSource", Kind.SOURCE),
        ("McpDynamicServer", Kind.SERVER),
        ("McpToolkit", Kind.TOOLKIT),
    ],
)
def test_each_kind_is_one_type_of_resource(kind: str, expected: Kind) -> None:
    made, problems = document(envelope(kind=kind, spec={}))
    assert problems == []
    assert made is not None
    assert made.kind is expected


def test_a_fleet_and_further_slashes_of_the_name_are_kept() -> None:
    made, _ = document(envelope(metadata={"name": "a/b/c.d/e", "fleet": "edge"}))
    assert made is not None
    assert (made.fleet, made.id) == ("edge", ResourceId("a/b", "c.d/e"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"apiVersion": "v1"}, ["apiVersion: is 'v1': must be 'ctl.arion.io/v1alpha1'"]),
        ({"kind": "Tool"}, ["kind: is 'Tool': must be one of McpTool, "]),
        ({"kind": ["McpTool"]}, ["kind: is ['McpTool']: must be one of McpTool, "]),
        ({"status": {}}, ["status: unknown field"]),
        ({"metadata": None}, ["metadata: must be a mapping with name (and fleet)"]),
        ({"metadata": {"name": "a/b/c", "labels": {}}}, ["metadata.labels: unknown field"]),
        ({"metadata": {"name": "a/b"}}, ["metadata.name: is 'a/b': must be a full resource ID"]),
        ({"metadata": {"name": "a//c"}}, ["metadata.name: is 'a//c': must be a full resource ID"]),
        ({"metadata": {"name": 5}}, ["metadata.name: is 5: must be a full resource ID"]),
        ({"metadata": {"name": "a/b/c", "fleet": ""}}, ["metadata.fleet: is '': must be a text"]),
        ({"spec": None}, ["spec: must be a mapping, not null"]),
        ({"spec": {"nam": "x"}}, ["spec.nam: unknown field: did you mean 'name'?"]),
        (
            {"spec": {"restBackend": {}, "rest_backend": {}}},
            ["spec.rest_backend: is written as restBackend and as rest_backend: keep one of them"],
        ),
        (
            {"spec": {"rest_backend": {"upstreamPolicy": {"retry_policy": {"retryOn": "5xx", "retry_on": "x"}}}}},
            ["spec.rest_backend.upstream_policy.retry_policy.retry_on: is written as retryOn and as retry_on"],
        ),
        (
            {"spec": {"input_schema": {"inline_string": "a", "filename": "b"}}},
            ["spec.input_schema.filename: cannot stand beside inline_string"],
        ),
    ],
)
def test_a_mistake_is_named_with_its_path(change: dict[str, object], expected: list[str]) -> None:
    found = mistakes(envelope(**change))
    assert len(found) == len(expected), found
    for one, beginning in zip(found, expected, strict=True):
        assert one.startswith(beginning)


def test_every_mistake_is_named_at_once_below_the_path_of_the_document() -> None:
    made, problems = document({"kind": "McpTool", "metadata": {"name": "x"}, "spec": {"a": 1, "name": []}}, "a.yaml[0]")
    assert made is None
    assert [problem.where for problem in problems] == [
        "a.yaml[0].apiVersion",
        "a.yaml[0].metadata.name",
        "a.yaml[0].spec.a",
        "a.yaml[0].spec.name",
    ]


@pytest.mark.parametrize("value", [None, [], "x", 5])
def test_what_is_no_mapping_is_refused(value: object) -> None:
    assert mistakes(value) == ["must be a mapping with apiVersion, kind, metadata and spec"]
