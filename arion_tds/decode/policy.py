"""Duration, HttpUpstreamPolicy and Envoy's RetryPolicy to values: seconds, and the conditions that are served.

Called by the decoders of backends, sources, servers and the gateway block.
"""

from __future__ import annotations

import re
from typing import Final

from envoy.config.route.v3.route_components_pb2 import RetryPolicy as RetryMessage
from google.protobuf.duration_pb2 import Duration

from arion_tds.decode.case import Case
from arion_tds.decode.sharing import shared
from arion_tds.model.policy import HttpPolicy, RetryPolicy
from arion_tds.pb import mcp_gateway_pb2 as pb

SERVED: Final = frozenset({
    "5xx", "gateway-error", "connect-failure", "reset", "refused-stream", "retriable-4xx", "retriable-status-codes",
})  # fmt: skip
"""Conditions of `retry_on` that a retry follows from; any other is ignored with a warning."""

_IGNORED: Final = (
    "retry_priority",
    "retry_host_predicate",
    "retry_options_predicates",
    "host_selection_retry_max_attempts",
    "per_try_idle_timeout",
    "rate_limited_retry_back_off",
    "retriable_headers",
    "retriable_request_headers",
)
_SINGLE: Final = frozenset(
    field.name for field in RetryMessage.DESCRIPTOR.fields if field.has_presence and field.name in _IGNORED
)
_AUTHORITY = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=%:\[\]\-]+\Z")


def seconds(message: Duration, field: str, case: Case) -> float | None:
    """A time in seconds; zero, less, and what is no Duration are refused."""
    if abs(message.nanos) > 999_999_999:
        case.refuse(field, f"is no duration: {message.nanos} nanoseconds are more than a second")
        return None
    value = message.seconds + message.nanos / 1e9
    if value <= 0:
        case.refuse(field, f"is {value:g} s: it must be more than zero")
        return None
    return value


def http_policy(message: pb.HttpUpstreamPolicy, field: str, case: Case) -> HttpPolicy:
    """The policy; reasons against it are in the Case."""
    authority = message.authority or None
    if authority is None and message.HasField("authority"):
        case.warn(f"{field}.authority", "is empty: the cluster's own host is used")
    if authority is not None and not _AUTHORITY.match(authority):
        case.refuse(f"{field}.authority", f"is {authority!r}: not a host with an optional port")
    timeout = seconds(message.timeout, f"{field}.timeout", case) if message.HasField("timeout") else None
    retry = _retry(message.retry_policy, f"{field}.retry_policy", case) if message.HasField("retry_policy") else None
    return shared(HttpPolicy(authority, timeout, retry))


def _retry(message: RetryMessage, field: str, case: Case) -> RetryPolicy:
    for name in _IGNORED:
        present = message.HasField(name) if name in _SINGLE else bool(getattr(message, name))
        if present:
            case.warn(f"{field}.{name}", "is not supported: ignored")
    default = RetryPolicy()
    base, top = default.base_interval, default.max_interval
    if message.HasField("retry_back_off"):
        base, top = _back_off(message.retry_back_off, f"{field}.retry_back_off", case)
    per_try: float | None = None
    if message.HasField("per_try_timeout"):
        per_try = seconds(message.per_try_timeout, f"{field}.per_try_timeout", case)
    return RetryPolicy(
        retry_on=_conditions(message.retry_on, f"{field}.retry_on", case),
        num_retries=message.num_retries.value if message.HasField("num_retries") else default.num_retries,
        per_try_timeout=per_try,
        retriable_status_codes=_codes(message, field, case),
        base_interval=base,
        max_interval=top,
    )


def _conditions(text: str, field: str, case: Case) -> frozenset[str]:
    names = {name.strip() for name in text.split(",")} - {""}
    unknown = sorted(names - SERVED)
    if unknown:
        case.warn(field, f"names {', '.join(unknown)}: not supported, ignored")
    served = frozenset(names & SERVED)
    if not served:
        case.warn(field, "names no supported condition: nothing is ever retried")
    return served


def _codes(message: RetryMessage, field: str, case: Case) -> frozenset[int]:
    codes = frozenset(message.retriable_status_codes)
    odd = sorted(code for code in codes if not 100 <= code <= 599)
    if odd:
        case.warn(f"{field}.retriable_status_codes", f"holds {odd}: no HTTP status has such a number")
    return codes


def _back_off(message: RetryMessage.RetryBackOff, field: str, case: Case) -> tuple[float, float]:
    default = RetryPolicy()
    base = seconds(message.base_interval, f"{field}.base_interval", case) or default.base_interval
    if not message.HasField("max_interval"):
        return base, base * 10  # Envoy's default
    top = seconds(message.max_interval, f"{field}.max_interval", case) or base
    if top < base:
        case.refuse(f"{field}.max_interval", f"is {top:g} s: less than base_interval")
    return base, top
