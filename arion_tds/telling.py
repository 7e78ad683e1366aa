"""The events of a process, from where they happen to the webhook that the config names.

In: `events` of the config, and the parts that something happens in. Out: a `Telling` that app starts and ends, or
nothing where the config has no `events`.
"""

from __future__ import annotations

import contextlib
import random
import secrets
import ssl
from collections.abc import Callable, Sequence

from arion_tds.backends.clusters import Clusters
from arion_tds.backends.mcp.pool import Upstreams
from arion_tds.catalog import Catalog
from arion_tds.config.file import FileConfig
from arion_tds.errors import ConfigError
from arion_tds.events import Events
from arion_tds.history import History
from arion_tds.metrics import Metrics
from arion_tds.webhook import OUTCOMES, Webhook


class Telling:
    """Built when there is an `events` in the config."""

    def __init__(self, webhook: Webhook, events: Events, metrics: Metrics) -> None:
        """Made by `of`."""
        self._webhook = webhook
        self._metrics = metrics
        self.events = events

    def running(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Send while the block runs."""
        return self._webhook.running()

    def follow(self, catalogs: Sequence[Catalog]) -> None:
        """These are the catalogs that there are now."""
        self.events.follow(catalogs)

    def measure(self) -> None:
        """Bring the gauge up to date."""
        self._metrics.events_waiting.set(len(self._webhook))


def of(config: FileConfig, metrics: Metrics, clock: Callable[[], float]) -> Telling | None:
    """What the config wants. ConfigError when a header's secret or a certificate cannot be read."""
    if config.events is None:
        return None
    try:
        settings = config.events.settings(f"/arion-tds/{config.node.cluster}/{config.node.id}")
    except (OSError, KeyError, UnicodeDecodeError, ssl.SSLError) as error:
        raise ConfigError([f"events: a secret or ca_file cannot be read: {error}"]) from error
    counters = {outcome: metrics.events.labels(outcome) for outcome in OUTCOMES}
    rng = random.Random()  # noqa: S311 - jitter, not secrets
    webhook = Webhook(settings, lambda outcome, count: counters[outcome].inc(count), secrets.token_hex(8), rng)
    return Telling(webhook, Events(webhook.put, config.events.types, clock), metrics)


def connect(telling: Telling, history: History, clusters: Clusters, upstreams: Upstreams) -> None:
    """Let the parts tell of what happens in them."""
    telling.events.hear(history)
    clusters.told = telling.events.endpoint
    upstreams.told = telling.events.server
