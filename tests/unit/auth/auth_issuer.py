"""An issuer of tokens whose every claim and header a test can bend."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import warnings
from typing import Any

from joserfc import jwk, jwt
from joserfc.jwk import Key

NOW = 1_800_000_000.0
ISSUER = "https://issuer.example"
AUDIENCE = "https://mcp.example/mcp"

RSA = jwk.RSAKey.generate_key(2048, parameters={"kid": "rsa"})
EC = jwk.ECKey.generate_key("P-256", parameters={"kid": "ec"})
EC384 = jwk.ECKey.generate_key("P-384", parameters={"kid": "ec384"})
ED = jwk.OKPKey.generate_key("Ed25519", parameters={"kid": "ed"})
STRANGER = jwk.ECKey.generate_key("P-256", parameters={"kid": "stranger"})


def jwks(*keys: Key) -> bytes:
    """The JWKS document of these keys."""
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys or (RSA, EC, EC384, ED)]}).encode()


def claims(**more: Any) -> dict[str, Any]:
    """Good claims; `more` bends them, None takes one away."""
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": int(NOW) + 300, "iat": int(NOW), **more}
    return {name: value for name, value in good.items() if value is not None}


def token(key: Key = EC, algorithm: str = "ES256", header: dict[str, Any] | None = None, **more: Any) -> str:
    """A signed token."""
    head = {"alg": algorithm, "kid": key.kid, **(header or {})}
    head = {name: value for name, value in head.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library prefers the name Ed25519 to EdDSA; issuers use both
        return jwt.encode(head, claims(**more), key, algorithms=[algorithm])


def part(value: Any) -> str:
    """JSON (or bytes) as base64url."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def unsigned(header: dict[str, Any], **more: Any) -> str:
    """A token without a signature."""
    return f"{part(header)}.{part(claims(**more))}."


def hmac_with(secret: bytes, header: dict[str, Any], **more: Any) -> str:
    """A token whose signature is an HMAC with this secret."""
    signed = f"{part(header)}.{part(claims(**more))}"
    return f"{signed}.{part(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"
