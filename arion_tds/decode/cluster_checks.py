"""Health checks and outlier detection of Envoy's Cluster. Called by cluster."""

from __future__ import annotations

from typing import Final

from envoy.config.cluster.v3.cluster_pb2 import Cluster as Message
from envoy.config.cluster.v3.outlier_detection_pb2 import OutlierDetection
from envoy.config.core.v3.base_pb2 import GET, METHOD_UNSPECIFIED
from envoy.config.core.v3.health_check_pb2 import HealthCheck as CheckMessage
from google.protobuf.duration_pb2 import Duration

from arion_tds.decode import leftovers, policy
from arion_tds.decode.case import Case
from arion_tds.model.cluster import HealthCheck, Outlier

_SERVED: Final = ("timeout", "interval", "unhealthy_threshold", "healthy_threshold", "http_health_check")
_IGNORED: Final = frozenset({
    "initial_jitter", "interval_jitter", "interval_jitter_percent", "reuse_connection", "no_traffic_interval",
    "no_traffic_healthy_interval", "unhealthy_interval", "unhealthy_edge_interval", "healthy_edge_interval",
    "event_log_path", "event_logger", "event_service", "always_log_health_check_failures",
    "always_log_health_check_success",
})  # fmt: skip
_REQUEST: Final = ("host", "path", "expected_statuses", "method")
_REQUEST_IGNORED: Final = ("response_buffer_size", "codec_client_type", "service_name_matcher", "retriable_statuses")
_OUTLIER: Final = ("consecutive_5xx", "base_ejection_time", "max_ejection_time", "max_ejection_percent")
_FALLBACK: Final = Outlier()


def health(message: Message, case: Case) -> HealthCheck | None:
    """The cluster's health check, if it has one."""
    if not message.health_checks:
        return None
    if len(message.health_checks) > 1:
        case.refuse("health_checks", "are more than one: one is supported")
        return None
    check, where = message.health_checks[0], "health_checks[0]"
    leftovers.judge(check, where, _SERVED, _IGNORED, case)
    if check.WhichOneof("health_checker") != "http_health_check":
        case.refuse(where, "must be an http_health_check")
        return None
    request, at = check.http_health_check, f"{where}.http_health_check"
    leftovers.judge(request, at, _REQUEST, _REQUEST_IGNORED, case)
    if not request.path.startswith("/"):
        case.refuse(f"{at}.path", f"is {request.path!r}: it must begin with a slash")
    if request.method not in {METHOD_UNSPECIFIED, GET}:
        case.refuse(f"{at}.method", "must be GET")
    statuses = tuple((one.start, one.end) for one in request.expected_statuses) or ((200, 201),)
    if any(not 100 <= start < end <= 600 for start, end in statuses):
        case.refuse(f"{at}.expected_statuses", "must be ranges within 100 to 600, the end excluded")
    return HealthCheck(
        path=request.path,
        interval=_time(check, "interval", where, case),
        timeout=_time(check, "timeout", where, case),
        unhealthy_threshold=_threshold(check, "unhealthy_threshold", where, case),
        healthy_threshold=_threshold(check, "healthy_threshold", where, case),
        host=request.host or None,
        statuses=statuses,
    )


def outlier(message: OutlierDetection, case: Case) -> Outlier | None:
    """Ejection after consecutive 5xx; every other reason to eject is ignored with a warning."""
    for field, _ in message.ListFields():
        if field.name not in {*_OUTLIER, "enforcing_consecutive_5xx"}:
            case.warn(f"outlier_detection.{field.name}", "is not supported: ignored")
    if message.HasField("enforcing_consecutive_5xx") and message.enforcing_consecutive_5xx.value == 0:
        return None
    count = message.consecutive_5xx.value if message.HasField("consecutive_5xx") else _FALLBACK.consecutive_5xx
    if count == 0:
        return None
    percent = _FALLBACK.max_ejection_percent
    if message.HasField("max_ejection_percent"):
        percent = min(100, message.max_ejection_percent.value)
    base = _duration(message, "base_ejection_time", _FALLBACK.base_ejection_time, case)
    most = _duration(message, "max_ejection_time", max(base, _FALLBACK.max_ejection_time), case)
    return Outlier(
        consecutive_5xx=count, base_ejection_time=base, max_ejection_time=max(base, most), max_ejection_percent=percent
    )


def _duration(message: OutlierDetection, name: str, fallback: float, case: Case) -> float:
    if not message.HasField(name):
        return fallback
    value: Duration = getattr(message, name)
    return policy.seconds(value, f"outlier_detection.{name}", case) or fallback


def _time(check: CheckMessage, name: str, where: str, case: Case) -> float:
    if not check.HasField(name):
        case.refuse(f"{where}.{name}", "is missing: it is required")
        return 1.0
    value: Duration = getattr(check, name)
    return policy.seconds(value, f"{where}.{name}", case) or 1.0


def _threshold(check: CheckMessage, name: str, where: str, case: Case) -> int:
    value = getattr(check, name).value if check.HasField(name) else 0
    if value < 1:
        case.refuse(f"{where}.{name}", "must be at least 1")
        return 1
    return int(value)
