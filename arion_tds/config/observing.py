"""Keys of gateway.yaml that say what is noted of requests and calls: access log, metrics. Part of config.file."""

from __future__ import annotations

import pathlib
from typing import Literal

import pydantic
from pydantic import Field

from arion_tds.config.values import Model


class AccessLogConfig(Model):
    """One line per HTTP request of the MCP listeners. Arguments, results and tokens are never in it."""

    path: str = "stderr"
    """Absolute path of a file, or `stderr`. A file that is moved away is opened anew."""
    format: Literal["json", "text"] = "json"
    """`json`: an object per line; `text`: in the order of Envoy's."""
    max_buffer_bytes: int = Field(default=4 << 20, ge=1 << 16)
    """Lines that wait to be written; what goes beyond is dropped and counted (`arion_tds_access_log_dropped_total`)."""

    @pydantic.field_validator("path")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if value != "stderr" and (not pathlib.PurePath(value).is_absolute() or "\0" in value):
            msg = f"{value!r} is neither an absolute path nor stderr"
            raise ValueError(msg)
        return value


class MetricsConfig(Model):
    """What the metrics page may grow to."""

    tools: int = Field(default=100, ge=0, le=10_000)
    """Tools of a listener with lines of their own: the first ones called. The calls of all others count as `other`."""
