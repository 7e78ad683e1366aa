"""Every metric's name and help text, in one place.

In: events from pipelines and fronts. Out: the Prometheus text page. One `Metrics` per process, made by app; label
values are listeners, scopes, types, backends and outcomes, all of which the config or this code bounds.
"""

from __future__ import annotations

import contextlib
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LATENCY: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

# What the values of several workers come to on the page of all.
_SUM: Final = "sum"
_MAX: Final = "max"
_MIN: Final = "min"

OTHER: Final = "other"
"""The tool label of all calls whose tool has no line of its own."""


class ToolCalls:
    """One listener's calls by tool: the first `limit` tools that are called have lines of their own, the rest share.

    A counter cannot change its name while it counts, so the line is given once; what is called at all is called early.
    """

    __slots__ = ("_counter", "_limit", "_lines", "_listener", "_tools")

    def __init__(self, counter: Counter, listener: str, limit: int) -> None:
        """`counter` with the labels listener, tool, outcome."""
        self._counter = counter
        self._listener = listener
        self._tools: dict[str, None] = {}
        self._lines: dict[tuple[str, bool], Counter] = {}
        self._limit = limit

    def count(self, tool: str, *, good: bool) -> None:
        """Count a call of the tool (its qualified name)."""
        line = self._lines.get((tool, good))
        if line is None:
            line = self._line(tool, good=good)
        line.inc()

    def _line(self, tool: str, *, good: bool) -> Counter:
        if tool not in self._tools and tool != OTHER:
            if len(self._tools) >= self._limit:
                return self._line(OTHER, good=good)
            self._tools[tool] = None
        found = self._lines.get((tool, good))
        if found is None:
            found = self._lines[tool, good] = self._counter.labels(self._listener, tool, "ok" if good else "error")
        return found


class Metrics:
    """The process's metrics. Counters are labelled children of the attributes below."""

    def __init__(self, tool_limit: int = 100) -> None:
        """A registry of its own, so that two gateways in one process do not meet. `tool_limit`: see `ToolCalls`."""
        self.registry = CollectorRegistry()
        self.tool_limit = tool_limit
        r = self.registry
        ProcessCollector(registry=r)
        self.ready = Gauge("arion_tds_ready", "1 once the gateway is ready", multiprocess_mode=_MAX, registry=r)
        self.tasks = Gauge("arion_tds_tasks", "Tasks of the event loop", multiprocess_mode=_SUM, registry=r)
        self.tool_calls = Counter(
            "arion_tds_tool_calls",
            "Tool calls by tool; `other` are those of tools without a line of their own (metrics.tools)",
            ["listener", "tool", "outcome"],
            registry=r,
        )
        self.request_seconds = Histogram(
            "arion_tds_request_seconds",
            "Seconds from a request's message to the end of its answer (of a notification stream: to its beginning)",
            ["listener", "method"],
            buckets=_LATENCY,
            registry=r,
        )
        self.rejections = Counter(
            "arion_tds_rejections", "Rejected resources by class of reason", ["type", "reason"], registry=r
        )
        self.sessions = Counter("arion_tds_sessions", "Sessions issued to handshake clients", registry=r)
        self.cluster_endpoints = Gauge(
            "arion_tds_cluster_endpoints",
            "Endpoints of a cluster by state",
            ["cluster", "state"],
            multiprocess_mode=_MAX,
            registry=r,
        )
        self.cluster_active = Gauge(
            "arion_tds_cluster_active",
            "Requests of a cluster under way",
            ["cluster"],
            multiprocess_mode=_SUM,
            registry=r,
        )
        self.cluster_events = Counter(
            "arion_tds_cluster_events", "Calls, retries and overflows of a cluster", ["cluster", "event"], registry=r
        )
        self.audit_dropped = Counter(
            "arion_tds_audit_dropped", "Lines of the audit log that were not written", registry=r
        )
        self.access_log_dropped = Counter(
            "arion_tds_access_log_dropped", "Lines of the access log that were not written", registry=r
        )
        self.events = Counter("arion_tds_events", "Events by what became of them", ["outcome"], registry=r)
        self.events_waiting = Gauge(
            "arion_tds_events_waiting", "Events that wait for the webhook", multiprocess_mode=_SUM, registry=r
        )
        self.spans = Counter(
            "arion_tds_spans",
            "Spans of traces by what became of them (exported, overflow: too many waited, failed: could not be sent)",
            ["outcome"],
            registry=r,
        )
        self.calls = Counter("arion_tds_calls", "Tool calls by outcome", ["listener", "backend", "outcome"], registry=r)
        self.call_seconds = Histogram(
            "arion_tds_call_seconds",
            "Seconds from the call's arrival to its result",
            ["listener", "backend"],
            buckets=_LATENCY,
            registry=r,
        )
        self.executions = Counter(
            "arion_tds_executions", "Programs run in code mode by outcome", ["listener", "outcome"], registry=r
        )
        self.execution_seconds = Histogram(
            "arion_tds_execution_seconds",
            "Seconds from a program's arrival to its result, waiting included",
            ["listener"],
            buckets=_LATENCY,
            registry=r,
        )
        self.searches = Counter("arion_tds_searches", "Searches by way", ["listener", "via"], registry=r)
        self.tools = Gauge("arion_tds_tools", "Tools served", ["scope"], multiprocess_mode=_MAX, registry=r)
        self.catalog_tokens = Gauge(
            "arion_tds_catalog_tokens",
            "Tokens of all tool definitions of the scope",
            ["scope"],
            multiprocess_mode=_MAX,
            registry=r,
        )
        self.embeddings = Counter(
            "arion_tds_embeddings", "Requests for embeddings by outcome", ["scope", "of", "outcome"], registry=r
        )
        self.vectors = Gauge(
            "arion_tds_vectors", "Tools that search knows by meaning", ["scope"], multiprocess_mode=_MAX, registry=r
        )
        self.revision = Gauge(
            "arion_tds_revision", "Publications of the scope since start", ["scope"], multiprocess_mode=_MAX, registry=r
        )
        self.requests = Counter(
            "arion_tds_requests", "HTTP requests answered", ["listener", "method", "status", "era"], registry=r
        )
        self.dropped = Counter(
            "arion_tds_dropped", "Messages dropped for clients that read too slowly", ["listener", "what"], registry=r
        )
        self.refused = Counter(
            "arion_tds_refused", "Clients turned away or cut off, by reason", ["listener", "what"], registry=r
        )
        self.auth = Counter(
            "arion_tds_auth", "Tokens verified or missing, by outcome", ["listener", "outcome"], registry=r
        )
        self.jwks_fetches = Counter(
            "arion_tds_jwks_fetches", "Fetches of an issuer's keys", ["listener", "provider", "outcome"], registry=r
        )
        self.jwks_age = Gauge(
            "arion_tds_jwks_age_seconds",
            "Seconds since an issuer's keys were last had (-1: never)",
            ["listener", "provider"],
            multiprocess_mode=_MAX,
            registry=r,
        )
        self.resources = Counter(
            "arion_tds_resources", "Delivered resources by verdict", ["type", "verdict"], registry=r
        )
        self.mcp_servers = Gauge(
            "arion_tds_mcp_servers", "MCP servers in use by state", ["state"], multiprocess_mode=_MAX, registry=r
        )
        self.mcp_refused = Gauge(
            "arion_tds_mcp_servers_asked_again",
            "MCP servers that could not be asked, and are asked again",
            multiprocess_mode=_MAX,
            registry=r,
        )
        self.mcp_lists = Counter(
            "arion_tds_mcp_lists", "Tool lists asked of MCP servers by outcome", ["outcome"], registry=r
        )
        self.problems = Gauge("arion_tds_problems", "Resources that stand rejected", multiprocess_mode=_MAX, registry=r)
        self.streams = Gauge(
            "arion_tds_streams", "Open notification streams", ["listener"], multiprocess_mode=_SUM, registry=r
        )
        self.config_generation = Gauge(
            "arion_tds_config_generation",
            "Configs taken into use since start, the first included",
            multiprocess_mode=_MAX,
            registry=r,
        )
        self.config_refused = Gauge(
            "arion_tds_config_refused",
            "1 while the newest config file stands refused",
            multiprocess_mode=_MAX,
            registry=r,
        )
        self.cache_age = Gauge(
            "arion_tds_cache_age_seconds",
            "Age of content served from disk that the control plane has not agreed to yet (-1: there is none)",
            multiprocess_mode=_MAX,
            registry=r,
        )
        self.cache_left_out = Gauge(
            "arion_tds_cache_left_out",
            "Changes not kept on disk since start, for want of room",
            multiprocess_mode=_SUM,
            registry=r,
        )
        self._of_control_plane(r)
        self._of_workers(r)

    def _of_control_plane(self, r: CollectorRegistry) -> None:
        self.xds_connected = Gauge(
            "arion_tds_xds_connected", "1 while the control plane's stream is up", multiprocess_mode=_MIN, registry=r
        )
        self.xds_attempts = Gauge(
            "arion_tds_xds_attempts", "Streams tried since start", multiprocess_mode=_SUM, registry=r
        )
        self.xds_age = Gauge(
            "arion_tds_xds_last_response_age_seconds",
            "Seconds since the control plane's last response (-1: none yet)",
            multiprocess_mode=_MAX,
            registry=r,
        )
        self.xds_responses = Gauge(
            "arion_tds_xds_responses",
            "Responses since start by what became of them",
            ["type", "answer"],
            multiprocess_mode=_SUM,
            registry=r,
        )
        self.push_seconds = Histogram(
            "arion_tds_push_seconds",
            "Seconds from a response's arrival to its content being served",
            ["type"],
            buckets=_LATENCY,
            registry=r,
        )

    def _of_workers(self, r: CollectorRegistry) -> None:
        self.workers = Gauge("arion_tds_workers", "Processes that serve", multiprocess_mode=_SUM, registry=r)
        self.workers.set(1)
        self.worker_failures = Counter(
            "arion_tds_worker_failures",
            "Questions and notes to other workers, and counts to be kept, that came to nothing",
            ["what"],
            registry=r,
        )

    def forget(self, scope: str) -> None:
        """The scope is served no longer: what is said of it goes."""
        for gauge in (self.tools, self.revision, self.catalog_tokens, self.vectors):
            with contextlib.suppress(KeyError):
                gauge.remove(scope)

    def page(self) -> bytes:
        """The Prometheus text page."""
        return generate_latest(self.registry)
