"""Container, manifests and unit name ports, paths, keys and commands that exist."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from arion_tds.admin import http
from arion_tds.cli import main
from arion_tds.config import judging, sharing
from arion_tds.metrics import Metrics

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy" / "systemd" / "arion-tds.service"


def manifests() -> list[dict[str, Any]]:
    """Every object of deploy/kubernetes."""
    files = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
    return [found for file in files for found in yaml.safe_load_all(file.read_text())]


def of(kind: str) -> dict[str, Any]:
    (found,) = [one for one in manifests() if one["kind"] == kind]
    return found


def config() -> judging.Config:
    return judging.judge(yaml.safe_load(of("ConfigMap")["data"]["gateway.yaml"]))


def pod() -> dict[str, Any]:
    found: dict[str, Any] = of("Deployment")["spec"]["template"]["spec"]
    return found


def container() -> dict[str, Any]:
    (found,) = pod()["containers"]
    assert isinstance(found, dict)
    return found


def is_a_command(arguments: list[str]) -> bool:
    """Whether the command line parses."""
    return bool(main.parser().parse_args(arguments).run)


def test_the_config_is_good_and_its_ports_are_the_containers() -> None:
    file = config().file
    ports = {one["name"]: one["containerPort"] for one in container()["ports"]}
    assert sharing.split_address(file.admin.address)[1] == ports["admin"]
    assert [sharing.split_address(one.address)[1] for one in file.listeners] == [ports["mcp"]]
    (service,) = of("Service")["spec"]["ports"]
    assert service["targetPort"] in ports


def test_probes_ask_the_admin_listener_for_pages_that_need_no_token() -> None:
    source = pathlib.Path(http.__file__).read_text()
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container()[probe]["httpGet"]
        assert asked["port"] == "admin"
        assert f'"{asked["path"]}"' in source
        assert asked["path"] in {"/healthz", "/readyz"}


def test_the_config_is_where_the_command_looks_and_what_it_writes_to_is_mounted() -> None:
    found = container()
    assert is_a_command(found["args"])
    mounts = {one["mountPath"]: one for one in found["volumeMounts"]}
    directory, _, name = found["args"][-1].rpartition("/")
    assert name in of("ConfigMap")["data"]
    assert mounts[directory]["readOnly"]
    cache = config().file.cache
    assert cache is not None
    assert not mounts[cache.directory].get("readOnly")
    assert {one["name"] for one in found["volumeMounts"]} == {one["name"] for one in pod()["volumes"]}


def test_secrets_of_the_config_are_in_the_environment() -> None:
    file = config().file
    named = {one["name"] for one in container()["env"]}
    assert file.admin.token is not None
    assert file.sessions.key is not None
    assert {file.admin.token.environment, file.sessions.key.environment} == named


def test_a_pod_has_time_to_drain() -> None:
    file = config().file
    assert pod()["terminationGracePeriodSeconds"] > file.drain_delay + max(one.drain_timeout for one in file.listeners)


def test_pods_are_found_by_the_labels_that_they_have() -> None:
    labels = of("Deployment")["spec"]["template"]["metadata"]["labels"].items()
    for selector in (
        of("Deployment")["spec"]["selector"]["matchLabels"],
        of("Service")["spec"]["selector"],
        of("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels
    assert of("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"] == of("Deployment")["metadata"]["name"]


def test_the_autoscaler_adds_pods_before_a_pod_has_used_up_its_cores() -> None:
    (metric,) = of("HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metric["resource"]["name"] == "cpu"
    target = metric["resource"]["target"]["averageValue"]
    requested = container()["resources"]["requests"]["cpu"]
    workers = config().file.workers
    assert workers is not None
    assert _millis(requested) <= _millis(target) < 1000 * workers
    assert "cpu" not in container()["resources"]["limits"], "throttled before it is scaled"
    text = (ROOT / "deploy" / "kubernetes" / "autoscaling.yaml").read_text()
    for name in re.findall(r"process_\w+_total", text):
        assert f"\n{name} ".encode() in Metrics().page()


def _millis(cores: str) -> int:
    found = re.fullmatch(r"(\d+)m", cores)
    assert found is not None, cores
    return int(found[1])


def test_the_image_runs_a_command_that_exists_as_nobody() -> None:
    text = (ROOT / "Dockerfile").read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (\[.*\])$", text, re.MULTILINE)
    (command,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    assert json.loads(entry) == ["arion-tds"]
    assert is_a_command(json.loads(command))
    (user,) = re.findall(r"^USER (\d+):\d+$", text, re.MULTILINE)
    assert int(user) == pod()["securityContext"]["runAsUser"] > 0
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        for source in line.split():
            assert (ROOT / source).exists()
            assert source in allowed


def test_the_units_commands_exist() -> None:
    commands = re.findall(r"^ExecStart(?:Pre)?=/opt/arion-tds/bin/arion-tds (.*)$", UNIT.read_text(), re.MULTILINE)
    assert len(commands) == 2
    assert all(is_a_command(line.split()) for line in commands)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_unit(tmp_path: pathlib.Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(re.sub(r"/opt/arion-tds/bin/arion-tds", "/bin/true", UNIT.read_text()))
    subprocess.run(["systemd-analyze", "verify", str(unit)], check=True, capture_output=True)
