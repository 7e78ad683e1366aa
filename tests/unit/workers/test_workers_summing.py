"""Pages of several processes become one: counters add up, gauges become what they say of themselves."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics import MetricWrapperBase

from arion_tds.metrics import Metrics
from arion_tds.workers import summing


class Process:
    """What one process counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.calls = Counter("calls", "Calls", ["tool"], registry=self.registry)
        self.seconds = Histogram("seconds", "Seconds", buckets=(0.1, 1), registry=self.registry)
        self.open = Gauge("open", "Open", registry=self.registry, multiprocess_mode="sum")
        self.version = Gauge("version", "Version", ["scope"], registry=self.registry, multiprocess_mode="max")
        self.up = Gauge("up", "Up", registry=self.registry, multiprocess_mode="min")


def together(*processes: Process) -> list[str]:
    """The lines of their common page, without those that say when something began."""
    mode = summing.modes(vars(processes[0]).values())
    parts = [summing.decode(summing.encode(summing.collect(one.registry))) for one in processes]
    page = generate_latest(summing.Summed(parts, mode)).decode()
    return [line for line in page.splitlines() if "_created" not in line and not line.startswith("#")]


def test_counters_and_histograms_are_added_up_by_name_and_labels() -> None:
    one, other = Process(), Process()
    one.calls.labels("a").inc(2)
    other.calls.labels("a").inc(3)
    other.calls.labels("b").inc()
    one.seconds.observe(0.05)
    other.seconds.observe(0.5)
    found = together(one, other)
    assert [line for line in found if line.startswith(("calls", "seconds"))] == [
        'calls_total{tool="a"} 5.0',
        'calls_total{tool="b"} 1.0',
        'seconds_bucket{le="0.1"} 1.0',
        'seconds_bucket{le="1.0"} 2.0',
        'seconds_bucket{le="+Inf"} 2.0',
        "seconds_count 2.0",
        "seconds_sum 0.55",
    ]


def test_gauges_become_the_sum_the_greatest_or_the_least() -> None:
    one, other = Process(), Process()
    for process, value in ((one, 3), (other, 5)):
        process.open.set(value)
        process.version.labels("s").set(value)
        process.up.set(value)
    assert [line for line in together(one, other) if line.startswith(("open", "version", "up"))] == [
        "open 8.0",
        'version{scope="s"} 5.0',
        "up 3.0",
    ]


def test_the_page_of_one_alone_is_its_own_page() -> None:
    metrics = Metrics()
    metrics.calls.labels("a", "rest", "ok").inc()
    parts = [summing.decode(summing.encode(summing.collect(metrics.registry)))]
    summed = generate_latest(summing.Summed(parts, summing.modes(vars(metrics).values())))
    volatile = ("process_cpu_seconds", "process_resident", "process_virtual", "process_open")
    own, found = (
        [line for line in page.decode().splitlines() if not line.startswith(volatile)]
        for page in (metrics.page(), summed)
    )
    assert found == own


@pytest.mark.parametrize("gauge", [one for one in vars(Metrics()).values() if isinstance(one, Gauge)], ids=str)
def test_every_gauge_says_what_several_of_it_come_to(gauge: MetricWrapperBase) -> None:
    assert summing.modes([gauge])[gauge._name] in {"sum", "max", "min"}
