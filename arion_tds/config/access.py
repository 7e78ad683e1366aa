"""Keys of gateway.yaml that say who may come in, how much of it, and what is written down: JWT, TLS, limits, audit.

Part of config.file; the names of `jwt` are those of Envoy's `jwt_authn` filter.
"""

from __future__ import annotations

import pathlib
import re
import ssl
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import pydantic
from pydantic import Field

from arion_tds.auth import jwt
from arion_tds.auth.access import FromHeader
from arion_tds.auth.jwks import RemoteSettings
from arion_tds.config.values import Model, Seconds
from arion_tds.server.connection import ConnectionSettings
from arion_tds.server.limits import LimitSettings

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_NAME = re.compile(r"[A-Za-z0-9_.-]+\Z")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+\Z")


def _url(value: str, *, path: bool = True) -> str:
    try:
        parts = urlsplit(value)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
        parts = urlsplit("")
    if not fine or parts.username or parts.fragment or re.search(r'["\\\s]', value) or not value.isascii():
        msg = f"{value!r} is not an absolute http or https URL"
        raise ValueError(msg)
    if not path and parts.query:
        msg = f"{value!r} must not have a query"
        raise ValueError(msg)
    return value


class FromHeaderConfig(Model):
    """A header that holds the token."""

    name: str
    """Its name."""
    value_prefix: str = ""
    """What stands before the token, such as `Bearer `; compared without regard to case."""

    @pydantic.field_validator("name")
    @classmethod
    def _token(cls, value: str) -> str:
        if not _TOKEN.match(value):
            msg = f"{value!r} is not a header name"
            raise ValueError(msg)
        return value


class LocalJwksConfig(Model):
    """Keys that are here: exactly one of `filename` and `inline_string`. A file that changes is read anew."""

    filename: str | None = None
    """Path of a JWKS document."""
    inline_string: str | None = None
    """The document itself (public keys only, so it need not be a secret)."""

    @pydantic.model_validator(mode="after")
    def _one(self) -> Self:
        if (self.filename is None) == (self.inline_string is None):
            msg = "name exactly one of `filename` and `inline_string`"
            raise ValueError(msg)
        if self.inline_string is not None:
            keys = jwt.parse_keys(self.inline_string.encode())
            if isinstance(keys, str):
                msg = f"inline_string {keys}"
                raise ValueError(msg)
        return self

    def read(self) -> bytes:
        """The document. OSError when the file cannot be read."""
        if self.filename is None:
            return (self.inline_string or "").encode()
        return pathlib.Path(self.filename).read_bytes()


class RemoteJwksConfig(Model):
    """Keys that are fetched. While they cannot be renewed the old ones stay in use, with a warning."""

    uri: str
    """Address of the JWKS document."""
    timeout: Seconds = 5.0
    """Of one fetch."""
    cache_duration: Seconds = 600.0
    """Keys are renewed this often."""
    cooldown: Seconds = 30.0
    """Least time between fetches caused by tokens with unknown keys, and between tries that fail."""
    max_bytes: int = Field(default=1 << 20, ge=1024)
    """Largest document."""
    ca_file: str | None = None
    """Certificates to trust; the system's when unset."""

    @pydantic.field_validator("uri")
    @classmethod
    def _absolute(cls, value: str) -> str:
        return _url(value)

    def settings(self) -> RemoteSettings:
        """As the value that auth takes."""
        return RemoteSettings(
            uri=self.uri,
            timeout=self.timeout,
            cache_duration=self.cache_duration,
            cooldown=self.cooldown,
            max_bytes=self.max_bytes,
        )


class JwtProviderConfig(Model):
    """An issuer of tokens."""

    issuer: str = ""
    """The `iss` that its tokens carry; not checked when unset."""
    audiences: tuple[str, ...] = ()
    """One of them must be in `aud`; when unset, the listener's `jwt.resource`, and without one nothing is checked."""
    algorithms: tuple[str, ...] = jwt.ALGORITHMS
    """Signatures that are accepted, whatever a token says of itself."""
    local_jwks: LocalJwksConfig | None = None
    """Keys that are here."""
    remote_jwks: RemoteJwksConfig | None = None
    """Keys that are fetched."""
    clock_skew: float = Field(default=60.0, ge=0)
    """Seconds by which clocks may differ."""
    require_expiration: bool = True
    """A token without `exp` is refused."""
    from_headers: tuple[FromHeaderConfig, ...] = (FromHeaderConfig(name="Authorization", value_prefix="Bearer "),)
    """Where its tokens stand."""

    @pydantic.field_validator("algorithms")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in jwt.ALGORITHMS:
                msg = f"{name!r} is not accepted: use {', '.join(jwt.ALGORITHMS)}"
                raise ValueError(msg)
        if not value:
            msg = "name at least one"
            raise ValueError(msg)
        return value

    @pydantic.model_validator(mode="after")
    def _source(self) -> Self:
        if (self.local_jwks is None) == (self.remote_jwks is None):
            msg = "name exactly one of `local_jwks` and `remote_jwks`"
            raise ValueError(msg)
        if not self.from_headers:
            msg = "from_headers: name at least one"
            raise ValueError(msg)
        return self

    def provider(self, name: str, resource: str | None) -> jwt.Provider:
        """As the value that auth takes."""
        audiences = self.audiences or (() if resource is None else (resource,))
        return jwt.Provider(
            name=name,
            issuer=self.issuer,
            audiences=audiences,
            algorithms=frozenset(self.algorithms),
            clock_skew=self.clock_skew,
            require_expiration=self.require_expiration,
        )

    def headers(self) -> tuple[FromHeader, ...]:
        """Where its tokens stand, as the value that auth takes."""
        return tuple(FromHeader(one.name, one.value_prefix) for one in self.from_headers)


class JwtConfig(Model):
    """Whose tokens a listener trusts, and what it demands of them."""

    providers: dict[str, JwtProviderConfig] = Field(min_length=1)
    """By name."""
    required: bool = True
    """`false`: callers without a token come in as nobody. A bad token is refused either way."""
    scopes_required: tuple[str, ...] = ()
    """All of them must be granted (`scope` or `scp`); else 403 `insufficient_scope`."""
    resource: str | None = None
    """Public URL of this endpoint, such as `https://mcp.example.com/mcp`: clients are told it (RFC 9728)."""
    max_cached_tokens: int = Field(default=10_000, ge=1)
    """Verified tokens that are remembered."""

    @pydantic.field_validator("resource")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        return None if value is None else _url(value, path=False)

    @pydantic.field_validator("scopes_required")
    @classmethod
    def _scopes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for scope in value:
            if not _SCOPE.match(scope):
                msg = f"{scope!r} is not a scope"
                raise ValueError(msg)
        return value

    @pydantic.field_validator("providers")
    @classmethod
    def _named(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if not _NAME.match(name):
                msg = f"provider {name!r}: a name is made of letters, digits, `_`, `.` and `-`"
                raise ValueError(msg)
        return value

    def doubts(self) -> list[str]:
        """What is allowed, and probably not meant."""
        said = []
        for name, provider in self.providers.items():
            if not provider.provider(name, self.resource).audiences:
                said.append(
                    f"providers.{name} checks no audience: tokens that were made for somebody else are taken; "
                    "set `audiences`, or `resource` of the listener"
                )
            if not provider.issuer:
                said.append(f"providers.{name} checks no issuer: set `issuer`")
        if self.resource is None:
            said.append("resource is not set: clients are not told where to get a token")
        return said

    @property
    def metadata_url(self) -> str | None:
        """Where clients find the metadata of the resource (RFC 9728, 3.1)."""
        if self.resource is None:
            return None
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path.rstrip('/')}"


class AuditConfig(Model):
    """One JSON line per tool call: who, which tool, when, what became of it, how long it took."""

    path: str = "stderr"
    """Absolute path of a file, or `stderr`. A file that is moved away is opened anew."""
    arguments: bool = False
    """Also what the tool was called with. They may hold anything that callers know."""
    max_buffer_bytes: int = Field(default=4 << 20, ge=1 << 16)
    """Lines that wait to be written; what goes beyond is dropped and counted (`arion_tds_audit_dropped_total`)."""

    @pydantic.field_validator("path")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if value != "stderr" and (not pathlib.PurePath(value).is_absolute() or "\0" in value):
            msg = f"{value!r} is neither an absolute path nor stderr"
            raise ValueError(msg)
        return value


class LimitsConfig(Model):
    """How much one listener takes, in all and from one caller. Whoever is turned away is told so (429, 503)."""

    requests_per_second: float | None = Field(default=None, gt=0)
    """Of one caller: a token's subject, else an address. More gets 429. Any when unset."""
    burst: int = Field(default=20, ge=1)
    """Requests that one caller may make at once, within that rate."""
    max_callers: int = Field(default=10_000, ge=1)
    """Callers whose rate is remembered."""
    max_concurrent_requests: int = Field(default=1024, ge=1)
    """Requests under way, streams not counted. More get 503."""
    max_connections: int = Field(default=4096, ge=1)
    """Open connections. The one that has been idle longest makes room for a new one."""
    max_unsent_bytes: int = Field(default=1 << 28, ge=1 << 20)
    """Of answers that clients have not taken yet. Beyond, the client that took nothing for longest is cut off."""
    max_streams_per_caller: int = Field(default=1000, ge=1)
    """Open notification streams of one caller."""
    max_header_bytes: int = Field(default=8190, ge=1024, le=1 << 20)
    """Of one header, and of the request line."""
    max_headers: int = Field(default=100, ge=10, le=1000)
    """Headers of one request."""
    max_json_depth: int = Field(default=128, ge=8, le=900)
    """Nesting of a request's JSON."""
    header_timeout: Seconds = 10.0
    """A request's headers must be complete within this; the TLS handshake too."""
    body_timeout: Seconds = 30.0
    """A request's body must be complete within this."""
    idle_timeout: Seconds = 75.0
    """A connection without a request is kept this long."""
    write_timeout: Seconds = 30.0
    """A client that takes nothing of an answer for this long is cut off."""
    forwarded_hops: int = Field(default=0, ge=0, le=16)
    """Proxies of ours in front, whose `X-Forwarded-For` says where callers come from."""

    def settings(self) -> LimitSettings:
        """As the value that the front takes."""
        return LimitSettings(
            rate=self.requests_per_second,
            burst=self.burst,
            max_callers=self.max_callers,
            max_concurrent=self.max_concurrent_requests,
            max_streams_per_caller=self.max_streams_per_caller,
            max_json_depth=self.max_json_depth,
            forwarded_hops=self.forwarded_hops,
        )

    def connections(self) -> ConnectionSettings:
        """As the value that the listening socket takes."""
        return ConnectionSettings(
            max_connections=self.max_connections,
            max_unsent_bytes=self.max_unsent_bytes,
            header_timeout=self.header_timeout,
            idle_timeout=self.idle_timeout,
            write_timeout=self.write_timeout,
            max_header_bytes=self.max_header_bytes,
            max_headers=self.max_headers,
        )


class ListenerTlsConfig(Model):
    """TLS of a listener. PEM files; when they change they are read anew, and open connections stay."""

    cert_file: str
    """The certificate and those that lead to its authority."""
    key_file: str
    """Its private key, without a passphrase."""
    client_ca_file: str | None = None
    """Authorities of client certificates; without it none is asked for."""
    require_client_certificate: bool = True
    """With `client_ca_file`: whether a client without a certificate is turned away."""
    min_version: Literal["1.2", "1.3"] = "1.2"
    """Of TLS."""

    @property
    def files(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(path for path in (self.cert_file, self.key_file, self.client_ca_file) if path is not None)

    def context(self) -> ssl.SSLContext:
        """Read the files. ValueError names the one that cannot be used."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_3 if self.min_version == "1.3" else ssl.TLSVersion.TLSv1_2
        made.set_alpn_protocols(["http/1.1"])
        try:
            # Without a password of its own OpenSSL would ask for one on the terminal.
            made.load_cert_chain(self.cert_file, self.key_file, password=b"")
        except (OSError, ValueError) as error:
            msg = f"cert_file {self.cert_file!r} with key_file {self.key_file!r} cannot be used: {_why(error)}"
            raise ValueError(msg) from error
        if self.client_ca_file is not None:
            try:
                made.load_verify_locations(self.client_ca_file)
            except (OSError, ValueError) as error:
                msg = f"client_ca_file {self.client_ca_file!r} cannot be used: {_why(error)}"
                raise ValueError(msg) from error
            made.verify_mode = ssl.CERT_REQUIRED if self.require_client_certificate else ssl.CERT_OPTIONAL
        return made


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
