"""The audit log: who called which tool, when, and what became of it, as JSON lines; arguments only if the config asks.

In: calls that are over, from every way that leads to a tool: tools/call, `call_tool`, programs of code mode. Out:
lines, written beside the event loop by an `AccessLog`. One per listener, given to its `Calls`; the file is opened by
app. Calls that were refused before a tool was found stand in the access log.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, Final

import msgspec

from arion_tds.access_log import AccessLog
from arion_tds.model.context import CallContext

MAX_ARGUMENTS: Final = 16 << 10
"""Bytes of a call's arguments that are written; larger ones are left out, and their size told."""

_encode = msgspec.json.Encoder().encode


class Audit:
    """One listener's calls as lines."""

    def __init__(self, log: AccessLog, listener: str, now: Callable[[], float], *, arguments: bool) -> None:
        """`now`: seconds since the epoch. `arguments`: whether they are written too."""
        self._log = log
        self._listener = listener
        self._now = now
        self._arguments = arguments

    def __call__(
        self, tool: str, arguments: dict[str, Any], context: CallContext, outcome: str, seconds: float
    ) -> None:
        """Write one call down. `tool`: its qualified name; `outcome`: `ok`, or why not."""
        at = datetime.datetime.fromtimestamp(self._now(), datetime.UTC)
        line: dict[str, object] = {
            "time": at.isoformat(timespec="milliseconds"),
            "listener": self._listener,
            "subject": context.subject,
            "tool": tool,
            "outcome": outcome,
            "ms": round(seconds * 1e3, 3),
            "request_id": context.request_id,
        }
        if self._arguments:
            written = _encode(arguments)
            if len(written) <= MAX_ARGUMENTS:
                line["arguments"] = msgspec.Raw(written)
            else:
                line["arguments_bytes"] = len(written)
        self._log.write(_encode(line))
