"""What goes into the head of a request, and what never does."""

from __future__ import annotations

import dataclasses

import pytest

from arion_tds.backends.headers import MAX_TARGET, outgoing
from arion_tds.model.context import CallContext
from arion_tds.model.http import HttpRequest
from arion_tds.model.policy import DEFAULT_POLICY, HttpPolicy
from arion_tds.model.result import CallFailure, ErrorCode

CONTEXT = CallContext(request_id="r-1", traceparent="00-aa-bb-01", param_headers=(("Mcp-Param-Secret", "s"),))


def headers(*pairs: tuple[str, str], policy: HttpPolicy = DEFAULT_POLICY) -> dict[str, str]:
    made = outgoing(HttpRequest("GET", "/", pairs), policy, CONTEXT)
    assert isinstance(made, list), made
    assert len({name.lower() for name, _ in made}) == len(made)
    return {name.lower(): value for name, value in made}


def refused(*pairs: tuple[str, str], policy: HttpPolicy = DEFAULT_POLICY) -> CallFailure:
    made = outgoing(HttpRequest("GET", "/", pairs), policy, CONTEXT)
    assert isinstance(made, CallFailure), made
    return made


def test_a_request_carries_its_id_and_trace_and_nothing_else_of_the_caller() -> None:
    assert headers() == {"x-request-id": "r-1", "traceparent": "00-aa-bb-01"}


def test_headers_of_the_tool_are_sent_and_may_take_the_place_of_ours() -> None:
    assert headers(("X-Api-Version", "2 \t beta"))["x-api-version"] == "2 \t beta"
    assert headers(("X-Request-Id", "mine"))["x-request-id"] == "mine"
    assert headers(("Traceparent", "theirs"))["traceparent"] == "theirs"


def test_the_authority_becomes_the_host() -> None:
    assert headers(policy=HttpPolicy(authority="api.example:8443"))["host"] == "api.example:8443"


def test_a_tracestate_goes_with_the_trace_unless_the_tool_has_one_of_its_own() -> None:
    traced = dataclasses.replace(CONTEXT, tracestate="a=1")
    for own, sent in (((), "a=1"), ((("Tracestate", "b=2"),), "b=2")):
        made = outgoing(HttpRequest("GET", "/", own), DEFAULT_POLICY, traced)
        assert isinstance(made, list), made
        assert [value for name, value in made if name.lower() == "tracestate"] == [sent]


@pytest.mark.parametrize("authority", ["", "a b", "a\r\nx: y", "é"])
def test_an_authority_that_is_no_host_is_refused(authority: str) -> None:
    assert refused(policy=HttpPolicy(authority=authority)).code is ErrorCode.UPSTREAM_ERROR


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\nb", "a\0b", "é", "\x7f"])
def test_a_value_that_would_break_out_of_its_line_is_the_callers_fault(value: str) -> None:
    failure = refused(("x-tag", value))
    assert failure.code is ErrorCode.INVALID_ARGUMENTS
    assert "'x-tag'" in failure.message
    assert value not in failure.message


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "connection", "x y", "x:y", ""])
def test_a_name_that_frames_the_message_or_is_none_is_the_tools_fault(name: str) -> None:
    assert refused((name, "1")).code is ErrorCode.UPSTREAM_ERROR


def test_what_can_be_decoded_is_not_for_a_tool_to_say() -> None:
    assert "accept-encoding" not in headers(("Accept-Encoding", "br"))


def test_a_target_beyond_its_limit_is_refused_with_the_limit() -> None:
    failure = outgoing(HttpRequest("GET", "/" + "x" * MAX_TARGET), DEFAULT_POLICY, CONTEXT)
    assert isinstance(failure, CallFailure)
    assert failure.code is ErrorCode.INVALID_ARGUMENTS
    assert str(MAX_TARGET) in failure.message
