"""What may be tried again, and after how long: Envoy's retry conditions as plain decisions.

In: RetryPolicy and what became of a try (a status, or the fault that left no answer). Out: yes or no, and seconds.
Called by clusters and transcode. Pure: the random draw is an argument.
"""

from __future__ import annotations

import enum
from typing import Final

from arion_tds.model.policy import RetryPolicy

IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""Methods that may be sent again without harm (RFC 9110, 9.2.2)."""

_GATEWAY: Final = frozenset({502, 503, 504})
_TRANSIENT: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_NOT_EXECUTED: Final = frozenset({429, 503})
_ANY_FAULT: Final = frozenset({"5xx", "gateway-error", "reset"})
_CONNECT: Final = _ANY_FAULT | {"connect-failure"}


class Fault(enum.Enum):
    """Why a try brought no answer."""

    CONNECT = "no connection"
    CONNECT_TIMEOUT = "no connection in time"
    TLS = "no trusted connection"
    RESET = "connection lost"
    TRY_TIMEOUT = "no answer in time"

    @property
    def unsent(self) -> bool:
        """Whether the request certainly never reached the upstream."""
        return self in {Fault.CONNECT, Fault.CONNECT_TIMEOUT, Fault.TLS}


def on_status(policy: RetryPolicy, status: int) -> bool:
    """Whether the policy wants an answer of this status tried again."""
    wanted = policy.retry_on
    return (
        ("5xx" in wanted and 500 <= status <= 599)
        or ("gateway-error" in wanted and status in _GATEWAY)
        or ("retriable-4xx" in wanted and status == 409)
        or ("retriable-status-codes" in wanted and status in policy.retriable_status_codes)
    )


def on_fault(policy: RetryPolicy, fault: Fault) -> bool:
    """Whether the policy wants a try without an answer made again. As in Envoy, a 5xx policy covers every fault."""
    return not policy.retry_on.isdisjoint(_CONNECT if fault.unsent else _ANY_FAULT)


def back_off(policy: RetryPolicy, retries: int, draw: float) -> float:
    """Seconds before the next try: full jitter over an interval that doubles. `draw` is in [0, 1)."""
    return draw * min(policy.base_interval * 2.0 ** min(retries, 32), policy.max_interval)


def worth_repeating(status: int, *, idempotent: bool) -> bool:
    """Whether a caller may repeat a call that was answered with this status (`retryable` of its failure).

    A call that is not idempotent only where the status says that nothing was executed.
    """
    return status in (_TRANSIENT if idempotent else _NOT_EXECUTED)
