"""An Envoy (or Arion) bootstrap as the mapping that gateway.yaml would be: the same files start either gateway.

In: a parsed bootstrap in proto JSON form, in either spelling of its keys. Out: a `Translation`: our config, every part
that is not used (by its path, as warnings), what cannot be translated, and where our keys come from. Pure. Called by
judging, which judges the result as it judges every config.

Used: node, admin.address, the ADS stream (`DELTA_GRPC`), clusters that name their endpoints, and listeners with an
McpGateway filter, its jwt_authn filter and TLS. Nothing is dropped in silence.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from arion_tds.config.reading import Part, Reading

_KEYS: Final = frozenset({"static_resources", "dynamic_resources", "staticResources", "dynamicResources"})
_GATEWAY: Final = "mcp_gateway.v3.McpGateway"
_MANAGER: Final = "http_connection_manager.v3.HttpConnectionManager"
_JWT: Final = "jwt_authn.v3.JwtAuthentication"
_ROUTER: Final = "router.v3.Router"
_TLS_UP: Final = "tls.v3.UpstreamTlsContext"
_TLS_DOWN: Final = "tls.v3.DownstreamTlsContext"
_NAMED: Final = frozenset({"STATIC", "STRICT_DNS", "LOGICAL_DNS"})
_DELTA: Final = frozenset({"DELTA_GRPC", "AGGREGATED_DELTA_GRPC"})


@dataclasses.dataclass(frozen=True, slots=True)
class Translation:
    """`config` as gateway.yaml would hold it. `origins`: our paths with those of the bootstrap that they come from."""

    config: dict[str, Any]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    origins: tuple[tuple[str, str], ...]

    def path(self, sentence: str) -> str:
        """A sentence about our config, said of the bootstrap."""
        for ours, theirs in self.origins:
            if sentence.startswith(ours):
                return theirs + sentence[len(ours) :]
        return sentence


def is_one(value: object) -> bool:
    """Whether a parsed file is a bootstrap."""
    return isinstance(value, dict) and not _KEYS.isdisjoint(value)


def translate(value: dict[str, Any]) -> Translation:
    """The bootstrap as our config."""
    reading = Reading()
    made = _Bootstrap(reading).config(reading.part(value, ""))
    return Translation(made.config, tuple(reading.problems), reading.unused(), tuple(made.origins))


@dataclasses.dataclass(slots=True)
class _Cluster:
    path: str
    config: dict[str, Any]
    unread: Part
    http2: Part | None = None


class _Bootstrap:
    """One bootstrap on its way to a config."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.origins: list[tuple[str, str]] = []
        self.config_: dict[str, Any] = {}
        self._clusters: dict[str, _Cluster] = {}

    def config(self, top: Part) -> _Made:
        made: dict[str, Any] = {}
        node = top.part("node")
        made["node"] = {key: node.take(key) for key in ("id", "cluster") if key in node}
        address = self._address(top.part("admin").part("address"))
        if address is not None:
            made["admin"] = {"address": address}
        static, dynamic = top.part("static_resources"), top.part("dynamic_resources")
        for part in static.parts("clusters"):
            self._cluster(part)
        plane = self._control_plane(dynamic)
        if plane is not None:
            plane |= self._cds(dynamic)
            made["control_plane"] = plane
        listeners = [one for part in static.parts("listeners") if (one := self._listener(part)) is not None]
        for position, (listener, path, gateway) in enumerate(listeners):
            # The longer path first: what is said of the message is said of the filter.
            self.origins.append((f"listeners[{position}].mcp_gateway", gateway))
            self.origins.append((f"listeners[{position}]", path))
            listener.setdefault("name", f"listener-{position}")
        made["listeners"] = [listener for listener, _, _ in listeners]
        if not listeners:
            self._reading.problem("static_resources.listeners", "no listener has an McpGateway filter")
        for position, cluster in enumerate(self._clusters.values()):
            self.origins.append((f"clusters[{position}]", cluster.path))
        made["clusters"] = [cluster.config for cluster in self._clusters.values()]
        return _Made(made, self.origins)

    def _control_plane(self, dynamic: Part) -> dict[str, Any] | None:
        if "ads_config" not in dynamic:
            return None
        ads = dynamic.part("ads_config")
        kind = ads.take("api_type")
        if kind not in _DELTA:
            self._reading.problem(ads.at("api_type"), f"is {kind}: the gateway speaks delta xDS alone, DELTA_GRPC")
        if ads.take("transport_api_version") not in {None, "V3", "AUTO"}:
            self._reading.problem(ads.at("transport_api_version"), "only V3 is spoken")
        services = ads.parts("grpc_services")
        if not services:
            self._reading.problem(ads.at("grpc_services"), "names no service")
            return None
        target = services[0].part("google_grpc").take("target_uri") if "google_grpc" in services[0] else None
        if isinstance(target, str):
            return {"address": target.removeprefix("dns:").lstrip("/")}
        where = services[0].part("envoy_grpc")
        name = where.take("cluster_name")
        cluster = self._clusters.pop(name, None) if isinstance(name, str) else None
        if cluster is None:
            self._reading.problem(where.at("cluster_name"), f"is {name!r}: no static cluster has that name")
            return None
        for key in ("http2_protocol_options", "typed_extension_protocol_options"):
            cluster.unread.take(key)  # gRPC is HTTP/2 in any case
        endpoints = cluster.config["endpoints"]
        for other in endpoints[1:]:
            self._reading.note(f"{cluster.path}.load_assignment: {other} is not used: one control plane is enough")
        plane = {"address": endpoints[0].partition("://")[2]} if endpoints else {"address": ""}
        self.origins.append(("control_plane", cluster.path))
        return {**plane, **{key: cluster.config[key] for key in ("tls", "connect_timeout") if key in cluster.config}}

    def _cds(self, dynamic: Part) -> dict[str, Any]:
        if "cds_config" not in dynamic:
            return {}
        cds = dynamic.part("cds_config")
        if "ads" not in cds:
            self._reading.problem(cds.path, "clusters are taken from the ADS stream alone: write `ads: {}`")
        cds.take("ads")
        cds.take("resource_api_version")
        return {"clusters": True}

    def _cluster(self, part: Part) -> None:
        name = part.take("name")
        kind = part.take("type") or "STATIC"
        if kind not in _NAMED:
            why = f"is {kind}: only clusters that name their endpoints are used ({', '.join(sorted(_NAMED))})"
            self._reading.problem(part.at("type"), why)
        if part.take("lb_policy") not in {None, "ROUND_ROBIN"}:
            self._reading.note(f"{part.at('lb_policy')}: endpoints are taken in turn")
        config: dict[str, Any] = {"name": name}
        part.move("connect_timeout", config)
        tls = self._upstream_tls(part)
        if tls is not None:
            config["tls"] = tls
        for limits in part.part("circuit_breakers").parts("thresholds")[:1]:
            if limits.take("priority") in {None, "DEFAULT"}:
                limits.move("max_requests", config)
                limits.move("max_connections", config)
        scheme = "http" if tls is None else "https"
        assignment = part.part("load_assignment")
        assignment.take("cluster_name")
        config["endpoints"] = []
        for locality in assignment.parts("endpoints"):
            for entry in locality.parts("lb_endpoints"):
                address = self._address(entry.part("endpoint").part("address"))
                if address is not None:
                    config["endpoints"].append(f"{scheme}://{address}")
        self._clusters[str(name)] = _Cluster(part.path, config, part)

    def _upstream_tls(self, part: Part) -> dict[str, Any] | None:
        if "transport_socket" not in part:
            return None
        context = self._typed(part.part("transport_socket"), _TLS_UP)
        if context is None:
            return None
        tls: dict[str, Any] = {}
        context.move("sni", tls, "server_name")
        common = context.part("common_tls_context")
        common.take("alpn_protocols")
        self._certificate(common, tls)
        trusted = common.part("validation_context").part("trusted_ca")
        if not trusted.move("filename", tls, "ca_file"):
            self._reading.note(f"{context.path} names no trusted_ca file: certificates are verified by the system's")
        return tls

    def _certificate(self, common: Part, into: dict[str, Any]) -> None:
        for certificate in common.parts("tls_certificates")[:1]:
            certificate.part("certificate_chain").move("filename", into, "cert_file")
            certificate.part("private_key").move("filename", into, "key_file")

    def _listener(self, part: Part) -> tuple[dict[str, Any], str, str] | None:
        found: tuple[dict[str, Any], str] | None = None
        address: str | None = None
        for chain in part.parts("filter_chains"):
            for network in chain.parts("filters"):
                manager = self._typed(network, _MANAGER)
                made = None if manager is None else self._manager(manager)
                if made is None:
                    continue
                if found is not None:
                    self._reading.problem(made[1], "is the listener's second McpGateway: give it a listener of its own")
                    continue
                if "transport_socket" in chain:
                    made[0]["tls"] = self._downstream_tls(chain.part("transport_socket"))
                found = made
        if found is None:
            return None  # what is left of it is said to be unused
        listener: dict[str, Any] = {}
        part.move("name", listener)
        address = self._address(part.part("address"))
        if address is not None:
            listener["address"] = address
        return {**listener, **found[0]}, part.path, found[1]

    def _downstream_tls(self, socket: Part) -> dict[str, Any]:
        tls: dict[str, Any] = {}
        context = self._typed(socket, _TLS_DOWN)
        if context is None:
            # Plain text where TLS was asked for must not start.
            self._reading.problem(socket.path, "only a DownstreamTlsContext is understood")
            return tls
        common = context.part("common_tls_context")
        common.take("alpn_protocols")
        self._certificate(common, tls)
        if common.part("validation_context").part("trusted_ca").move("filename", tls, "client_ca_file"):
            tls["require_client_certificate"] = bool(context.take("require_client_certificate"))
        return tls

    def _manager(self, manager: Part) -> tuple[dict[str, Any], str] | None:
        gateway: Part | None = None
        jwt: Part | None = None
        for filtered in manager.parts("http_filters"):
            kind = filtered.kind("typed_config")
            if kind.endswith(_GATEWAY):
                gateway = self._typed(filtered, _GATEWAY)
            elif kind.endswith(_JWT):
                jwt = self._typed(filtered, _JWT)
            elif kind.endswith(_ROUTER):
                self._typed(filtered, _ROUTER)
        if gateway is None:
            return None
        manager.take("stat_prefix")
        manager.take("codec_type")
        made: dict[str, Any] = {"mcp_gateway": gateway.rest()}
        if jwt is not None:
            made["jwt"] = self._jwt(jwt)
        return made, gateway.path

    def _jwt(self, part: Part) -> dict[str, Any]:
        providers: dict[str, Any] = {}
        for name, provider in part.part("providers").members():
            config: dict[str, Any] = {}
            for key in ("issuer", "audiences"):
                provider.move(key, config)
            provider.move("clock_skew_seconds", config, "clock_skew")
            provider.take("forward")
            for key in ("filename", "inline_string"):
                provider.part("local_jwks").move(key, config.setdefault("local_jwks", {}))
            if "remote_jwks" in provider:
                config["remote_jwks"] = self._remote(provider.part("remote_jwks"))
            if not config["local_jwks"]:
                del config["local_jwks"]
            headers = [
                {key: header.take(key) for key in ("name", "value_prefix") if key in header}
                for header in provider.parts("from_headers")
            ]
            if headers:
                config["from_headers"] = headers
            providers[name] = config
        return {"providers": providers, "required": self._required(part)}

    def _remote(self, part: Part) -> dict[str, Any]:
        config: dict[str, Any] = {}
        source = part.part("http_uri")
        source.move("uri", config)
        source.move("timeout", config)
        part.move("cache_duration", config)
        cluster = self._clusters.get(str(source.take("cluster")))
        ca_file = None if cluster is None else cluster.config.get("tls", {}).get("ca_file")
        if ca_file is not None:
            config["ca_file"] = ca_file
        return config

    def _required(self, part: Part) -> bool:
        """Whether a caller must show a token. What is not understood requires one."""
        required = False
        for rule in part.parts("rules"):
            match = rule.part("match")
            everything = match.take("prefix") in {"/", "/mcp"}
            requires = rule.part("requires")
            wants = "provider_name" in requires or "requires_any" in requires
            choices = (requires, *requires.part("requires_any").parts("requirements"))
            lax = any("allow_missing" in one or "allow_missing_or_failed" in one for one in choices)
            if everything and (wants or lax):
                for one in choices:
                    for key in ("provider_name", "allow_missing", "allow_missing_or_failed"):
                        one.take(key)
                required = required or not lax
            else:
                required = True
                self._reading.note(f"{rule.path} is more than the gateway tells apart: every request needs a token")
        return required

    def _typed(self, part: Part, kind: str) -> Part | None:
        """The typed_config if it is of that type."""
        if not part.kind("typed_config").endswith(kind):
            return None
        part.take("name")
        config = part.part("typed_config")
        config.take("@type")
        return config

    def _address(self, part: Part) -> str | None:
        if "socket_address" not in part:
            if "pipe" in part:
                self._reading.problem(part.at("pipe"), "only socket addresses are used")
            return None
        socket = part.part("socket_address")
        if socket.take("protocol") not in {None, "TCP"}:
            self._reading.problem(socket.at("protocol"), "only TCP is spoken")
        host, port = socket.take("address"), socket.take("port_value")
        if not isinstance(host, str) or not isinstance(port, int):
            self._reading.problem(socket.path, "needs `address` and a number as `port_value`")
            return None
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclasses.dataclass(frozen=True, slots=True)
class _Made:
    config: dict[str, Any]
    origins: list[tuple[str, str]]
