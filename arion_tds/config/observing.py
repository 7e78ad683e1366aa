"""Keys of gateway.yaml that say what is told of requests, calls and pushes: access log, events, metrics."""

from __future__ import annotations

import pathlib
import re
import ssl
from typing import Literal

import pydantic
from pydantic import Field

from arion_tds.config.values import Model, Seconds, Secret
from arion_tds.events import EventType
from arion_tds.webhook import Settings


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


class EventsConfig(Model):
    """What happens, told to a webhook as CloudEvents 1.0 (docs/events.md)."""

    webhook: str
    """URL that batches are POSTed to (`application/cloudevents-batch+json`)."""
    headers: dict[str, Secret] = Field(default_factory=dict)
    """Sent with every batch, never shown."""
    ca_file: str | None = None
    """Certificates to trust for an https webhook; the system's when unset."""
    types: tuple[EventType, ...] = tuple(EventType)
    """Which events are sent; all when unset."""
    batch_interval: Seconds = 3.0
    """A batch that is not full is sent after this."""
    max_batch: int = Field(default=100, ge=1, le=10_000)
    """Events of a batch."""
    max_batch_bytes: int = Field(default=1 << 20, ge=1024)
    """Bytes of a batch; a larger event is sent alone."""
    max_queue: int = Field(default=10_000, ge=1, le=1_000_000)
    """Events that wait; beyond that the oldest are dropped and counted (`arion_tds_events_total`)."""
    timeout: Seconds = 10.0
    """For one try."""
    retries: int = Field(default=8, ge=0, le=100)
    """Tries of a batch after the first, with pauses from half a second doubling up to half a minute."""

    @pydantic.field_validator("webhook")
    @classmethod
    def _url(cls, value: str) -> str:
        if re.match(r"https?://[^/\s@]+(/\S*)?\Z", value) is None:
            msg = f"{value!r} is not an http or https URL without user and password"
            raise ValueError(msg)
        return value

    def settings(self, source: str) -> Settings:
        """As the value that the webhook takes. OSError or KeyError when a secret is not there."""
        return Settings(
            url=self.webhook,
            source=source,
            headers=tuple((name, secret.read().decode()) for name, secret in self.headers.items()),
            tls=None if self.ca_file is None else ssl.create_default_context(cafile=self.ca_file),
            batch_interval=self.batch_interval,
            max_batch=self.max_batch,
            max_batch_bytes=self.max_batch_bytes,
            max_queue=self.max_queue,
            timeout=self.timeout,
            retries=self.retries,
        )


class MetricsConfig(Model):
    """What the metrics page may grow to."""

    tools: int = Field(default=100, ge=0, le=10_000)
    """Tools of a listener with lines of their own: the first ones called. The calls of all others count as `other`."""
