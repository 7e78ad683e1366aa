"""What the pages say exists: links, commands, metrics, config keys, documents, the words of explain."""

from __future__ import annotations

import pathlib
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from arion_tds import offline
from arion_tds.admin.facts import State
from arion_tds.cli import main
from arion_tds.config import judging
from arion_tds.metrics import Metrics

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
HOWTO = sorted((ROOT / "docs" / "howto").glob("*.md"))
WHOLE: dict[str, Any] = {
    "control_plane": {"address": "127.0.0.1:50051"},
    "listeners": [
        {
            "name": "tenant-a",
            "address": "127.0.0.1:8080",
            "mcp_gateway": {
                "server_info": {"name": "tenant-a-mcp", "version": "1"},
                "tools_mode": {},
                "tds": {"config_name": "main"},
            },
        }
    ],
    "clusters": [{"name": "weather_api", "endpoints": ["http://127.0.0.1:4001"]}],
}


def named(page: pathlib.Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: pathlib.Path) -> set[str]:
    """The fragments of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: pathlib.Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: there is no {target}"
        if fragment and target.suffix == ".md":
            assert fragment in anchors(target), f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_and_metrics_exist(page: pathlib.Path) -> None:
    text = page.read_text()
    for command in re.findall(r"(?:^|`|\$ )arion-tds ([a-z]+)\b", text, re.MULTILINE):
        assert command in main.COMMANDS
    known = set()
    for one in vars(Metrics()).values():
        if isinstance(one, MetricWrapperBase):
            known |= {one._name, f"{one._name}_total"}
    for metric in re.findall(r"`(arion_tds_\w+)", text):
        assert metric in known


def blocks(first: str) -> Iterator[Any]:
    """Every YAML block of the how-to pages that begins so."""
    for page in HOWTO:
        for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)):
            if block.startswith(first):
                yield pytest.param(block, id=f"{page.stem}-{number}")


@pytest.mark.parametrize("block", [*blocks("# gateway.yaml")])
def test_a_fragment_of_a_config_is_good_in_a_whole_one(block: str) -> None:
    fragment = yaml.safe_load(block)
    config = {**WHOLE, **fragment}
    if "listeners" in fragment:
        config["listeners"] = [{**WHOLE["listeners"][0], **fragment["listeners"][0]}]
    judging.judge(config)


@pytest.mark.parametrize("block", [*blocks("apiVersion")])
def test_a_document_would_be_served(block: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "document.yaml"
    path.write_text(block)
    (judged,) = offline.judge([path], offline.World(clusters=frozenset({"weather_api"})))
    assert not judged.problems
    assert not [warning for warning in judged.warnings if "cluster" in warning]


def test_every_word_of_explain_is_explained() -> None:
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    for state in set(State) - {State.SERVED}:
        assert re.search(rf"^\| .*`{state.value.replace('_', ' ')}`", text, re.MULTILINE), state


def test_every_page_can_be_found() -> None:
    docs = ROOT / "docs"
    for index, pages in (
        (docs / "README.md", docs.glob("*.md")),
        (docs / "howto" / "README.md", docs.glob("howto/*.md")),
    ):
        text = index.read_text()
        assert [page.name for page in pages if page != index and f"({page.name})" not in text] == []


def test_the_architecture_shows_every_layer_in_its_order() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][0]
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    (block,) = re.findall(r"^```\n(__main__ .*?)^control_plane_example", text, re.MULTILINE | re.DOTALL)
    shown = [line.partition("  ")[0] for line in block.splitlines() if not line.startswith(" ")]
    assert [layer for line in shown for layer in line.split(" > ")] == contract["layers"]
