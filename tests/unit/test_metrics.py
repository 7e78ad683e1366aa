"""The metrics page: calls by tool stay few lines, cluster counters only grow, rejections have few reasons."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from arion_tds import offline, reasons
from arion_tds.backends.attempts import ClusterStatus, EndpointStatus
from arion_tds.history import History
from arion_tds.metrics import Metrics, ToolCalls
from arion_tds.model.delivery import Delivery, DeliveryVerdict, Kind, ResourceId
from arion_tds.observing import Deliveries, FrontObserver, Measures, rejections


def lines(metrics: Metrics, name: str) -> list[str]:
    """The samples of one metric, without times of creation."""
    found = metrics.page().decode().splitlines()
    return [line for line in found if line.startswith(name) and "_created" not in line]


def test_the_first_tools_that_are_called_have_lines_of_their_own_and_the_rest_share_one() -> None:
    metrics = Metrics()
    calls = ToolCalls(metrics.tool_calls, "a", 2)
    for tool in ("ns.one", "ns.two", "ns.three", "ns.four", "ns.one"):
        calls.count(tool, good=True)
    calls.count("ns.one", good=False)
    calls.count("ns.five", good=False)
    assert sorted(lines(metrics, "arion_tds_tool_calls_total")) == [
        'arion_tds_tool_calls_total{listener="a",outcome="error",tool="ns.one"} 1.0',
        'arion_tds_tool_calls_total{listener="a",outcome="error",tool="other"} 1.0',
        'arion_tds_tool_calls_total{listener="a",outcome="ok",tool="ns.one"} 2.0',
        'arion_tds_tool_calls_total{listener="a",outcome="ok",tool="ns.two"} 1.0',
        'arion_tds_tool_calls_total{listener="a",outcome="ok",tool="other"} 2.0',
    ]


def test_no_tool_has_a_line_where_none_is_wanted() -> None:
    metrics = Metrics()
    ToolCalls(metrics.tool_calls, "a", 0).count("ns.one", good=True)
    (line,) = lines(metrics, "arion_tds_tool_calls_total")
    assert 'tool="other"' in line


def cluster(calls: int, *, down: int = 0) -> ClusterStatus:
    endpoints = tuple(EndpointStatus(f"http://{n}", n < down, None) for n in range(3))
    return ClusterStatus("api", endpoints, 1, calls, 0, 0)


def test_what_a_cluster_counted_only_grows_and_goes_with_it() -> None:
    metrics = Metrics()
    measures = Measures(metrics)
    for calls in (5, 8, 2):  # 2: configured anew
        measures.clusters([cluster(calls, down=1)])
    (call,) = (line for line in lines(metrics, "arion_tds_cluster_events_total") if 'event="call"' in line)
    assert call.endswith(" 10.0")
    assert 'arion_tds_cluster_endpoints{cluster="api",state="down"} 1.0' in lines(
        metrics, "arion_tds_cluster_endpoints"
    )
    measures.clusters([])
    assert not [line for line in lines(metrics, "arion_tds_cluster_") if "{" in line]


def test_a_front_is_counted_by_method_and_its_searches_apart() -> None:
    metrics = Metrics()
    front = FrontObserver(metrics, "a")
    front.answered("search", 200, 0.002, modern=True)
    front.answered("tools/list", 200, 0.001, modern=False)
    assert 'arion_tds_searches_total{listener="a",via="http"} 1.0' in lines(metrics, "arion_tds_searches_total")
    assert len(lines(metrics, "arion_tds_request_seconds_count")) == 2


def test_a_rejection_counts_by_the_class_of_its_reason() -> None:
    metrics, history = Metrics(), History(lambda: 0.0)
    rejections(history, metrics)
    name = ResourceId("s/c", "ns.a")
    history.rejected(Kind.TOOL, name, "1", "namespace 'ns' is owned by OpenAPI source 'ns'")
    history.rejected(Kind.TOOL, name, "2", "namespace 'ns' is owned by OpenAPI source 'ns'")
    history.accepted(Kind.TOOL, name, "3")
    assert lines(metrics, "arion_tds_rejections_total") == [
        'arion_tds_rejections_total{reason="owner",type="Tool"} 2.0'
    ]


async def test_a_delivery_is_timed_until_its_verdict() -> None:
    metrics = Metrics()
    ticks = iter((1.0, 1.5))

    async def deliver(_delivery: Delivery) -> DeliveryVerdict:
        return DeliveryVerdict()

    await Deliveries(deliver, metrics, lambda: next(ticks)).deliver(Delivery(Kind.TOOL, (), ()))
    assert lines(metrics, "arion_tds_push_seconds_sum") == ['arion_tds_push_seconds_sum{type="Tool"} 0.5']


TOOL = {
    "namespace": "ns",
    "name": "a",
    "description": "d",
    "rest_backend": {"method": "GET", "path": "/x", "cluster": "c"},
}
SOURCE = {"namespace": "ns", "cluster": "c", "spec": {"inline_string": "{}"}}
SERVER = {"namespace": "ns", "description": "d", "transport": "StreamableHttp", "url": "http://h/mcp"}


@pytest.mark.parametrize(
    ("kind", "spec", "wanted"),
    [
        ("McpTool", {**TOOL, "description": ""}, "payload"),
        ("McpTool", {**TOOL, "input_schema": {"inline_string": "[]"}}, "schema"),
        ("McpTool", {**TOOL, "input_schema": {"inline_string": '{"type": 5}'}}, "schema"),
        ("McpTool", {**TOOL, "input_schema": {"filename": "/etc/passwd"}}, "data_source"),
        ("McpTool", {**TOOL, "rest_backend": {"method": "GET", "path": "/{{", "cluster": "c"}}, "template"),
        ("McpTool", {**TOOL, "rbac": {"action": "ALLOW"}}, "rbac"),
        ("McpTool", {**TOOL, "rest_backend": None, "function_graph_backend": {}}, "unsupported"),
        ("McpOpenApiSource", SOURCE, "document"),
        ("McpDynamicServer", {**SERVER, "url": "ftp://h"}, "payload"),
    ],
)
def test_what_the_gateway_says_of_bad_resources_has_a_class(
    kind: str, spec: dict[str, object], wanted: str, tmp_path: pathlib.Path
) -> None:
    name = "a/main/ns.a" if kind == "McpTool" else "a/main/ns"
    document = {
        "apiVersion": "ctl.arion.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }
    path = tmp_path / "document.yaml"
    path.write_text(yaml.safe_dump(document))
    (judged,) = offline.judge([path], offline.World())
    assert judged.problems
    assert reasons.classify("; ".join(judged.problems)) == wanted, judged.problems


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        ("MCP server http://h/mcp: it cannot be reached: refused", "upstream"),
        ("name 'a.b' is taken: namespace 'a' is owned by OpenAPI source 'a'", "owner"),
        ("'a.b' and 'a_b' would both be published as 'b': rename one of them", "owner"),
        ("name of 200 characters is longer than 128", "limit"),
        ("name holds ' ': blank, control and non-ASCII characters are not allowed", "name"),
        ("12000 operations are too many (max_operations is 5000)", "limit"),
        ("", "payload"),
    ],
)
def test_sentences_from_elsewhere_have_a_class(reason: str, wanted: str) -> None:
    assert reasons.classify(reason) == wanted
