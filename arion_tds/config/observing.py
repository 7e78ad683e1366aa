"""Keys of gateway.yaml that say what is told of requests, calls and pushes: access log, events, traces, metrics."""

from __future__ import annotations

import pathlib
import re
import ssl
from typing import Literal

import pydantic
from pydantic import Field
from yarl import URL

from arion_tds.config.values import Model, Seconds, Secret, Share
from arion_tds.events import EventType
from arion_tds.tracing import settings as tracing
from arion_tds.webhook import Settings

_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")


def checked_url(value: str) -> str:
    """A URL that things are sent to. ValueError when it is none, or holds a password."""
    if re.match(r"https?://[^/\s@]+(/\S*)?\Z", value) is None:
        msg = f"{value!r} is not an http or https URL without user and password"
        raise ValueError(msg)
    return value


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
        return checked_url(value)

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


class TracingConfig(Model):
    """Spans of requests, calls and pushes, sent to a collector over OTLP/HTTP as JSON (docs/tracing.md)."""

    endpoint: str
    """URL of the collector; without a path spans go to `/v1/traces`."""
    headers: dict[str, Secret] = Field(default_factory=dict)
    """Sent with every batch, never shown."""
    ca_file: str | None = None
    """Certificates to trust for an https endpoint; the system's when unset."""
    service_name: str = Field(default="arion-tds", min_length=1)
    """`service.name` of all spans. `service.instance.id` is `node.id`, `service.namespace` is `node.cluster`."""
    sample_ratio: Share = 1.0
    """Of the traces that begin here, the share that has spans. A caller's trace has them if the caller sampled it."""
    max_queue: int = Field(default=2048, ge=1, le=1_000_000)
    """Spans that wait; beyond that new ones are dropped and counted (`arion_tds_spans_total`)."""
    max_batch: int = Field(default=512, ge=1, le=10_000)
    """Spans of a batch."""
    batch_interval: Seconds = 5.0
    """A batch that is not full is sent after this."""
    timeout: Seconds = 10.0
    """For one try. A batch has five, with pauses from a second doubling up to a minute."""

    @pydantic.field_validator("endpoint")
    @classmethod
    def _url(cls, value: str) -> str:
        return checked_url(value)

    @pydantic.field_validator("headers")
    @classmethod
    def _names(cls, value: dict[str, Secret]) -> dict[str, Secret]:
        for name in value:
            if _HEADER.match(name) is None:
                msg = f"{name!r} is not a header name"
                raise ValueError(msg)
        return value

    def settings(self) -> tracing.Settings:
        """As the value that the exporter takes. OSError, KeyError or ValueError when a secret cannot be used."""
        url = URL(self.endpoint)
        return tracing.Settings(
            url=str(url.with_path(tracing.PATH) if url.path == "/" else url),
            headers=tuple((name, self._value(name, secret)) for name, secret in self.headers.items()),
            tls=None if self.ca_file is None else ssl.create_default_context(cafile=self.ca_file),
            batch_interval=self.batch_interval,
            max_batch=self.max_batch,
            max_queue=self.max_queue,
            timeout=self.timeout,
        )

    @staticmethod
    def _value(name: str, secret: Secret) -> str:
        """A header's value. ValueError, which does not quote it, when a header cannot carry it."""
        value = secret.read().decode()
        if not value.isprintable() or not value.isascii():
            msg = f"the value of header {name!r} holds characters that a header cannot carry"
            raise ValueError(msg)
        return value


class MetricsConfig(Model):
    """What the metrics page may grow to."""

    tools: int = Field(default=100, ge=0, le=10_000)
    """Tools of a listener with lines of their own: the first ones called. The calls of all others count as `other`."""
