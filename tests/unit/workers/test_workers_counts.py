"""What a worker has counted is kept for its successor, within bounds."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge

from arion_tds.workers import counts, summing
from arion_tds.workers.counts import Counts


def registry(lines: int = 1) -> CollectorRegistry:
    made = CollectorRegistry()
    calls = Counter("calls", "Calls", ["tool"], registry=made)
    for one in range(lines):
        calls.labels(str(one)).inc()
    Gauge("open", "Open", registry=made).set(7)
    return made


def kept(folder: Path) -> list[str]:
    raw = counts.read(folder, 3)
    return [] if raw is None else [one.name for one in summing.decode(raw)]


def test_counters_are_kept_and_gauges_are_not(tmp_path: Path) -> None:
    found, good = Counts(tmp_path, 3, {}).collect(registry())
    assert good
    assert [one.name for one in summing.decode(found)] == ["calls", "open"]
    assert kept(tmp_path) == ["calls"]


def test_what_nobody_has_kept_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "3.counts").write_bytes(b"cut off by a full di")
    found, _ = Counts(tmp_path, 3, {}).collect(registry())
    assert [one.name for one in summing.decode(found)] == ["calls", "open"]


def test_a_metric_of_too_many_lines_begins_anew(tmp_path: Path) -> None:
    Counts(tmp_path, 3, {}).collect(registry(counts.MAX_LINES // 2))  # each has a line that says when it began
    assert kept(tmp_path) == ["calls"]
    Counts(tmp_path, 3, {}).collect(registry(counts.MAX_LINES // 2 + 1))
    assert kept(tmp_path) == []


def test_nothing_stays_of_a_folder_that_nobody_needs_any_more(tmp_path: Path) -> None:
    Counts(tmp_path, 3, {}).collect(registry())
    counts.clear(tmp_path)
    assert not list(tmp_path.iterdir())
    assert counts.read(tmp_path, 3) is None
