"""Tools: names, schemas, embeddings, backends; one test for every rule of the contract."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from decode_samples import SCOPE, a_tool, deliver, mcp_tool, rest, rest_tool, why

from arion_tds.decode.rules import DataRules
from arion_tds.decode.table import decode
from arion_tds.model.backend import JsonBody, McpBackend, QueryParam, RestBackend
from arion_tds.model.delivery import Kind, ResourceId
from arion_tds.model.policy import DEFAULT_POLICY, HttpPolicy, RetryPolicy
from arion_tds.model.rbac import Permission, Rbac
from arion_tds.model.template import Template, Variable
from arion_tds.pb import mcp_gateway_pb2 as pb


def backend(bend: Callable[[pb.RestBackend], object]) -> RestBackend:
    made = a_tool(rest(lambda tool: bend(tool.rest_backend))).backend
    assert isinstance(made, RestBackend)
    return made


def test_a_good_rest_tool_becomes_a_value_without_warnings() -> None:
    decoded = rest()

    tool = a_tool(decoded)
    assert decoded.warnings == ()
    assert (tool.namespace, tool.name, tool.qualified) == ("weather", "get_forecast", "weather.get_forecast")
    assert tool.description == "Forecast of a city"
    assert tool.input_schema.text == b'{"type":"object","properties":{"city":{"type":"string"}}}'
    assert tool.output_schema is None
    assert tool.rbac is None
    assert tool.embedding is None
    assert not tool.eager
    assert tool.backend == RestBackend(
        "GET", Template(("/v1/cities/", Variable(("city",)))), "weather_api", (), None, DEFAULT_POLICY
    )


def test_a_good_mcp_tool_is_called_by_its_own_name_on_the_server_of_its_url() -> None:
    assert a_tool(deliver(mcp_tool(), "notes.add")).backend == McpBackend("http://notes.test/mcp", "add")


def test_bytes_that_are_no_message_are_refused() -> None:
    decoded = decode(Kind.TOOL, ResourceId(SCOPE, "a.b"), b"\x0a\xff", DataRules())
    assert why(decoded) == "cannot be decoded as Tool"


def test_unknown_fields_are_taken_as_the_future_and_ignored() -> None:
    payload = rest_tool().SerializeToString() + bytes.fromhex("ba3e0178")  # field 999
    assert decode(Kind.TOOL, ResourceId(SCOPE, "weather.get_forecast"), payload, DataRules()).problem is None


def test_every_mistake_of_a_resource_is_named_at_once() -> None:
    def bend(tool: pb.Tool) -> None:
        tool.description = ""
        tool.rest_backend.method = "BREW"
        tool.rest_backend.cluster = ""
        tool.rest_backend.path = "v1"

    assert why(rest(bend)).split("; ") == [
        "description is empty: it is required",
        "rest_backend.method is 'BREW': not one of DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT",
        "rest_backend.cluster is empty: it is required",
        "rest_backend.path is 'v1': it must start with '/'",
    ]


# Names: the resource name wins, the payload may say where it splits.


def test_the_payload_says_where_a_name_of_several_dots_splits() -> None:
    message = rest_tool()
    message.namespace, message.name = "a.b", "c"
    decoded = deliver(message, "a.b.c")

    tool = a_tool(decoded)
    assert (tool.namespace, tool.name) == ("a.b", "c")
    assert decoded.warnings == ()


def test_a_payload_of_another_name_is_overruled_with_a_warning_and_splits_at_the_first_dot() -> None:
    decoded = deliver(rest_tool(), "a.b.c")

    tool = a_tool(decoded)
    assert (tool.namespace, tool.name) == ("a", "b.c")
    assert decoded.warnings == (
        "name of the payload is 'weather.get_forecast', not the resource name: 'a.b.c' is used",
    )


@pytest.mark.parametrize("resource", ["nodot", ".name", "namespace.", "."])
@pytest.mark.parametrize("agrees", [True, False])
def test_a_resource_name_without_two_halves_is_refused(resource: str, *, agrees: bool) -> None:
    message = rest_tool()
    if agrees:
        message.namespace, _, message.name = resource.rpartition(".")
    assert f"name {resource!r} is not namespace, dot and name" in why(deliver(message, resource))


def test_a_name_may_hold_slashes_and_is_served_with_a_warning() -> None:
    decoded = deliver(rest_tool(), "gh.repos/get")
    assert a_tool(decoded).qualified == "gh.repos/get"
    assert any("outside [A-Za-z0-9_.-]" in warning for warning in decoded.warnings)


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        ("a." + "b" * 127, "129 characters is longer than 128"),
        ("a.b c", "blank, control and non-ASCII"),
        ("a.b\n", "blank, control and non-ASCII"),
        ("a.bé", "blank, control and non-ASCII"),
        ("a.b\x7f", "blank, control and non-ASCII"),
    ],
)
def test_a_name_that_cannot_be_served_is_refused(resource: str, reason: str) -> None:
    assert reason in why(deliver(rest_tool(), resource))


def test_a_name_of_128_characters_is_served() -> None:
    assert a_tool(deliver(rest_tool(), "a." + "b" * 126)).name == "b" * 126


# Description, backend, disclosure, RBAC, embedding


def test_a_tool_without_description_is_refused() -> None:
    assert why(rest(lambda tool: tool.ClearField("description"))) == "description is empty: it is required"


def test_a_tool_without_backend_is_refused() -> None:
    assert "upstream_backend is missing" in why(rest(lambda tool: tool.ClearField("rest_backend")))


def test_a_function_graph_backend_is_refused_as_not_supported() -> None:
    assert "function_graph_backend is not supported" in why(
        rest(lambda tool: tool.function_graph_backend.SetInParent())
    )


def test_an_eager_tool_is_eager_and_an_unknown_mode_is_progressive_with_a_warning() -> None:
    assert a_tool(rest(lambda tool: setattr(tool, "disclosure_mode", pb.EAGER))).eager
    decoded = rest(lambda tool: setattr(tool, "disclosure_mode", 7))
    assert not a_tool(decoded).eager
    assert decoded.warnings == ("disclosure_mode is 7, which is unknown: PROGRESSIVE is used",)


def test_rbac_becomes_permissions_of_headers_and_claims() -> None:
    def bend(tool: pb.Tool) -> None:
        tool.rbac.action = pb.ToolRbac.DENY
        tool.rbac.permissions.add().jwt_header.CopyFrom(pb.JwtHeaderMatcher(field="algorithm", value="none"))
        tool.rbac.permissions.add().jwt_claim.CopyFrom(pb.JwtClaimMatcher(field="group", value="guests"))

    assert a_tool(rest(bend)).rbac == Rbac(
        True,
        (Permission("algorithm", "none", header=True), Permission("group", "guests")),
    )


def rbac_nothing(tool: pb.Tool) -> None:
    tool.rbac.SetInParent()


def rbac_unset(tool: pb.Tool) -> None:
    tool.rbac.permissions.add()


def rbac_field(tool: pb.Tool) -> None:
    tool.rbac.permissions.add().jwt_claim.value = "v"


def rbac_value(tool: pb.Tool) -> None:
    tool.rbac.permissions.add().jwt_header.field = "f"


def rbac_action(tool: pb.Tool) -> None:
    tool.rbac.action = 9  # type: ignore[assignment]
    tool.rbac.permissions.add().jwt_claim.CopyFrom(pb.JwtClaimMatcher(field="f", value="v"))


@pytest.mark.parametrize(
    ("bend", "reason"),
    [
        (rbac_nothing, "rbac.permissions is empty"),
        (rbac_unset, "rbac.permissions[0] names neither jwt_header nor jwt_claim"),
        (rbac_field, "rbac.permissions[0].jwt_claim.field is empty"),
        (rbac_value, "rbac.permissions[0].jwt_header.value is empty"),
        (rbac_action, "rbac.action is 9: neither ALLOW (0) nor DENY (1)"),
    ],
)
def test_rbac_that_is_not_complete_is_refused(bend: Callable[[pb.Tool], object], reason: str) -> None:
    assert reason in why(rest(bend))


def test_an_embedding_of_the_gateways_length_is_packed_as_little_endian_floats() -> None:
    decoded = rest(lambda tool: tool.embedding.extend([0.5, -0.25, 1.0]), DataRules(dimensions=3))
    assert a_tool(decoded).embedding == struct.pack("<3f", 0.5, -0.25, 1.0)


def test_an_embedding_where_the_gateway_has_none_is_not_kept() -> None:
    assert a_tool(rest(lambda tool: tool.embedding.extend([0.5, 1.0]))).embedding is None


def test_an_embedding_of_another_length_is_refused() -> None:
    decoded = rest(lambda tool: tool.embedding.extend([0.5, 1.0]), DataRules(dimensions=3))
    assert why(decoded) == "embedding has 2 numbers: the gateway's embeddings have 3"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dimensions", [None, 3])
def test_an_embedding_with_a_number_that_is_not_finite_is_refused(number: float, dimensions: int | None) -> None:
    decoded = rest(lambda tool: tool.embedding.extend([1.0, number, -number]), DataRules(dimensions=dimensions))
    assert why(decoded) == "embedding holds a number that is not finite"


def test_the_largest_finite_numbers_are_finite_also_when_summed() -> None:
    largest = struct.unpack("<f", bytes.fromhex("ffff7f7f"))[0]
    decoded = rest(lambda tool: tool.embedding.extend([largest] * 3), DataRules(dimensions=3))
    assert a_tool(decoded).embedding == struct.pack("<3f", largest, largest, largest)


# REST backend


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_a_usual_method_is_served(method: str) -> None:
    assert backend(lambda it: setattr(it, "method", method)).method == method


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "get", "BREW", "GET\r\nX: y"])
def test_any_other_method_is_refused(method: str) -> None:
    assert f"rest_backend.method is {method!r}" in why(rest(lambda it: setattr(it.rest_backend, "method", method)))


@pytest.mark.parametrize("field", ["method", "path", "cluster"])
def test_an_empty_required_string_is_refused(field: str) -> None:
    reason = why(rest(lambda it: it.rest_backend.ClearField(field)))
    assert f"rest_backend.{field} is empty: it is required" in reason


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("v1/x", "it must start with '/'"),
        ("http://evil.test/x", "it must start with '/'"),
        ("/x/{{a", "does not compile: unbalanced braces"),
        ("/x/a}}", "does not compile: unbalanced braces"),
        ("/x/{{}}", "does not compile"),
        ("/x/{{a..b}}", "does not compile"),
        ("/x/{{#if a}}", "does not compile"),
        ("/x y", "percent-encoded"),
        ("/x\r\nHost: evil", "percent-encoded"),
        ("/é", "percent-encoded"),
        ("/x#top", "percent-encoded"),
    ],
)
def test_a_path_that_cannot_be_sent_is_refused(path: str, reason: str) -> None:
    refused = why(rest(lambda it: setattr(it.rest_backend, "path", path)))
    assert refused.startswith("rest_backend.path ")
    assert reason in refused


def test_a_path_with_single_braces_is_literal_text_and_warned_of() -> None:
    decoded = rest(lambda it: setattr(it.rest_backend, "path", "/users/{id}"))
    assert decoded.problem is None
    assert decoded.warnings == ("rest_backend.path holds {id} as literal text: a variable is written in double braces",)


def test_query_params_keep_their_wire_name_and_the_dot_path_of_their_argument() -> None:
    made = backend(lambda it: it.query_params.add(name="user[id]", source="user.id"))
    assert made.query == (QueryParam("user[id]", ("user", "id")),)


@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        ("", "a", "rest_backend.query_params[0].name is empty"),
        ("q", "", "rest_backend.query_params[0].source is empty"),
        ("q", "{{a}}", "rest_backend.query_params[0].source is '{{a}}': not a dot path"),
        ("q", "a..b", "rest_backend.query_params[0].source is 'a..b': not a dot path"),
    ],
)
def test_a_query_param_without_name_or_dot_path_is_refused(name: str, source: str, reason: str) -> None:
    assert reason in why(rest(lambda it: it.rest_backend.query_params.add(name=name, source=source)))


def test_body_json_names_the_argument_by_its_dot_path() -> None:
    assert backend(lambda it: setattr(it, "body_json", "order.items")).body == JsonBody(("order", "items"))


@pytest.mark.parametrize("path", ["", "a b", ".a", "{{a}}"])
def test_body_json_that_is_no_dot_path_is_refused(path: str) -> None:
    assert "rest_backend.body_json is " in why(rest(lambda it: setattr(it.rest_backend, "body_json", path)))


def test_a_body_template_that_is_json_is_marked_so_and_draws_no_warning() -> None:
    def bend(tool: pb.Tool) -> None:
        tool.rest_backend.body_template.inline_string = '{"a":"{{x}}","b":{"c":{{y}}}}'

    decoded = rest(bend)
    made = a_tool(decoded).backend
    assert isinstance(made, RestBackend)
    assert made.body == Template(
        ('{"a":"', Variable(("x",), quoted=True), '","b":{"c":', Variable(("y",)), "}}"), json=True
    )
    assert decoded.warnings == ()


def test_a_body_template_that_is_not_json_is_warned_of() -> None:
    def bend(tool: pb.Tool) -> None:
        tool.rest_backend.body_template.inline_string = "name={{x}}"

    decoded = rest(bend)
    assert a_tool(decoded).name == "get_forecast"
    assert decoded.warnings == (
        "rest_backend.body_template is not JSON: values go into it as they are, without any escaping",
    )


def test_a_body_template_that_does_not_compile_is_refused() -> None:
    def bend(tool: pb.Tool) -> None:
        tool.rest_backend.body_template.inline_string = '{"a":{{x}'

    assert "rest_backend.body_template does not compile: unbalanced braces" in why(rest(bend))


def test_an_empty_body_template_is_refused() -> None:
    decoded = rest(lambda tool: tool.rest_backend.body_template.SetInParent())
    assert why(decoded) == "rest_backend.body_template is empty"


# Upstream policy


def test_an_upstream_policy_becomes_seconds_and_served_conditions() -> None:
    def bend(it: pb.RestBackend) -> None:
        policy = it.upstream_policy
        policy.authority = "api.test:8443"
        policy.timeout.FromMilliseconds(2500)
        retry = policy.retry_policy
        retry.retry_on = "5xx, connect-failure,reset,refused-stream,gateway-error,retriable-4xx,retriable-status-codes"
        retry.num_retries.value = 0
        retry.per_try_timeout.FromMilliseconds(500)
        retry.retriable_status_codes.extend([429, 503])
        retry.retry_back_off.base_interval.FromMilliseconds(100)
        retry.retry_back_off.max_interval.FromSeconds(2)

    assert backend(bend).policy == HttpPolicy(
        "api.test:8443",
        2.5,
        RetryPolicy(
            retry_on=frozenset({
                "5xx", "connect-failure", "reset", "refused-stream", "gateway-error", "retriable-4xx",
                "retriable-status-codes",
            }),
            num_retries=0,
            per_try_timeout=0.5,
            retriable_status_codes=frozenset({429, 503}),
            base_interval=0.1,
            max_interval=2.0,
        ),
    )  # fmt: skip


def test_a_retry_policy_has_envoys_defaults() -> None:
    def bend(it: pb.RestBackend) -> None:
        it.upstream_policy.retry_policy.retry_on = "5xx"
        it.upstream_policy.retry_policy.retry_back_off.base_interval.FromSeconds(1)

    retry = backend(bend).policy.retry
    assert retry == RetryPolicy(frozenset({"5xx"}), 1, None, frozenset(), 1.0, 10.0)


def test_what_a_retry_policy_says_that_is_not_served_is_warned_of() -> None:
    def bend(tool: pb.Tool) -> None:
        retry = tool.rest_backend.upstream_policy.retry_policy
        retry.retry_on = "5xx,envoy-ratelimited,cancelled"
        retry.per_try_idle_timeout.FromSeconds(1)
        retry.host_selection_retry_max_attempts = 3
        retry.retriable_headers.add(name="x")
        retry.retriable_status_codes.append(42)

    decoded = rest(bend)
    where = "rest_backend.upstream_policy.retry_policy"
    assert sorted(decoded.warnings) == [
        f"{where}.host_selection_retry_max_attempts is not supported: ignored",
        f"{where}.per_try_idle_timeout is not supported: ignored",
        f"{where}.retriable_headers is not supported: ignored",
        f"{where}.retriable_status_codes holds [42]: no HTTP status has such a number",
        f"{where}.retry_on names cancelled, envoy-ratelimited: not supported, ignored",
    ]
    assert a_tool(decoded).name == "get_forecast"


def test_a_retry_policy_that_never_retries_is_warned_of() -> None:
    decoded = rest(lambda it: it.rest_backend.upstream_policy.retry_policy.SetInParent())
    assert decoded.warnings == (
        "rest_backend.upstream_policy.retry_policy.retry_on names no supported condition: nothing is ever retried",
    )


@pytest.mark.parametrize(("seconds", "nanos"), [(0, 0), (-1, 0), (0, -5), (1, 1_000_000_000)])
@pytest.mark.parametrize(
    "field",
    [
        "timeout",
        "retry_policy.per_try_timeout",
        "retry_policy.retry_back_off.base_interval",
        "retry_policy.retry_back_off.max_interval",
    ],
)
def test_a_time_of_zero_or_less_and_what_is_no_time_are_refused(field: str, seconds: int, nanos: int) -> None:
    def bend(tool: pb.Tool) -> None:
        policy = tool.rest_backend.upstream_policy
        policy.timeout.FromSeconds(5)
        policy.retry_policy.retry_back_off.base_interval.FromSeconds(1)
        at = policy
        for step in field.split("."):
            at = getattr(at, step)
        at.SetInParent()
        at.seconds, at.nanos = seconds, nanos

    assert f"rest_backend.upstream_policy.{field} is " in why(rest(bend))


def test_a_back_off_whose_top_is_below_its_base_is_refused() -> None:
    def bend(tool: pb.Tool) -> None:
        back_off = tool.rest_backend.upstream_policy.retry_policy.retry_back_off
        back_off.base_interval.FromSeconds(2)
        back_off.max_interval.FromSeconds(1)

    assert "retry_back_off.max_interval is 1 s: less than base_interval" in why(rest(bend))


@pytest.mark.parametrize("authority", ["a b", "a\r\nX: y", "user@host", "host/path"])
def test_an_authority_that_is_no_host_is_refused(authority: str) -> None:
    decoded = rest(lambda it: setattr(it.rest_backend.upstream_policy, "authority", authority))
    assert f"upstream_policy.authority is {authority!r}" in why(decoded)


def test_an_empty_authority_is_none_and_warned_of() -> None:
    decoded = rest(lambda it: setattr(it.rest_backend.upstream_policy, "authority", ""))
    assert decoded.warnings == ("rest_backend.upstream_policy.authority is empty: the cluster's own host is used",)
    made = a_tool(decoded).backend
    assert isinstance(made, RestBackend)
    assert made.policy == HttpPolicy()


# MCP backend


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "is empty: it is required"),
        ("/mcp", "not an absolute http or https URL"),
        ("ftp://host/mcp", "not an absolute http or https URL"),
        ("http:///mcp", "not an absolute http or https URL"),
        ("https://user:pw@host/mcp", "holds user information"),
        ("https://host/mcp#part", "a fragment is never sent"),
        ("https://host/m cp", "no blank, control or non-ASCII"),
        ("https://host/\nmcp", "no blank, control or non-ASCII"),
        ("https://host:port/mcp", "is 'https://host:port/mcp': "),
        ("https://host:99999/mcp", "is 'https://host:99999/mcp': "),
        ("http://[::1/mcp", "is 'http://[::1/mcp': "),
    ],
)
def test_an_upstream_url_that_is_not_absolute_and_plain_is_refused(url: str, reason: str) -> None:
    message = mcp_tool()
    message.mcp_server_backend.url = url
    refused = why(deliver(message, "notes.add"))
    assert refused.startswith("mcp_server_backend.url ")
    assert reason in refused


@pytest.mark.parametrize("transport", [0, 2])
def test_any_transport_but_streamable_http_is_refused_and_the_reason_says_what_is_served(transport: int) -> None:
    message = mcp_tool()
    message.mcp_server_backend.transport = transport  # type: ignore[assignment]
    refused = why(deliver(message, "notes.add"))
    assert refused.startswith("mcp_server_backend.transport is ")
    assert "only StreamableHttp" in refused
