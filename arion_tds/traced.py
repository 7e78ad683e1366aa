"""The traces of a process, from where spans are made to the collector that the config names.

In: `tracing` of the config. Out: a `Traced` that app starts and ends, or nothing where the config has no `tracing`: the
exporter is not even loaded then.
"""

from __future__ import annotations

import contextlib
import os
import random
import ssl
import time
from typing import TYPE_CHECKING

from arion_tds import __version__
from arion_tds.config.file import FileConfig
from arion_tds.errors import ConfigError
from arion_tds.metrics import Metrics
from arion_tds.server.spans import Spans

if TYPE_CHECKING:
    from arion_tds.tracing.export import Exporter
    from arion_tds.tracing.spans import Tracer, Value


class Traced:
    """Built when there is a `tracing` in the config."""

    def __init__(self, exporter: Exporter, tracer: Tracer) -> None:
        """Made by `of`."""
        self._exporter = exporter
        self.tracer = tracer

    def running(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Send while the block runs."""
        return self._exporter.running()

    def spans(self, listener: str) -> Spans:
        """What tells of a listener's requests, by its name."""
        return Spans(self.tracer, listener)


def of(config: FileConfig, metrics: Metrics) -> Traced | None:
    """What the config wants. ConfigError when a header's secret or a certificate cannot be read."""
    if config.tracing is None:
        return None
    from arion_tds.tracing import export, otlp
    from arion_tds.tracing.spans import Tracer

    wanted, node = config.tracing, config.node
    try:
        settings = wanted.settings()
    except (OSError, KeyError, UnicodeDecodeError, ValueError, ssl.SSLError) as error:
        raise ConfigError([f"tracing: a secret or ca_file cannot be used: {error}"]) from error
    counters = {outcome: metrics.spans.labels(outcome) for outcome in export.OUTCOMES}
    resource: dict[str, Value] = {
        "service.name": wanted.service_name,
        "service.namespace": node.cluster,
        "service.instance.id": node.id,
        "service.version": __version__,
        "process.pid": os.getpid(),
    }
    rng = random.Random()  # noqa: S311 - ids and jitter, not secrets
    request = otlp.Request(resource, "arion_tds", __version__)
    exporter = export.Exporter(settings, request, lambda outcome, count: counters[outcome].inc(count), rng)
    tracer = Tracer(exporter.put, ratio=wanted.sample_ratio, clock=time.time_ns, random_bits=rng.getrandbits)
    return Traced(exporter, tracer)
