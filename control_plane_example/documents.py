"""Documents in the envelope of Arion's control plane: text of YAML or JSON becomes resources, or a sentence.

In: text (one document, a YAML stream, or a list) or one envelope. Out: `Document`s with their wire bytes, or `Fault`.
Called by files, http, mock. Pure: no file, no clock, no log.

    apiVersion: ctl.arion.io/v1alpha1
    kind: McpTool                      # or McpOpenApiSource, McpDynamicServer, McpToolkit; Envoy's own, see ENVOY
    metadata:
      name: tenant-a-mcp/main/weather.get_forecast   # the full resource id (a Cluster's name is just a name)
      fleet: arion                                   # optional: the node.cluster that receives it
    spec: {...}                        # the message as proto JSON, snake_case or camelCase
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import yaml

# Imported for the protobuf JSON parser to know them: what the `typed_config`s of clusters and listeners may be.
from envoy.config.cluster.v3.cluster_pb2 import Cluster
from envoy.config.endpoint.v3.endpoint_pb2 import ClusterLoadAssignment
from envoy.config.listener.v3.listener_pb2 import Listener
from envoy.extensions.filters.http.router.v3 import router_pb2 as _router  # noqa: F401
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as _connection_manager,  # noqa: F401
)
from envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2 as _tcp_proxy  # noqa: F401
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2 as _tls  # noqa: F401
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2 as _http  # noqa: F401
from google.protobuf import json_format
from google.protobuf.message import Message

from arion_tds.pb import mcp_gateway_pb2 as pb
from control_plane_example.snapshot import Held, Key

API_VERSION: Final = "ctl.arion.io/v1alpha1"
DEFAULT_FLEET: Final = "arion"
PREFIX: Final = "type.googleapis.com/arion.extensions.filters.http.mcp.mcp_gateway.v3."
MAX_NODES: Final = 2_000_000
"""Values in one input after YAML aliases are written out: a few lines of aliases can stand for billions."""

CATALOG: Final[Mapping[str, type[Message]]] = {
    "McpTool": pb.Tool,
    "McpOpenApiSource": pb.OpenApiToolSource,
    "McpDynamicServer": pb.DynamicMcpServer,
    "McpToolkit": pb.Toolkit,
}
ENVOY: Final[Mapping[str, type[Message]]] = {
    "Cluster": Cluster,
    "ClusterLoadAssignment": ClusterLoadAssignment,
    "Listener": Listener,
}
"""Envoy's own; their names belong to no scope. Clusters and endpoints say where what tools name is; an Envoy asks for
listeners too."""

MESSAGES: Final[Mapping[str, type[Message]]] = {**CATALOG, **ENVOY}
TYPE_URLS: Final[Mapping[str, str]] = {
    **{kind: PREFIX + message.DESCRIPTOR.name for kind, message in CATALOG.items()},
    **{kind: f"type.googleapis.com/{message.DESCRIPTOR.full_name}" for kind, message in ENVOY.items()},
}
_Descriptor = Any  # protobuf has a class of its own for each of its implementations
_KINDS: Final[Mapping[str, str]] = {url: kind for kind, url in TYPE_URLS.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """Why an input cannot be taken; a whole sentence that says where."""

    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """One resource: its envelope kind, where it is published, and what goes on the wire."""

    kind: str
    key: Key
    held: Held


def kind_of(type_url: str) -> str:
    """`McpTool` for the type URL of Tool; a URL that is none of ours stays as it is."""
    return _KINDS.get(type_url, type_url)


def read(text: str) -> list[Document] | Fault:
    """Every document of `text`: JSON (object or list), or YAML (one document, a list, or a stream with `---`)."""
    values = _load(text)
    if isinstance(values, Fault):
        return values
    envelopes: list[Any] = []
    for value in values:
        envelopes.extend(value if isinstance(value, list) else [value])
    documents: list[Document] = []
    seen: set[Key] = set()
    for index, envelope in enumerate(envelopes, 1):
        document = resource(envelope)
        if isinstance(document, Fault):
            return Fault(f"document {index}: {document.text}") if len(envelopes) > 1 else document
        if document.key in seen:
            return Fault(f"document {index}: {describe(document.key)} stands twice in this input: keep one")
        seen.add(document.key)
        documents.append(document)
    return documents


def describe(key: Key) -> str:
    """`McpTool a/b/c (fleet arion)`, for messages."""
    return f"{kind_of(key.type_url)} {key.name} (fleet {key.fleet})"


def resource(envelope: object) -> Document | Fault:
    """The resource of one envelope."""
    if not isinstance(envelope, dict):
        return Fault(f"a document must be an object with apiVersion, kind, metadata and spec, not {_type(envelope)}")
    unknown = sorted(str(field) for field in envelope if field not in {"apiVersion", "kind", "metadata", "spec"})
    if unknown:
        return Fault(f"unknown field {unknown[0]!r}: a document has apiVersion, kind, metadata and spec")
    if envelope.get("apiVersion") != API_VERSION:
        return Fault(f"apiVersion must be {API_VERSION}, not {envelope.get('apiVersion')!r}")
    kind = envelope.get("kind")
    if not isinstance(kind, str) or kind not in MESSAGES:
        return Fault(f"kind must be one of {', '.join(MESSAGES)}, not {kind!r}")
    place = _metadata(envelope.get("metadata"), scoped=kind in CATALOG)
    if isinstance(place, Fault):
        return place
    fleet, name = place
    held = encode(kind, envelope.get("spec"))
    if isinstance(held, Fault):
        return Fault(f"{kind} {name}: {held.text}")
    return Document(kind, Key(fleet, TYPE_URLS[kind], name), held)


def encode(kind: str, spec: object) -> Held | Fault:
    """Wire bytes of a spec (proto JSON in either spelling) with their hash as the version."""
    if not isinstance(spec, dict):
        return Fault(f"spec must be an object, not {_type(spec)}")
    message = MESSAGES[kind]()
    try:
        twice = _spelled_twice(message.DESCRIPTOR, spec, "spec")
        if twice is not None:
            return Fault(twice)
        json_format.ParseDict(spec, message)
        payload = message.SerializeToString(deterministic=True)
    except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        return Fault(f"spec is not a {message.DESCRIPTOR.name}: {' '.join(str(error).split())}")
    return Held(version(payload), payload)


def version(payload: bytes) -> str:
    """The version of these bytes: equal bytes, equal version, also after a restart."""
    return hashlib.sha256(payload).hexdigest()[:16]


def _metadata(value: object, *, scoped: bool) -> tuple[str, str] | Fault:
    if not isinstance(value, dict):
        return Fault(f"metadata must be an object with name and, optionally, fleet, not {_type(value)}")
    unknown = sorted(str(field) for field in value if field not in {"name", "fleet"})
    if unknown:
        return Fault(f"unknown field metadata.{unknown[0]}: metadata has name and fleet")
    name, fleet = value.get("name"), value.get("fleet", DEFAULT_FLEET)
    if not isinstance(name, str):
        return Fault(f"metadata.name must be a string, not {_type(name)}")
    parts = name.split("/", 2)
    if not scoped and not name:
        return Fault("metadata.name is empty")
    if scoped and (len(parts) < 3 or not all(parts)):
        return Fault(
            f"metadata.name {name!r} is not a full resource id: write <server name>/<config name>/<resource name>"
        )
    if not isinstance(fleet, str) or not fleet:
        return Fault("metadata.fleet must be a string that is not empty; leave it out for the fleet 'arion'")
    return fleet, name


def _spelled_twice(descriptor: _Descriptor, value: Mapping[Any, Any], path: str) -> str | None:
    """The first field given in both spellings, as a sentence: proto JSON would silently take one of them."""
    fields = {**descriptor.fields_by_name, **descriptor.fields_by_camelcase_name}
    seen: dict[int, object] = {}
    for name, inner in value.items():
        field = fields.get(name) if isinstance(name, str) else None
        if field is None:
            continue  # the proto JSON parser names it
        if field.number in seen:
            return f"{path} has both {seen[field.number]!r} and {name!r}: they are one field, keep one"
        seen[field.number] = name
        if field.message_type is None:
            continue
        for item in inner if isinstance(inner, list) else [inner]:
            if isinstance(item, dict):
                found = _spelled_twice(field.message_type, item, f"{path}.{name}")
                if found is not None:
                    return found
    return None


_NOT_RESOLVED: Final = frozenset({"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:merge"})


class _RepeatedKeyError(ValueError):
    """A key that stands twice in one object."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise _RepeatedKeyError(f"key {repeated!r} stands twice in one object")
    return made


class _Loader(yaml.CSafeLoader):
    """YAML without surprises: no key twice, 2026-01-31 is a string and not a date, `<<` is a key and not a merge.

    Merges of merges grow before anything could count them.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - the library's signature
        seen: set[str] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            if key_node.value in seen:
                raise _RepeatedKeyError(
                    f"key {key_node.value!r} stands twice in one mapping, line {key_node.start_mark.line + 1}"
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_RESOLVED]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _load(text: str) -> list[Any] | Fault:
    try:
        values = _values(text)
    except _RepeatedKeyError as error:
        return Fault(str(error))
    except RecursionError:
        return Fault("values are nested too deep")
    except json.JSONDecodeError as error:
        return Fault(f"not valid JSON: {error}")
    except yaml.YAMLError as error:
        return Fault(f"not valid YAML: {' '.join(str(error).split())}")
    except ValueError as error:
        return Fault(f"cannot be read: {error}")
    if not values:
        return Fault("no document in it")
    if not _bounded(values):
        return Fault(f"more than {MAX_NODES} values (YAML aliases written out): split the input")
    return values


def _values(text: str) -> list[Any]:
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped[:1] in {"{", "["}:
        try:
            return [json.loads(stripped, object_pairs_hook=_object)]
        except json.JSONDecodeError as error:
            try:  # YAML may begin with a brace too; where it does not hold either, the JSON fault tells more
                return list(yaml.load_all(text, _Loader))
            except yaml.YAMLError:
                raise error from None
    return [value for value in yaml.load_all(text, _Loader) if value is not None]


def _bounded(values: list[Any]) -> bool:
    left, stack = MAX_NODES, list(values)
    while stack:
        left -= 1
        if left < 0 or len(stack) > MAX_NODES:
            return False
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return True


def _type(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
