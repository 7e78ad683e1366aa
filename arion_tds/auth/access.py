"""Who sent this request? The AccessPort of a listener that trusts JWTs.

In: headers. Out: a `Caller` (verified, or anonymous where that is allowed), or a `Denial` with the challenge that MCP's
authorization wants (RFC 6750, RFC 9728). Called by the front once per request; built by app. What is kept: verified
tokens by their hash, until they expire or their issuer's keys change, the least recently used going first.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from multidict import CIMultiDictProxy, istr

from arion_tds.auth import jwt
from arion_tds.auth.jwks import KeySource
from arion_tds.auth.jwt import Keys, Provider, Refusal, Unverified, Why
from arion_tds.auth.rbac import Token, allows
from arion_tds.model.caller import Anonymous, Caller, Denial, Mask
from arion_tds.model.rbac import Rbac

_MEMORY: Final = 300.0
"""Seconds that a token without an expiration is kept before it is verified again."""

_VERDICTS: Final = 64
"""Policies whose verdict a caller remembers."""

_SUBJECT: Final = 256
"""Characters of a subject that are used as they are; longer ones are hashed."""


@dataclasses.dataclass(frozen=True, slots=True)
class FromHeader:
    """A header that may hold a token, after this prefix (compared without regard to case)."""

    name: str = "Authorization"
    prefix: str = "Bearer "


@dataclasses.dataclass(frozen=True, slots=True)
class Trusted:
    """A provider, where its keys come from, and which headers may hold its tokens."""

    provider: Provider
    source: KeySource
    headers: tuple[FromHeader, ...] = (FromHeader(),)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """What a listener demands. `metadata_url` is told to those who are refused; `max_tokens` are remembered."""

    required: bool = True
    scopes: frozenset[str] = frozenset()
    metadata_url: str | None = None
    max_tokens: int = 10_000


class TokenCaller:
    """A caller with a verified token."""

    __slots__ = ("_mask", "_now", "_verdicts", "expires", "subject", "token")

    def __init__(self, token: Token, subject: str, expires: float | None, now: Callable[[], float]) -> None:
        """`expires` and `now`: seconds since the epoch; None: the token does not expire."""
        self._now = now
        self.token = token
        self.subject: str | None = subject
        self.expires = expires
        self._mask = Mask(self.allows)
        self._verdicts: dict[Rbac, bool] = {}

    @property
    def lasts(self) -> float | None:
        """Seconds until the token has expired."""
        return None if self.expires is None else self.expires - self._now()

    def allows(self, rbac: Rbac | None) -> bool:
        """Whether the token fulfils the rbac. It never changes its mind, so verdicts are kept."""
        if rbac is None:
            return True
        verdict = self._verdicts.get(rbac)
        if verdict is None:
            if len(self._verdicts) >= _VERDICTS:
                self._verdicts.clear()
            verdict = self._verdicts[rbac] = allows(rbac, self.token)
        return verdict

    def denied(self, guards: Sequence[Rbac]) -> int:
        """See `Caller.denied`."""
        return self._mask(guards)


@dataclasses.dataclass(slots=True)
class _Known:
    caller: TokenCaller
    until: float
    source: KeySource
    keys: Keys


class JwtAccess:
    """Admits callers of one listener."""

    def __init__(
        self,
        settings: AccessSettings,
        trusted: Sequence[Trusted],
        *,
        now: Callable[[], float],
        heard: Callable[[str], None] | None = None,
    ) -> None:
        """`now`: seconds since the epoch. `heard` is told of each verification: "ok" or a `Why`, or "missing"."""
        self._settings = settings
        self._now = now
        self._heard = heard
        self._anonymous = Anonymous()
        self._known: OrderedDict[tuple[str, bytes], _Known] = OrderedDict()
        places: dict[FromHeader, list[Trusted]] = {}
        for one in trusted:
            for header in one.headers:
                places.setdefault(header, []).append(one)
        self._places = [(istr(place.name), place.prefix, tuple(found)) for place, found in places.items()]
        resource = "" if settings.metadata_url is None else f' resource_metadata="{settings.metadata_url}"'
        self._resource = resource

    def __len__(self) -> int:
        """Tokens that are remembered."""
        return len(self._known)

    async def admit(self, headers: Mapping[str, str]) -> Caller | Denial:
        """Who sent these headers (looked up case-insensitively), or why the request is refused."""
        for name, prefix, trusted in self._places:
            value = headers.get(name)
            if value is None:
                continue
            if value[: len(prefix)].lower() != prefix.lower():
                continue
            if type(headers) is CIMultiDictProxy and len(headers.getall(name)) > 1:
                return self._denial(400, "invalid_request", f"the {name} header came more than once")
            return await self._admit(name, value[len(prefix) :].strip(), trusted)
        if not self._settings.required:
            return self._anonymous
        self._tell("missing")
        return Denial(401, "a bearer token is needed", {"WWW-Authenticate": f"Bearer{self._resource}"})

    async def _admit(self, place: str, text: str, trusted: tuple[Trusted, ...]) -> Caller | Denial:
        # The place belongs to it: what one header may hold, another may not.
        digest = (place, hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest())
        known = self._known.get(digest)
        if known is not None:
            if self._now() < known.until and await known.source.keys() is known.keys:
                self._known.move_to_end(digest)
                return known.caller
            del self._known[digest]
        found = await self._verify(text, trusted)
        if isinstance(found, Refusal):
            self._tell(found.why)
            return self._denial(401, "invalid_token", found.message)
        token = found.caller.token
        missing = self._settings.scopes - jwt.scopes(token) if self._settings.scopes else frozenset()
        if missing:
            self._tell(Why.SCOPE)
            wanted = " ".join(sorted(self._settings.scopes))
            return self._denial(403, "insufficient_scope", "the token lacks a scope", f' scope="{wanted}"')
        self._tell("ok")
        self._known[digest] = found
        if len(self._known) > self._settings.max_tokens:
            self._known.popitem(last=False)
        return found.caller

    async def _verify(self, text: str, trusted: tuple[Trusted, ...]) -> _Known | Refusal:
        """The first provider that trusts the token, or the refusal of the one that came closest."""
        unverified = jwt.take_apart(text)
        if isinstance(unverified, Refusal):
            return unverified
        refusal = Refusal(Why.ISSUER, "the token is from an issuer that is not trusted here")
        for one in trusted:
            if one.provider.issuer and one.provider.issuer != unverified.issuer:
                continue
            found = await self._by(one, unverified)
            if isinstance(found, _Known):
                return found
            refusal = found
        return refusal

    async def _by(self, trusted: Trusted, unverified: Unverified) -> _Known | Refusal:
        provider, source = trusted.provider, trusted.source
        keys = await source.keys()
        if keys is None:
            return Refusal(Why.NO_KEYS, "the token cannot be verified now: its issuer's keys are not known")
        token = jwt.verify(unverified, provider, keys, self._now())
        if isinstance(token, Refusal) and token.why in {Why.KEY, Why.SIGNATURE}:
            # The issuer may have rotated its keys. How often a token may cause a fetch is the source's business.
            renewed = await source.renewed(keys)
            if renewed is not None:
                keys = renewed
                token = jwt.verify(unverified, provider, keys, self._now())
        if isinstance(token, Refusal):
            return token
        expires = jwt.expires(token)
        until = self._now() + _MEMORY if expires is None else expires + provider.clock_skew
        caller = TokenCaller(token, _subject(provider.name, token), None if expires is None else until, self._now)
        return _Known(caller, until, source, keys)

    def _denial(self, status: int, error: str, message: str, more: str = "") -> Denial:
        separator = "," if self._resource else ""
        challenge = f'Bearer{self._resource}{separator} error="{error}", error_description="{message}"'
        return Denial(status, message, {"WWW-Authenticate": challenge + (f",{more}" if more else "")})

    def _tell(self, outcome: str) -> None:
        if self._heard is not None:
            self._heard(outcome)


def _subject(provider: str, token: Token) -> str:
    """The caller for sessions, limits and the audit log. A provider's name holds no colon, so this is unambiguous."""
    for claim in ("sub", "client_id", "azp"):
        value = token.claims.get(claim)
        if isinstance(value, str) and value:
            if len(value) > _SUBJECT or not value.isprintable():
                value = "sha256-" + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
            return f"{provider}:{value}"
    return f"{provider}:"


def protected_resource(resource: str, issuers: Sequence[str], scopes: Sequence[str], name: str) -> dict[str, object]:
    """The metadata of RFC 9728 for a listener."""
    return {
        "resource": resource,
        "authorization_servers": list(dict.fromkeys(one for one in issuers if one)),
        "scopes_supported": sorted(scopes),
        "bearer_methods_supported": ["header"],
        "resource_name": name,
    }
