"""Every metric's name and help text, in one place.

In: events from pipelines and fronts. Out: the Prometheus text page. One `Metrics` per process, made by app; label
values are listeners, scopes, types, backends and outcomes, all of which the config or this code bounds.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LATENCY: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The process's metrics. Counters are labelled children of the attributes below."""

    def __init__(self) -> None:
        """A registry of its own, so that two gateways in one process do not meet."""
        self.registry = CollectorRegistry()
        r = self.registry
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
        self.tools = Gauge("arion_tds_tools", "Tools served", ["scope"], registry=r)
        self.catalog_tokens = Gauge(
            "arion_tds_catalog_tokens", "Tokens of all tool definitions of the scope", ["scope"], registry=r
        )
        self.embeddings = Counter(
            "arion_tds_embeddings", "Requests for embeddings by outcome", ["scope", "of", "outcome"], registry=r
        )
        self.vectors = Gauge("arion_tds_vectors", "Tools that search knows by meaning", ["scope"], registry=r)
        self.revision = Gauge("arion_tds_revision", "Publications of the scope since start", ["scope"], registry=r)
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
            registry=r,
        )
        self.resources = Counter(
            "arion_tds_resources", "Delivered resources by verdict", ["type", "verdict"], registry=r
        )
        self.mcp_servers = Gauge("arion_tds_mcp_servers", "MCP servers in use by state", ["state"], registry=r)
        self.mcp_refused = Gauge(
            "arion_tds_mcp_servers_asked_again", "MCP servers that could not be asked, and are asked again", registry=r
        )
        self.mcp_lists = Counter(
            "arion_tds_mcp_lists", "Tool lists asked of MCP servers by outcome", ["outcome"], registry=r
        )
        self.problems = Gauge("arion_tds_problems", "Resources that stand rejected", registry=r)
        self.streams = Gauge("arion_tds_streams", "Open notification streams", ["listener"], registry=r)
        self.cache_age = Gauge(
            "arion_tds_cache_age_seconds",
            "Age of content served from disk that the control plane has not agreed to yet (-1: there is none)",
            registry=r,
        )
        self.cache_left_out = Gauge(
            "arion_tds_cache_left_out", "Changes not kept on disk since start, for want of room", registry=r
        )
        self.xds_connected = Gauge("arion_tds_xds_connected", "1 while the control plane's stream is up", registry=r)
        self.xds_attempts = Gauge("arion_tds_xds_attempts", "Streams tried since start", registry=r)
        self.xds_age = Gauge(
            "arion_tds_xds_last_response_age_seconds",
            "Seconds since the control plane's last response (-1: none yet)",
            registry=r,
        )
        self.xds_responses = Gauge(
            "arion_tds_xds_responses", "Responses since start by what became of them", ["type", "answer"], registry=r
        )
        self.push_seconds = Histogram(
            "arion_tds_push_seconds",
            "Seconds from a response's arrival to its content being served",
            ["type"],
            buckets=_LATENCY,
            registry=r,
        )

    def page(self) -> bytes:
        """The Prometheus text page."""
        return generate_latest(self.registry)
