"""Is this compact JWS a token that we trust? Pure: the token's text, a provider's rules, its keys and the time in;
a `Token` or the reason why not out.

Called by auth.access. The cryptography is joserfc's; what is accepted is decided here. The algorithm must be one that
the provider lists and that fits the key: the token's own word counts for nothing, so `none`, an HMAC keyed with a
public key, and a weaker algorithm than the key's own have no way in (RFC 8725, 3.1 and 3.2).
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import enum
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from arion_tds.auth.rbac import Token

if TYPE_CHECKING:
    # At run time it is loaded with the first keys: 10 MB that a gateway without JWT need not hold.
    from joserfc.jwk import Key

ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
)  # fmt: skip
"""What a provider may list: signatures with a public key. Secrets shared with an issuer (HMAC) are not served."""

MAX_TOKEN: Final = 16 << 10
"""Characters of a token."""

MAX_KEYS: Final = 128
"""Keys of one JWKS."""

_MAX_TRIED: Final = 8  # keys tried for a token that names none: each costs a verification
_RSA_BITS: Final = (2048, 8192)  # below: broken; above: a verification costs milliseconds
_PART: Final = re.compile(r"[A-Za-z0-9_-]+\Z")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Why(enum.StrEnum):
    """Why a token is refused: for metrics and logs. What the caller is told is `Refusal.message`."""

    MALFORMED = "malformed"
    ALGORITHM = "algorithm"
    ISSUER = "issuer"
    AUDIENCE = "audience"
    EXPIRED = "expired"
    NOT_YET = "not_yet_valid"
    KEY = "unknown_key"
    SIGNATURE = "signature"
    NO_KEYS = "no_keys"
    SCOPE = "scope"


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """The token is not trusted. `message` holds nothing that the token said."""

    why: Why
    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Whose tokens are trusted. Empty `issuer` or `audiences`: not checked. `clock_skew` in seconds."""

    name: str
    issuer: str = ""
    audiences: tuple[str, ...] = ()
    algorithms: frozenset[str] = frozenset(ALGORITHMS)
    clock_skew: float = 60.0
    require_expiration: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Unverified:
    """A token taken apart; nothing in it is trusted yet. `signed` is what the signature covers."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes

    @property
    def issuer(self) -> object:
        """The `iss` claim, whatever it is."""
        return self.claims.get("iss")


class Keys:
    """The usable public keys of one JWKS, immutable. `skipped` says what was left out and why."""

    __slots__ = ("_keys", "document", "skipped")

    def __init__(self, document: bytes, keys: Sequence[tuple[str | None, Key]], skipped: tuple[str, ...]) -> None:
        """Made by `parse_keys`."""
        self.document = document
        self.skipped = skipped
        self._keys = tuple(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def fitting(self, kid: str | None) -> list[Key]:
        """The keys of that id; without an id, the first few of all."""
        if kid is None:
            return [key for _, key in self._keys[:_MAX_TRIED]]
        return [key for name, key in self._keys if name == kid]


def parse_keys(document: bytes) -> Keys | str:
    """The keys of a JWKS document, or why it is none. Keys that cannot verify our algorithms are left out."""
    try:
        listed = _decode(document).get("keys")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "is not a JSON object"
    if not isinstance(listed, list):
        return "has no list `keys`"
    if len(listed) > MAX_KEYS:
        return f"has {len(listed)} keys, more than {MAX_KEYS}"
    keys: list[tuple[str | None, Key]] = []
    skipped: list[str] = []
    for position, item in enumerate(listed):
        key = _key(item)
        if isinstance(key, str):
            skipped.append(f"keys[{position}] {key}")
        else:
            keys.append(key)
    if not keys:
        return "has no usable key" + (f": {'; '.join(skipped[:3])}" if skipped else "")
    return Keys(document, keys, tuple(skipped))


def _key(item: object) -> tuple[str | None, Key] | str:
    if not isinstance(item, dict):
        return "is not an object"
    kind, use, kid = item.get("kty"), item.get("use", "sig"), item.get("kid")
    if not isinstance(kind, str) or kind not in {"RSA", "EC", "OKP"}:
        return f"is of type {str(kind)[:16]!r}, which verifies no public signature"
    if use != "sig":
        return "is not for signatures"
    if kid is not None and not isinstance(kid, str):
        return "has a `kid` that is not a string"
    from joserfc.jwk import RSAKey, import_key

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of short keys: refused below
            key = import_key(item)
            size = key.public_key.key_size if isinstance(key, RSAKey) else None
            key.check_key_op("verify")
    except Exception as error:  # noqa: BLE001 - joserfc and cryptography raise many kinds for what a document holds
        return f"cannot be used: {type(error).__name__}"
    if size is not None and not _RSA_BITS[0] <= size <= _RSA_BITS[1]:
        return f"is an RSA key of {size} bits, not of {_RSA_BITS[0]} to {_RSA_BITS[1]}"
    return kid, key


def take_apart(token: str) -> Unverified | Refusal:
    """The parts of a compact JWS."""
    if len(token) > MAX_TOKEN:
        return Refusal(Why.MALFORMED, f"the token is longer than {MAX_TOKEN} characters")
    parts = token.split(".")
    if len(parts) != 3 or not all(_PART.match(part) for part in parts[:2]):
        return _malformed()
    try:
        header, claims = _decode(_base64(parts[0])), _decode(_base64(parts[1]))
        signature = _base64(parts[2])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, binascii.Error, ValueError):
        return _malformed()
    if "crit" in header or "b64" in header:
        return Refusal(Why.MALFORMED, "the token asks for extensions (crit, b64) that are not supported")
    return Unverified(header, claims, f"{parts[0]}.{parts[1]}".encode(), signature)


def _malformed() -> Refusal:
    return Refusal(Why.MALFORMED, "the token is not a signed JWT")


def _base64(part: str) -> bytes:
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)


def verify(token: Unverified, provider: Provider, keys: Keys, now: float) -> Token | Refusal:
    """Judge the token by the provider's rules. `now`: seconds since the epoch."""
    algorithm = token.header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in provider.algorithms or algorithm not in ALGORITHMS:
        return Refusal(Why.ALGORITHM, "the token is signed with an algorithm that is not accepted")
    kid = token.header.get("kid")
    if kid is not None and not isinstance(kid, str):
        return _malformed()
    candidates = keys.fitting(kid)
    if not candidates:
        return Refusal(Why.KEY, "the token is signed with a key that the issuer does not publish")
    if not any(_signed_by(token, algorithm, key) for key in candidates):
        return Refusal(Why.SIGNATURE, "the token's signature does not fit")
    return _claims(token, provider, now) or Token(token.header, token.claims)


def _signed_by(token: Unverified, algorithm: str, key: Key) -> bool:
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, OKPKey, RSAKey
    from joserfc.jws import JWSRegistry

    if not isinstance(key, RSAKey | ECKey | OKPKey):
        return False
    model = JWSRegistry.algorithms[algorithm]
    try:
        model.check_key(key)
        return model.verify(token.signed, token.signature, key)
    except (JoseError, ValueError, TypeError):
        return False


def _claims(token: Unverified, provider: Provider, now: float) -> Refusal | None:
    claims = token.claims
    if provider.issuer and claims.get("iss") != provider.issuer:
        return Refusal(Why.ISSUER, "the token is from another issuer")
    if provider.audiences and not _for_us(claims.get("aud"), provider.audiences):
        return Refusal(Why.AUDIENCE, "the token is for another audience")
    times = [_time(claims.get(name)) for name in ("exp", "nbf", "iat")]
    if any(isinstance(one, str) for one in times):
        return Refusal(Why.MALFORMED, "a time in the token (exp, nbf, iat) is not a number")
    expires, begins, _ = times
    if expires is None and provider.require_expiration:
        return Refusal(Why.EXPIRED, "the token has no expiration (exp)")
    if isinstance(expires, float) and now >= expires + provider.clock_skew:
        return Refusal(Why.EXPIRED, "the token has expired")
    if isinstance(begins, float) and now < begins - provider.clock_skew:
        return Refusal(Why.NOT_YET, "the token is not valid yet")
    return None


def _for_us(audience: object, ours: tuple[str, ...]) -> bool:
    if isinstance(audience, str):
        return audience in ours
    return isinstance(audience, list) and any(isinstance(one, str) and one in ours for one in audience)


def _time(value: object) -> float | str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "not a number"
    try:
        seconds = float(value)
    except OverflowError:
        return "too large"
    return seconds if math.isfinite(seconds) else "not finite"


def expires(token: Token) -> float | None:
    """The `exp` of a verified token in seconds since the epoch."""
    found = _time(token.claims.get("exp"))
    return found if isinstance(found, float) else None


def scopes(token: Token) -> frozenset[str]:
    """What the token grants: `scope` (blank-separated, RFC 8693) or `scp` (text or list)."""
    found: set[str] = set()
    for name in ("scope", "scp"):
        value = token.claims.get(name)
        if isinstance(value, str):
            found.update(value.split())
        elif isinstance(value, list):
            found.update(one for one in value if isinstance(one, str))
    return frozenset(found)
