"""gateway.yaml to a judged `Config`: every mistake at once, each with its path.

In: the file's text. Out: settings with one decoded `Gateway` per listener, or `ConfigError` with every problem.
Called by app and cli.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import typing
from typing import Any, Final

import grpc
import pydantic
import yaml

from arion_tds.config import bootstrap
from arion_tds.config.file import ControlPlaneConfig, DataSourcesConfig, FileConfig
from arion_tds.decode import gateway as gateway_decoder
from arion_tds.decode.rules import DataRules
from arion_tds.errors import ConfigError, meant, one_line
from arion_tds.model.gateway import Gateway

MAX_CONFIG_BYTES: Final = 16 << 20
"""Bytes of the config file, and of a file that a DataSource names."""


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """The file, and the gateway of each listener in the file's order. `warnings` are sentences for the log."""

    file: FileConfig
    gateways: tuple[Gateway, ...]
    warnings: tuple[str, ...]


def load(path: str) -> Config:
    """Read and judge the file. ConfigError lists every mistake."""
    try:
        raw = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror or error}"]) from error
    if len(raw) > MAX_CONFIG_BYTES:
        raise ConfigError([f"{path}: larger than {MAX_CONFIG_BYTES} bytes"])
    try:
        value = yaml.load(raw, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: not valid YAML: {one_line(error)}"]) from error
    return judge(value)


def judge(value: object) -> Config:
    """Judge a parsed file. ConfigError lists every mistake."""
    if not isinstance(value, dict):
        raise ConfigError(["the config must be a mapping with `listeners`"])
    if bootstrap.is_one(value):
        return _bootstrap(value)
    problems: list[str] = []
    file: FileConfig | None = None
    try:
        file = FileConfig.model_validate(value)
    except pydantic.ValidationError as error:
        problems += _mistakes(error)
    if file is None:
        raise ConfigError(problems + _gateway_problems(value))
    gateways, more, warnings = _gateways(file)
    problems += more + _duplicates(file, gateways) + _unknown_clusters(file, gateways)
    if problems:
        raise ConfigError(problems)
    return Config(file, tuple(found for found in gateways if found is not None), tuple(warnings))


def _bootstrap(value: dict[str, Any]) -> Config:
    """Judge an Envoy bootstrap: what it comes to as a config, with its own paths in what is said."""
    translated = bootstrap.translate(value)
    try:
        config = judge(translated.config)
    except ConfigError as error:
        raise ConfigError([*translated.problems, *map(translated.path, error.problems)]) from error
    if translated.problems:
        raise ConfigError(list(translated.problems))
    warnings = (*translated.warnings, *map(translated.path, config.warnings))
    return dataclasses.replace(config, warnings=warnings)


def _gateways(file: FileConfig) -> tuple[list[Gateway | None], list[str], list[str]]:
    found: list[Gateway | None] = []
    problems: list[str] = []
    warnings: list[str] = []
    for position, listener in enumerate(file.listeners):
        made, wrong, said = _gateway(listener.mcp_gateway, position)
        found.append(made)
        problems += wrong
        warnings += said
        if listener.jwt is not None:
            warnings += [f"listeners[{position}].jwt: {doubt}" for doubt in listener.jwt.doubts()]
    return found, problems, warnings


def _gateway(block: dict[str, Any], position: int) -> tuple[Gateway | None, list[str], list[str]]:
    where = f"listeners[{position}].mcp_gateway"
    made, wrong, said = gateway_decoder.gateway(block, static_rules(), where)
    return made, [str(problem) for problem in wrong], list(said)


def _gateway_problems(value: dict[str, Any]) -> list[str]:
    """The mistakes inside the gateway blocks of a file that has others, so that one run shows them all."""
    listeners = value.get("listeners")
    if not isinstance(listeners, list):
        return []
    problems: list[str] = []
    for position, listener in enumerate(listeners):
        block = listener.get("mcp_gateway") if isinstance(listener, dict) else None
        if isinstance(block, dict):
            problems += _gateway(block, position)[1]
    return problems


def credentials(settings: ControlPlaneConfig) -> grpc.ChannelCredentials | None:
    """TLS towards the control plane, None for plain text. ConfigError when a file cannot be read."""
    tls = settings.tls
    if tls is None:
        return None
    try:
        ca, key, cert = (
            None if path is None else pathlib.Path(path).read_bytes()
            for path in (tls.ca_file, tls.key_file, tls.cert_file)
        )
    except OSError as error:
        raise ConfigError([f"control_plane.tls: {error.filename}: {error.strerror}"]) from error
    return grpc.ssl_channel_credentials(ca, key, cert)


def static_rules() -> DataRules:
    """The config is ours: its DataSources may read any file and variable."""
    return DataRules(any_file=True, any_environment=True, read_file=read_file, read_environment=os.environ.get)


def delivered_rules(sources: DataSourcesConfig) -> DataRules:
    """What the config lets a control plane read."""
    return DataRules(
        files=sources.files,
        environment=frozenset(sources.environment),
        read_file=read_file,
        read_environment=os.environ.get,
    )


def read_file(path: str) -> bytes:
    """A DataSource's file, bounded. OSError when it cannot be read."""
    with pathlib.Path(path).open("rb") as file:
        content = file.read(MAX_CONFIG_BYTES + 1)
    if len(content) > MAX_CONFIG_BYTES:
        raise OSError(f"is larger than {MAX_CONFIG_BYTES} bytes")
    return content


def _duplicates(file: FileConfig, gateways: list[Gateway | None]) -> list[str]:
    problems: list[str] = []
    problems += _twice([item.name for item in file.listeners], "listeners", "name")
    fixed = [item.address for item in file.listeners if not item.address.endswith(":0")]
    problems += _twice(fixed, "listeners", "address")
    problems += _twice([item.name for item in file.clusters], "clusters", "name")
    owners: dict[str, str] = {}
    for listener, gateway in zip(file.listeners, gateways, strict=True):
        if gateway is None or gateway.scope is None:
            continue
        other = owners.setdefault(gateway.name, listener.name)
        if other != listener.name:
            problems.append(
                f"listeners {other!r} and {listener.name!r} both use tds with server_info.name {gateway.name!r}: "
                "give each TDS-enabled gateway a name of its own"
            )
    if file.control_plane is None and any(gateway is not None and gateway.scope for gateway in gateways):
        problems.append("control_plane: missing, but a listener uses tds: add `control_plane: {address: host:port}`")
    return problems


def _unknown_clusters(file: FileConfig, gateways: list[Gateway | None]) -> list[str]:
    """Clusters that a gateway itself needs. Those of tools may come later; calls say what is missing."""
    known = {item.name for item in file.clusters}
    problems: list[str] = []
    for position, gateway in enumerate(gateways):
        search = None if gateway is None else gateway.search
        if search is not None and search.embeddings is not None and search.embeddings.cluster not in known:
            problems.append(
                f"listeners[{position}].mcp_gateway.search.embeddings.cluster: there is no cluster "
                f"{search.embeddings.cluster!r}: define it under `clusters`"
            )
    return problems


def _twice(values: list[str], where: str, key: str) -> list[str]:
    repeated = sorted({value for value in values if values.count(value) > 1})
    return [f"{where}: {key} {value!r} is used more than once" for value in repeated]


def _mistakes(error: pydantic.ValidationError) -> list[str]:
    """Each mistake once: a list whose entries are all wrong is said to be empty as well, which it is not."""
    found = error.errors()
    places = [one["loc"] for one in found]
    return [
        f"{_path(one['loc'])}: {_sentence(one)}"
        for one in found
        if not (one["type"] == "too_short" and any(place[: len(one["loc"])] == one["loc"] != place for place in places))
    ]


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "(file)"


def _known(location: tuple[int | str, ...]) -> list[str]:
    """The keys that there are where that one stands. Names of mappings and places of lists lead to no other block."""
    blocks: list[type[pydantic.BaseModel]] = [FileConfig]
    for part in location[:-1]:
        fields = [block.model_fields[str(part)] for block in blocks if part in block.model_fields]
        blocks = [inner for field in fields for inner in _blocks(field.annotation)] or blocks
    return [key for block in blocks for key in block.model_fields]


def _blocks(annotation: object) -> list[type[pydantic.BaseModel]]:
    """Those of an optional one, of a list, of a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return [annotation]
    return [inner for one in typing.get_args(annotation) for inner in _blocks(one)]


def _sentence(found: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    if found["type"] == "extra_forbidden":
        return f"unknown key{meant(found['loc'][-1], _known(found['loc']))}"
    if found["type"] == "missing":
        return "missing"
    if found["type"] == "too_short":
        return f"is too short: it needs at least {found['ctx']['min_length']}"
    return str(found["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
