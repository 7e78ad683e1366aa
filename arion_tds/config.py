"""gateway.yaml as values: every mistake at once, each with its path.

In: the file's text. Out: `Config` (settings) with one decoded `Gateway` per listener, or `ConfigError` with every
problem. Called by app and cli. Unknown keys are mistakes: a misspelt limit must not silently be the default.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import pathlib
import re
from typing import Annotated, Any, Final, Literal

import grpc
import pydantic
import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from arion_tds.decode import gateway as gateway_decoder
from arion_tds.decode.rules import DataRules
from arion_tds.errors import ConfigError
from arion_tds.model.cluster import Cluster, ClusterTls
from arion_tds.model.gateway import Gateway
from arion_tds.model.names import Naming

MAX_CONFIG_BYTES: Final = 16 << 20
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)?\s*\Z")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


def _seconds(value: object) -> object:
    if isinstance(value, str):
        found = _DURATION.match(value)
        if found is None:
            msg = f"{value!r} is not a duration: write 15s, 250ms, 5m or a number of seconds"
            raise ValueError(msg)
        return float(found.group(1)) * _UNIT[found.group(2)]
    return value


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0)]
"""Seconds; `15s`, `250ms`, `5m`, `1h` or a number in the file."""


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[v6]:port`; ValueError says what is wrong."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        msg = f"{text!r} is not host:port"
        raise ValueError(msg)
    host = host.removeprefix("[").removesuffix("]")
    if not host:
        msg = f"{text!r} names no host: write 127.0.0.1:{port}, or 0.0.0.0:{port} for every interface"
        raise ValueError(msg)
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether the host can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _address(value: str) -> str:
    split_address(value)
    return value


Address = Annotated[str, pydantic.AfterValidator(_address)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Secret(_Model):
    """A secret by reference: exactly one of `file` and `environment`."""

    file: str | None = None
    environment: str | None = None

    @pydantic.model_validator(mode="after")
    def _one(self) -> Secret:
        if (self.file is None) == (self.environment is None):
            msg = "name exactly one of `file` and `environment`"
            raise ValueError(msg)
        return self

    def read(self) -> bytes:
        """The secret's bytes, without surrounding white space. OSError or KeyError when it is not there."""
        if self.file is not None:
            return pathlib.Path(self.file).read_bytes().strip()
        return os.environb[(self.environment or "").encode()].strip()


class NodeConfig(_Model):
    """Who we are to the control plane; `cluster` is the fleet."""

    id: str = Field(default="arion-tds", min_length=1)
    cluster: str = Field(default="arion", min_length=1)


class TlsConfig(_Model):
    """TLS towards somebody else: whom to trust, who we are, which name to ask for. PEM files."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None


class ControlPlaneConfig(_Model):
    """Where the catalog comes from, and how patiently."""

    address: Address
    subscription: Literal["wildcard", "scope"] = "wildcard"
    tls: TlsConfig | None = None
    initial_fetch_timeout: Seconds = 15.0
    connect_timeout: Seconds = 10.0
    keepalive_time: Seconds = 10.0
    keepalive_timeout: Seconds = 5.0
    max_message_bytes: int = Field(default=64 << 20, ge=1 << 20)
    backoff_base: Seconds = 1.0
    backoff_max: Seconds = 30.0
    max_unanswered: int = Field(default=16, ge=1)


class AdminConfig(_Model):
    """The operator's listener."""

    address: Address = "127.0.0.1:9901"


class SessionsConfig(_Model):
    """Session ids are signed; replicas that share the key accept each other's. Without a key: random at start."""

    key: Secret | None = None
    lifetime: Seconds = 24 * 3600.0


class ListenerConfig(_Model):
    """One tenant's listener: our own settings beside the McpGateway message."""

    name: str = Field(min_length=1)
    address: Address
    tool_names: Naming = Naming.QUALIFIED
    mcp_gateway: dict[str, Any]
    page_size: int = Field(default=100, ge=1, le=10_000)
    max_body_bytes: int = Field(default=4 << 20, ge=1024)
    max_streams: int = Field(default=10_000, ge=1)
    keepalive: Seconds = 15.0
    ttl: Seconds = 5.0
    instructions: str | None = None
    allowed_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    drain_timeout: Seconds = 10.0


class ClusterConfig(_Model):
    """A named upstream."""

    name: str = Field(min_length=1)
    endpoints: tuple[str, ...] = Field(min_length=1)
    tls: TlsConfig | None = None
    connect_timeout: Seconds = 5.0
    timeout: Seconds | None = None
    max_requests: int = Field(default=1024, ge=1)
    max_connections: int = Field(default=256, ge=1)
    idle_timeout: Seconds = 60.0

    @pydantic.field_validator("endpoints")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for endpoint in value:
            scheme, separator, rest = endpoint.partition("://")
            if scheme not in {"http", "https"} or not separator or not rest or re.search(r"[/?#@\s]", rest):
                msg = f"{endpoint!r} is not an origin: write http://host:port or https://host:port without a path"
                raise ValueError(msg)
        return value

    def settings(self) -> Cluster:
        """As the value that backends take."""
        tls = self.tls
        return Cluster(
            name=self.name,
            endpoints=self.endpoints,
            tls=None
            if tls is None
            else ClusterTls(ca_file=tls.ca_file, cert_file=tls.cert_file, key_file=tls.key_file, sni=tls.server_name),
            connect_timeout=self.connect_timeout,
            timeout=self.timeout,
            max_requests=self.max_requests,
            max_connections=self.max_connections,
            idle_timeout=self.idle_timeout,
        )


class DataSourcesConfig(_Model):
    """What a *delivered* DataSource may read from this machine. Default: nothing."""

    files: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()


class LogConfig(_Model):
    """Where and how much to say."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class FileConfig(_Model):
    """The whole file."""

    node: NodeConfig = NodeConfig()
    control_plane: ControlPlaneConfig | None = None
    admin: AdminConfig = AdminConfig()
    sessions: SessionsConfig = SessionsConfig()
    listeners: tuple[ListenerConfig, ...] = Field(min_length=1)
    clusters: tuple[ClusterConfig, ...] = ()
    data_sources: DataSourcesConfig = DataSourcesConfig()
    log: LogConfig = LogConfig()


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
        raise ConfigError([f"{path}: not valid YAML: {' '.join(str(error).split())}"]) from error
    return judge(value)


def judge(value: object) -> Config:
    """Judge a parsed file. ConfigError lists every mistake."""
    if not isinstance(value, dict):
        raise ConfigError(["the config must be a mapping with `listeners`"])
    problems: list[str] = []
    file: FileConfig | None = None
    try:
        file = FileConfig.model_validate(value)
    except pydantic.ValidationError as error:
        problems += [f"{_path(found['loc'])}: {_sentence(found)}" for found in error.errors()]
    if file is None:
        raise ConfigError(problems + _gateway_problems(value))
    gateways, more, warnings = _gateways(file)
    problems += more + _duplicates(file, gateways)
    if problems:
        raise ConfigError(problems)
    return Config(file, tuple(found for found in gateways if found is not None), tuple(warnings))


def _gateways(file: FileConfig) -> tuple[list[Gateway | None], list[str], list[str]]:
    found: list[Gateway | None] = []
    problems: list[str] = []
    warnings: list[str] = []
    for position, listener in enumerate(file.listeners):
        made, wrong, said = _gateway(listener.mcp_gateway, position)
        found.append(made)
        problems += wrong
        warnings += said
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
        return file.read(MAX_CONFIG_BYTES)


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


def _twice(values: list[str], where: str, key: str) -> list[str]:
    repeated = sorted({value for value in values if values.count(value) > 1})
    return [f"{where}: {key} {value!r} is used more than once" for value in repeated]


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "(file)"


def _sentence(found: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    if found["type"] == "extra_forbidden":
        return "unknown key"
    if found["type"] == "missing":
        return "missing"
    return str(found["msg"]).removeprefix("Value error, ")
