"""The dashboard and the alert rules speak of metrics and labels that exist."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from arion_tds.metrics import Metrics

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"}


def known() -> dict[str, set[str]]:
    """Every series that the gateway has, with its labels and those that the scrape adds."""
    found = {name: {"instance", "job"} for name in PROCESS}
    for one in vars(Metrics()).values():
        if isinstance(one, MetricWrapperBase):
            for suffix in SUFFIXES[one._type]:
                found[one._name + suffix] = {*one._labelnames, "instance", "job"} | (
                    {"le"} if suffix == "_bucket" else set()
                )
    return found


def dashboard() -> Iterator[tuple[str, str]]:
    """Title and query of every panel, and the variables."""
    board = json.loads((DEPLOY / "grafana.json").read_text())
    for panel in board["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel.get("targets", ()))
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]


def alerts() -> Iterator[tuple[str, str]]:
    """Name and query of every rule."""
    for group in yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]:
        yield from ((rule["alert"], rule["expr"]) for rule in group["rules"])


@pytest.mark.parametrize(("where", "query"), [*dashboard(), *alerts()])
def test_a_query_names_metrics_and_labels_that_exist(where: str, query: str) -> None:
    series = known()
    used = re.findall(r"\b(arion_tds_\w+|process_\w+)(?:\{([^}]*)\})?", query)
    assert used, where
    for name, matchers in used:
        assert name in series, f"{where}: there is no {name}"
        for label in re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", matchers):
            assert label in series[name], f"{where}: {name} has no label {label}"
    labels = set.union(*(series[name] for name, _ in used))
    for grouped in re.findall(r"by \(([^)]*)\)", query):
        assert set(re.split(r",\s*", grouped)) <= labels, where


def test_panels_have_numbers_of_their_own_and_do_not_lie_on_each_other() -> None:
    panels = json.loads((DEPLOY / "grafana.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(cells)) == len(cells)


def test_every_alert_says_what_to_do() -> None:
    for group in yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in {"page", "ticket"}
            assert rule["for"]
            assert set(rule["annotations"]) == {"summary", "description"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_takes_the_rules_and_the_page() -> None:
    subprocess.run(["promtool", "check", "rules", str(DEPLOY / "alerts.yaml")], check=True, capture_output=True)
    done = subprocess.run(["promtool", "check", "metrics"], input=Metrics().page(), capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
