"""Logging for the process: one line per record, as text for people or as JSON lines for machines.

Called by app once. Everything else uses `logging.getLogger("arion_tds.…")` with lazy arguments.
"""

from __future__ import annotations

import datetime
import logging
import sys
from typing import Literal

import msgspec

_encode = msgspec.json.Encoder().encode


class _Json(logging.Formatter):
    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._worker = {} if worker is None else {"worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            **self._worker,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _encode(line).decode()


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        # What comes from outside must not forge a second line; a traceback is ours and keeps its lines.
        record.msg, record.args = record.getMessage().replace("\r", "\\r").replace("\n", "\\n"), None
        return super().format(record)


def setup(level: str, style: Literal["text", "json"], worker: int | None = None) -> None:
    """Log to standard error from `level` upwards. `worker`: which of several processes this one is."""
    handler = logging.StreamHandler(sys.stderr)
    who = "" if worker is None else f"[{worker}] "
    text = _Text(f"%(asctime)s %(levelname)-7s {who}%(name)s: %(message)s")
    handler.setFormatter(_Json(worker) if style == "json" else text)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("aiohttp", "asyncio", "grpc"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
