"""What a token must be to be trusted."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from auth_issuer import (
    AUDIENCE,
    EC,
    EC384,
    ED,
    ISSUER,
    NOW,
    RSA,
    STRANGER,
    claims,
    hmac_with,
    jwks,
    part,
    token,
    unsigned,
)
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwk

from arion_tds.auth import jwt
from arion_tds.auth.jwt import Keys, Provider, Refusal, Why
from arion_tds.auth.rbac import Token

PROVIDER = Provider(name="main", issuer=ISSUER, audiences=(AUDIENCE,), clock_skew=10.0)


def parsed(document: bytes | None = None) -> Keys:
    found = jwt.parse_keys(jwks() if document is None else document)
    assert isinstance(found, Keys), found
    return found


def judge(text: str, *, now: float = NOW, keys: Keys | None = None, **rules: Any) -> Token | Why:
    provider = Provider(**{"name": "main", "issuer": ISSUER, "audiences": (AUDIENCE,), "clock_skew": 10.0, **rules})
    unverified = jwt.take_apart(text)
    found = unverified if isinstance(unverified, Refusal) else jwt.verify(unverified, provider, keys or parsed(), now)
    return found.why if isinstance(found, Refusal) else found


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        *[(RSA, name) for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")],
        (EC, "ES256"),
        (EC384, "ES384"),
        (ED, "EdDSA"),
        (ED, "Ed25519"),
    ],
)
def test_every_listed_algorithm_is_accepted_with_a_key_that_fits(key: Any, algorithm: str) -> None:
    found = judge(token(key, algorithm))
    assert isinstance(found, Token)
    assert found.claims["sub"] == "ada"
    assert found.header["alg"] == algorithm


def test_a_token_is_good_until_it_expires_give_or_take_the_skew() -> None:
    text = token(exp=int(NOW))
    assert isinstance(judge(text, now=NOW + 9), Token)
    assert judge(text, now=NOW + 10) is Why.EXPIRED


def test_a_token_is_not_valid_before_its_time() -> None:
    text = token(nbf=int(NOW) + 100, exp=int(NOW) + 900)
    assert judge(text) is Why.NOT_YET
    assert isinstance(judge(text, now=NOW + 90), Token)


def test_a_token_without_expiration_is_refused_unless_the_provider_takes_it() -> None:
    assert judge(token(exp=None)) is Why.EXPIRED
    assert isinstance(judge(token(exp=None), require_expiration=False), Token)


def test_another_issuer_is_refused_and_so_is_none() -> None:
    assert judge(token(iss="https://other.example")) is Why.ISSUER
    assert judge(token(iss=ISSUER + "/")) is Why.ISSUER
    assert judge(token(iss=None)) is Why.ISSUER
    assert judge(token(iss=[ISSUER])) is Why.ISSUER
    assert isinstance(judge(token(iss=None), issuer=""), Token)


@pytest.mark.parametrize(
    "audience", ["https://other.example", None, [], ["a", "b"], 7, {"x": AUDIENCE}, AUDIENCE + "/"]
)
def test_another_audience_is_refused(audience: Any) -> None:
    assert judge(token(aud=audience)) is Why.AUDIENCE


def test_one_audience_of_a_list_is_enough() -> None:
    assert isinstance(judge(token(aud=["https://other.example", AUDIENCE])), Token)
    assert isinstance(judge(token(aud="anything"), audiences=()), Token)


def test_an_algorithm_that_is_not_listed_is_refused_however_good_the_signature() -> None:
    assert judge(token(RSA, "RS256"), algorithms=frozenset({"ES256"})) is Why.ALGORITHM


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", "", None, 1, ["ES256"], "HS256", "dir", "ES256 "])
def test_a_token_that_names_no_listed_algorithm_is_refused(name: Any) -> None:
    header = {"alg": name, "kid": "ec"}
    assert judge(unsigned(header)) is Why.ALGORITHM
    everything = frozenset({*jwt.ALGORITHMS, "none", "HS256"})
    assert judge(unsigned(header), algorithms=everything) is Why.ALGORITHM


def test_a_public_key_is_no_secret_to_sign_with() -> None:
    document = jwks(RSA)
    for secret in (RSA.as_pem(private=False), json.dumps(RSA.as_dict(private=False)).encode(), document):
        assert judge(hmac_with(secret, {"alg": "HS256", "kid": "rsa"}), keys=parsed(document)) is Why.ALGORITHM


def test_a_shared_secret_in_a_jwks_is_left_out() -> None:
    secret = jwk.OctKey.generate_key(256, parameters={"kid": "oct"})
    listed = json.dumps({"keys": [secret.as_dict(private=True), EC.as_dict(private=False)]}).encode()
    assert len(parsed(listed)) == 1
    assert jwt.parse_keys(json.dumps({"keys": [secret.as_dict(private=True)]}).encode()).__class__ is str
    text = hmac_with(secret.raw_value, {"alg": "HS256", "kid": "oct"})
    assert judge(text, keys=parsed(listed)) is Why.ALGORITHM


def test_a_key_is_used_with_its_own_algorithms_only() -> None:
    assert judge(token(RSA, "RS256", {"kid": "ec"})) is Why.SIGNATURE
    only_pss = json.dumps({"keys": [{**RSA.as_dict(private=False), "alg": "PS256"}]}).encode()
    assert judge(token(RSA, "RS256"), keys=parsed(only_pss)) is Why.SIGNATURE
    assert isinstance(judge(token(RSA, "PS256"), keys=parsed(only_pss)), Token)


def test_a_stranger_s_key_is_refused_whatever_id_it_claims() -> None:
    assert judge(token(STRANGER)) is Why.KEY
    assert judge(token(STRANGER, header={"kid": "ec"})) is Why.SIGNATURE
    assert judge(token(STRANGER, header={"kid": None})) is Why.SIGNATURE


def test_a_key_that_the_token_brings_along_or_points_to_counts_for_nothing() -> None:
    brought = {"kid": "ec", "jwk": STRANGER.as_dict(private=False), "jku": "http://127.0.0.1:1/", "x5u": "http://x/"}
    assert judge(token(STRANGER, header=brought)) is Why.SIGNATURE


def test_without_a_key_id_the_keys_are_tried() -> None:
    assert isinstance(judge(token(EC, header={"kid": None})), Token)


def test_a_changed_payload_or_signature_is_refused() -> None:
    head, body, signature = token().split(".")
    assert judge(f"{head}.{part(claims(sub='eve'))}.{signature}") is Why.SIGNATURE
    assert judge(f"{head}.{body}.{'A' * len(signature)}") is Why.SIGNATURE
    assert judge(f"{head}.{body}.") is Why.SIGNATURE


@pytest.mark.parametrize("name", ["crit", "b64"])
def test_extensions_that_we_do_not_know_are_refused(name: str) -> None:
    header = {"alg": "ES256", "kid": "ec", name: ["b64"] if name == "crit" else False}
    assert judge(unsigned(header)) is Why.MALFORMED


@pytest.mark.parametrize("time", ["1", True, [1], {"a": 1}, "soon"])
@pytest.mark.parametrize("name", ["exp", "nbf", "iat"])
def test_a_time_that_is_no_number_is_refused(name: str, time: Any) -> None:
    assert judge(token(**{name: time})) is Why.MALFORMED


def test_a_time_beyond_all_numbers_is_refused() -> None:
    assert judge(token(exp=10**400)) is Why.MALFORMED


@pytest.mark.parametrize(
    "text", ["", "a", "a.b", "a.b.c", "...", "a.b.c.d", "é.b.c", "a b.c.d", "e30.e30.e30", "W10.W10.", "bnVsbA.e30.x"]
)
def test_what_is_no_jwt_is_refused(text: str) -> None:
    assert judge(text) in {Why.MALFORMED, Why.ALGORITHM}


def test_an_endless_token_is_refused_before_it_is_read() -> None:
    assert judge("a" * (jwt.MAX_TOKEN + 1)) is Why.MALFORMED


def test_deep_nesting_is_refused() -> None:
    deep = b'{"a":' * 4000 + b"1" + b"}" * 4000
    assert judge(f"{part(deep)[:8000]}.e30.x") is Why.MALFORMED
    assert judge(f"{part({'alg': 'ES256'})}.{part(b'[' * 3000 + b']' * 3000)}.x") is Why.MALFORMED


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=20))
def test_no_text_makes_it_fail(head: str, body: str, signature: str) -> None:
    assert isinstance(judge(f"{head}.{body}.{signature}"), Why)


@given(st.binary(max_size=80), st.binary(max_size=80), st.binary(max_size=80))
def test_no_bytes_in_the_right_form_make_it_fail(head: bytes, body: bytes, signature: bytes) -> None:
    assert isinstance(judge(f"{part(head)}.{part(body)}.{part(signature)}"), Why)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"", "is not a JSON object"),
        (b"[]", "is not a JSON object"),
        (b"{}", "has no list"),
        (b'{"keys":{}}', "has no list"),
        (b'{"keys":[]}', "has no usable key"),
        (b'{"keys":[1]}', "keys[0] is not an object"),
        (b'{"keys":[{"kty":"RSA"}]}', "cannot be used"),
        (b'{"keys":[{"kty":"RSA","n":"!","e":"AQAB"}]}', "cannot be used"),
        (b'{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}', "cannot be used"),
        (b'{"keys":[{"kty":["RSA"]}]}', "is of type"),
        (b'{"keys":[' + b"1," * 200 + b"1]}", "more than 128"),
    ],
)
def test_a_document_without_usable_keys_says_why(document: bytes, why: str) -> None:
    found = jwt.parse_keys(document)
    assert isinstance(found, str)
    assert why in found


def test_weak_and_foreign_keys_are_left_out_and_named() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is too short: that is the point
        weak = jwk.RSAKey.generate_key(1024).as_dict(private=False)
    encrypting = {**EC.as_dict(private=False), "use": "enc"}
    found = parsed(json.dumps({"keys": [weak, encrypting, ED.as_dict(private=False)]}).encode())
    assert len(found) == 1
    assert "RSA key of 10" in found.skipped[0]
    assert "not for signatures" in found.skipped[1]


def test_scopes_come_as_text_or_list() -> None:
    assert jwt.scopes(Token({}, {"scope": "a b", "scp": ["c", 1]})) == {"a", "b", "c"}
    assert jwt.scopes(Token({}, {"scope": 5})) == frozenset()
