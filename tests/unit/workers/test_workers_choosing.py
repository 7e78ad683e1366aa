"""How many processes a config gets, before anything has judged it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from arion_tds.config import sharing
from arion_tds.errors import ConfigError
from arion_tds.workers import choosing
from arion_tds.workers.choosing import Plan

LISTENER = {"name": "a", "address": "127.0.0.1:8080", "mcp_gateway": {}}
ADDRESSES = (("admin", "127.0.0.1:9901"), ("listener 'a'", "127.0.0.1:8080"))


@pytest.fixture(autouse=True)
def _three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "usable", lambda: 3)


@pytest.fixture
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux shares a port")


def chosen(folder: Path, asked: int | None = None, **keys: Any) -> Plan:
    path = folder / "gateway.yaml"
    path.write_text(yaml.safe_dump({"listeners": [LISTENER], **keys}), encoding="utf-8")
    return choosing.choose(str(path), asked)


@pytest.mark.usefixtures("linux")
def test_the_command_line_wins_over_the_file_and_the_file_over_the_cores(tmp_path: Path) -> None:
    assert chosen(tmp_path) == Plan(3, ADDRESSES)
    assert chosen(tmp_path, workers=2).count == 2
    assert chosen(tmp_path, 5, workers=2).count == 5
    assert chosen(tmp_path, 1, workers=2) == Plan()
    assert chosen(tmp_path, log={"level": "debug", "format": "json"}).log == ("debug", "json")


@pytest.mark.usefixtures("linux")
def test_many_cores_give_four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "usable", lambda: 64)
    assert chosen(tmp_path).count == 4


@pytest.mark.usefixtures("linux")
def test_an_address_that_others_may_share_is_not_kept_from_them(tmp_path: Path) -> None:
    shared = {**LISTENER, "share_address": True}
    assert chosen(tmp_path, listeners=[shared]).addresses == ADDRESSES[:1]


def test_any_port_allows_one_process_and_more_are_refused(tmp_path: Path) -> None:
    anywhere = {**LISTENER, "address": "127.0.0.1:0"}
    assert chosen(tmp_path, listeners=[anywhere]) == Plan()
    for asked, keys in ((2, {}), (None, {"workers": 2})):
        with pytest.raises(ConfigError, match="2 processes cannot serve this config"):
            chosen(tmp_path, asked, listeners=[anywhere], **keys)
    assert chosen(tmp_path, admin={"address": "127.0.0.1:0"}) == Plan()


def test_only_linux_shares_a_port() -> None:
    assert "only Linux" in (sharing.obstacle([], "darwin") or "")
    assert sharing.obstacle([("admin", "127.0.0.1:9901")], "linux") is None


@pytest.mark.parametrize(
    "text", ["", "[", "- a", "\0", "listeners: 3\nworkers: many", "listeners: [{address: nowhere}]", "workers: 0"]
)
def test_a_file_with_a_mistake_gets_one_process_which_says_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(text, encoding="utf-8")
    found = choosing.choose(str(path), None)
    assert found.count == 1 or text.startswith("listeners: 3")
    assert choosing.choose(str(tmp_path / "missing.yaml"), 2) == Plan()


@pytest.mark.usefixtures("linux")
def test_a_bootstrap_is_looked_at_as_the_config_that_it_comes_to(tmp_path: Path) -> None:
    address = {"socket_address": {"address": "127.0.0.1", "port_value": 7001}}
    path = tmp_path / "bootstrap.yaml"
    path.write_text(yaml.safe_dump({"static_resources": {}, "admin": {"address": address}}), encoding="utf-8")
    assert choosing.choose(str(path), 2) == Plan(2, (("admin", "127.0.0.1:7001"),))


@pytest.mark.parametrize(
    ("quota", "most"), [("max 100000", 1 << 16), ("150000 100000", 2), ("5000 100000", 1), ("?", 1 << 16)]
)
def test_a_container_has_the_cores_that_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, most: int
) -> None:
    monkeypatch.undo()
    path = tmp_path / "cpu.max"
    path.write_text(quota, encoding="ascii")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert sharing.usable(path) == min(cores, most)


def test_the_supervisor_loads_nothing_that_serves() -> None:
    code = (
        "import sys; from arion_tds.cli import main, serve; from arion_tds.workers import supervisor; "
        "print([name for name in ('grpc', 'aiohttp', 'numpy', 'pydantic', 'prometheus_client') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
