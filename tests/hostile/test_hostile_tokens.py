"""Forged, broken and endless tokens: nobody comes in, nothing fails, nothing of them comes back."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator

import auth_issuer as issuer
import pytest
import pytest_asyncio
from auth_people import FOREVER, jwt_config, token
from hostile_wire import Target, call, request, target

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Target]:
    async with target(settings={"jwt": jwt_config()}) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def here(shared: Target) -> AsyncIterator[Target]:
    shared.asked.clear()
    yield shared
    await shared.works()


GOOD = token()
HEAD, BODY, SIGNATURE = GOOD.split(".")
PUBLIC = issuer.RSA.as_pem(private=False)
FORGED: dict[str, str] = {
    "dots": "..",
    "many-dots": "." * 5000,
    "no-signature": f"{HEAD}.{BODY}.",
    "signature-of-another": f"{HEAD}.{BODY}.{token(key=issuer.STRANGER).split('.')[2]}",
    "signature-zero": f"{HEAD}.{BODY}.{issuer.part(bytes(64))}",
    "signature-short": f"{HEAD}.{BODY}.{SIGNATURE[:-4]}",
    "signature-long": f"{HEAD}.{BODY}.{SIGNATURE}AAAA",
    "two-signatures": f"{GOOD}.{SIGNATURE}",
    "payload-swapped": f"{HEAD}.{issuer.part(issuer.claims(exp=FOREVER, role='admin'))}.{SIGNATURE}",
    "none": issuer.unsigned({"alg": "none"}, exp=FOREVER),
    "none-with-key-id": issuer.unsigned({"alg": "None", "kid": "ec"}, exp=FOREVER),
    "hmac-with-pem": issuer.hmac_with(PUBLIC, {"alg": "HS256", "kid": "rsa"}, exp=FOREVER),
    "hmac-with-jwks": issuer.hmac_with(issuer.jwks(), {"alg": "HS256"}, exp=FOREVER),
    "hmac-empty": issuer.hmac_with(b"", {"alg": "HS256", "kid": "ec"}, exp=FOREVER),
    "own-key-inside": token(key=issuer.STRANGER, header={"kid": "ec", "jwk": issuer.STRANGER.as_dict(private=False)}),
    "own-key-by-address": token(key=issuer.STRANGER, header={"kid": "ec", "jku": "http://169.254.169.254/jwks"}),
    "key-id-path": token(key=issuer.STRANGER, header={"kid": "../../../../dev/null"}),
    "key-id-query": token(key=issuer.STRANGER, header={"kid": "' OR 1=1 --"}),
    "expired": token(exp=1),
    "expires-as-text": token(exp=str(FOREVER)),
    "expires-in-infinity": ".".join([HEAD, issuer.part(b'{"exp":1e999}'), SIGNATURE]),
    "not-yet": token(nbf=FOREVER),
    "audience-of-another": token(aud=["https://evil.example"]),
    "issuer-of-another": token(iss="https://evil.example"),
    "encrypted": ".".join([issuer.part({"alg": "RSA-OAEP", "enc": "A256GCM"}), "AA", "AA", "AA", "AA"]),
    "deep": f"{issuer.part(b'[' * 2000)}.{BODY}.{SIGNATURE}",
    "noise": issuer.part(random.Random(1).randbytes(3000)),
    "percent": GOOD.replace(".", "%2e"),
    "padded": f"{HEAD}=.{BODY}=.{SIGNATURE}=",
    "json": json.dumps({"protected": HEAD, "payload": BODY, "signature": SIGNATURE}),
}


@pytest.mark.parametrize("name", FORGED)
async def test_nobody_comes_in_with_it(here: Target, name: str) -> None:
    answer = await here.throw(request(call(), b"Authorization: Bearer " + FORGED[name].encode()))
    assert here.asked == []
    assert answer.split(b" ", 2)[1] == b"401"
    assert b"WWW-Authenticate: Bearer" in answer
    assert b"evil" not in answer
    assert SIGNATURE.encode() not in answer


async def test_the_good_one_still_does(here: Target) -> None:
    answer = await here.throw(request(call(), f"Authorization: Bearer {GOOD}".encode()))
    assert answer.startswith(b"HTTP/1.1 200")
    assert here.asked == ["/a/marker"]
