"""Every benchmark with the figures that its row of the table shows: what `make bench` runs."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Figure:
    """A number in a benchmark's line of JSON: `/` leads into nested objects."""

    path: str
    words: str
    unit: str = ""
    at_most: float | None = None
    """The bar, where there is one."""
    at_least: float | None = None

    def of(self, line: dict[str, object]) -> object:
        """The value, or None where the line has none."""
        found: object = line
        for key in self.path.split("/"):
            found = found.get(key) if isinstance(found, dict) else None
        return found


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A module of this package, its arguments for a figure and for a smoke, and what the table shows of it."""

    module: str
    words: str
    figures: tuple[Figure, ...]
    full: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The module, and what it is asked for."""
        return " ".join((self.module, *self.full))


BENCHMARKS = (
    Benchmark(
        "rest_call",
        "REST tool called, 16 at once",
        (
            Figure("cpu_ms_per_call", "CPU per call", "ms", 0.30),
            Figure("calls_per_second", "calls per second, client on the same cores", "/s"),
        ),
        quick=("800",),
    ),
    Benchmark(
        "mcp_call",
        "MCP tool called through the gateway, 16 at once",
        (
            Figure("cpu_ms_per_call", "CPU per call", "ms", 0.40),
            Figure("calls_per_second", "calls per second, client on the same cores", "/s"),
        ),
        quick=("800",),
    ),
    Benchmark(
        "catalog",
        "1,000 tools from the wire to clients",
        (
            Figure("list_all_cpu_ms", "CPU of listing all pages", "ms", 0.5),
            Figure("gzip_list_all_cpu_ms", "the same, gzip", "ms", 0.5),
            Figure("zstd_list_all_cpu_ms", "the same, zstd", "ms", 0.5),
            Figure("rss_mb", "memory", "MB"),
        ),
        full=("1000",),
        quick=("200",),
    ),
    Benchmark(
        "catalog",
        "10,000 tools from the wire to clients",
        (
            Figure("start_to_ready_s", "start to ready", "s"),
            Figure("idle_rss_mb", "memory, nothing pushed", "MB"),
            Figure("wire_to_served_cpu_s", "CPU from wire to served", "s"),
            Figure("rss_mb", "memory", "MB", 120),
            Figure("list_all_cpu_ms", "CPU of listing all pages", "ms"),
            Figure("change_cpu_ms", "CPU of one changed tool", "ms", 1.0),
            Figure("change_visible_p50_ms", "change pushed to visible, median", "ms", 3),
            Figure("change_visible_p99_ms", "change pushed to visible, p99", "ms", 15),
        ),
        full=("10000",),
        quick=("400",),
    ),
    Benchmark(
        "stall",
        "longest turn of the event loop while 5,000 tools arrive",
        (
            Figure("longest_turn_cpu_ms", "CPU of the longest turn", "ms"),
            Figure("p99_turn_cpu_ms", "CPU of a turn, p99", "ms"),
        ),
        full=("5000",),
        quick=("200",),
    ),
    Benchmark(
        "cold_start",
        "10,000 tools served again without a control plane",
        (
            Figure("served_s", "start to served", "s", 3),
            Figure("cpu_s", "CPU", "s"),
            Figure("file_mb", "file", "MB"),
        ),
        full=("10000",),
        quick=("200",),
    ),
    Benchmark(
        "discovery",
        "an MCP server of 1,000 tools pushed",
        (
            Figure("first_wall_to_listed_s", "push to listed", "s", 1),
            Figure("first_cpu_s", "CPU", "s"),
        ),
        full=("1000",),
        quick=("100",),
    ),
    Benchmark(
        "mcp_survival",
        "three MCP servers, each in turn killed, frozen, slow",
        (
            Figure("a killed/lost", "calls of the others lost, one killed", ""),
            Figure("a frozen/lost", "one frozen", ""),
            Figure("a slow/lost", "one slow", ""),
        ),
        quick=("0.3",),
    ),
    Benchmark(
        "openapi",
        "a document of 1,000 operations",
        (
            Figure("documents/synthetic-1000/cpu_ms", "CPU from bytes to tools, in a worker", "ms"),
            Figure("largest_through_worker/gateway_cpu_ms", "CPU of the gateway", "ms"),
            Figure("build_request_us", "CPU of building one request", "µs"),
        ),
    ),
    Benchmark(
        "search",
        "search among 10,000 tools",
        (
            Figure("10000/query_p50", "CPU of a query, median", "ms"),
            Figure("10000/query_p99", "CPU of a query, p99", "ms"),
            Figure("10000/memory_mb", "memory of the index", "MB"),
        ),
        full=("--sizes", "10000"),
        quick=("--sizes", "10000"),
    ),
    Benchmark(
        "search_eval",
        "how well search finds tools",
        (Figure("mean/arion-tds/R@5", "right tool among the first five", "%"),),
        quick=("--queries", "5"),
    ),
    Benchmark(
        "disclosure",
        "tokens of 1,000 tools, listed and disclosed",
        (
            Figure("every_tool_listed_tokens", "every tool listed", "tokens"),
            Figure("disclosed_list_tokens", "disclosed", "tokens"),
            Figure("saved_percent", "saved", "%"),
        ),
        full=("1000",),
        quick=("100",),
    ),
    Benchmark(
        "codemode",
        "programs that call three tools, eight at once",
        (
            Figure("warm_beyond_tools_p50_ms", "one program beyond its tools, median", "ms"),
            Figure("executions_per_second", "programs per second", "/s"),
            Figure("cold_start_p50_ms", "sandbox from nothing, median", "ms"),
        ),
        quick=("16",),
    ),
    Benchmark(
        "rbac",
        "tokens and policies, 10,000 tools",
        (
            Figure("call_extra_us", "extra CPU per call", "µs"),
            Figure("list_extra_per_listed_tool_us", "extra CPU per listed tool", "µs"),
        ),
        full=("10000",),
        quick=("200",),
    ),
    Benchmark(
        "tracing",
        "REST tool called, with spans, 16 at once",
        (
            Figure("added_us_all_sampled", "extra CPU per call, every trace sampled", "µs"),
            Figure("added_us_one_percent_sampled", "one trace in a hundred", "µs"),
        ),
        quick=("320",),
    ),
    Benchmark(
        "admin",
        "the operator's pages with 10,000 tools",
        (Figure("longest_turn_cpu_ms", "CPU of the longest turn", "ms"),),
        full=("10000",),
        quick=("200",),
    ),
    Benchmark(
        "slow_clients",
        "a client among 1,000 slow ones",
        (
            Figure("alone_p99_ms", "latency alone, p99", "ms"),
            Figure("among_p99_ms", "latency among them, p99", "ms"),
        ),
        quick=("30", "1"),
    ),
    Benchmark(
        "growth",
        "one changed tool, by the size of the catalog",
        (
            Figure("by_tools/100/change_cpu_ms", "CPU of one change among 100 tools", "ms", 1.0),
            Figure("by_tools/10000/change_cpu_ms", "among 10,000", "ms", 1.0),
            Figure("by_tools/50000/change_cpu_ms", "among 50,000", "ms"),
            Figure("by_tools/50000/tool_kb", "memory per tool", "KB"),
        ),
        full=("changes",),
        quick=("changes", "--small"),
    ),
    Benchmark(
        "growth",
        "listeners with a scope each",
        (
            Figure("by_scopes/1000/scope_kb", "memory per scope, 1,000 of them", "KB"),
            Figure("by_scopes/1000/change_cpu_ms", "CPU of one change in one of 1,000", "ms"),
        ),
        full=("scopes",),
        quick=("scopes", "--small"),
    ),
    Benchmark(
        "growth",
        "open notification streams",
        (
            Figure("by_streams/5000/stream_kb", "memory per stream, 5,000 idle ones", "KB", 20),
            Figure("by_streams/5000/change_cpu_ms", "CPU of telling 5,000 of a change", "ms"),
            Figure("by_streams/5000/last_told_p50_ms", "push to the last of 5,000 told, median", "ms"),
        ),
        full=("streams",),
        quick=("streams", "--small"),
    ),
    Benchmark(
        "growth",
        "1,000 updates a second among 10,000 tools",
        (
            Figure("by_updates_per_second/1000_different/update_cpu_ms", "CPU per update", "ms"),
            Figure("by_updates_per_second/1000_different/list_changed_per_s", "list_changed to a client", "/s", 10.5),
            Figure("by_updates_per_second/1000_same/update_cpu_ms", "CPU per update of one tool", "ms"),
        ),
        full=("updates",),
        quick=("updates", "--small"),
    ),
    Benchmark(
        "push_latency",
        "a pushed change, until a client hears of it, 10,000 tools",
        (
            Figure("push_to_list_changed_p50_ms", "push to list_changed, median", "ms", 3),
            Figure("push_to_list_changed_p99_ms", "push to list_changed, p99", "ms", 15),
            Figure("healthz_p99_ms", "GET /healthz in between, p99", "ms"),
        ),
        full=("10000",),
        quick=("200", "5"),
    ),
    Benchmark(
        "fanout",
        "one change to 500 gateways, from the example control plane",
        (
            Figure("500/cpu_us_per_gateway", "its CPU per gateway", "µs"),
            Figure("500/p50_ms", "push to the median gateway", "ms"),
            Figure("500/p99_ms", "push to the 99th of a hundred", "ms"),
            Figure("500/last_ms", "push to the last", "ms"),
            Figure("500/stream_kb", "its memory per stream", "KB"),
            Figure("500/storm/cpu_ms_per_gateway", "its CPU for a new gateway, 1,000 tools", "ms"),
            Figure("500/again/cpu_ms_per_gateway", "its CPU for one that has them and reconnects", "ms"),
        ),
        full=("500",),
        quick=("20",),
    ),
    Benchmark(
        "workers",
        "two workers against one, REST tool, 64 at once",
        (
            Figure("several/calls_per_second", "calls per second of two, client on the same cores", "/s"),
            Figure("ratio_of_cores", "two on two cores against one on one, client included", at_least=1.8),
            Figure("ratio", "two against one whose client has another core"),
            Figure("possible", "what that can be at best on these cores"),
            Figure("ratio_by_cpu", "by CPU per call alone", at_least=1.8),
        ),
        full=("10",),
        quick=("1",),
    ),
)
