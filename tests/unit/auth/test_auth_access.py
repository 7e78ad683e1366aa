"""Who is let in, what the others are told, and what a second request of the same token costs."""

from __future__ import annotations

from typing import Any

import pytest
from auth_issuer import AUDIENCE, EC, ISSUER, NOW, RSA, STRANGER, jwks, token
from multidict import CIMultiDict, CIMultiDictProxy

from arion_tds.auth import access, jwt
from arion_tds.auth.access import AccessSettings, FromHeader, JwtAccess, TokenCaller, Trusted
from arion_tds.auth.jwks import LocalKeys
from arion_tds.auth.jwt import Keys, Provider
from arion_tds.model.caller import Anonymous, Denial
from arion_tds.model.rbac import Permission, Rbac

METADATA = "https://mcp.example/.well-known/oauth-protected-resource/mcp"


def keys(*which: Any) -> Keys:
    found = jwt.parse_keys(jwks(*which))
    assert isinstance(found, Keys)
    return found


class Gate:
    """A JwtAccess with one provider, and what it heard."""

    def __init__(self, *more: Trusted, **settings: Any) -> None:
        self.now = NOW
        self.heard: list[str] = []
        self.source = LocalKeys(keys())
        main = Trusted(Provider(name="main", issuer=ISSUER, audiences=(AUDIENCE,), clock_skew=0.0), self.source)
        self.access = JwtAccess(
            AccessSettings(**settings), [main, *more], now=lambda: self.now, heard=self.heard.append
        )

    async def admit(self, text: str | None = None, **headers: str) -> Any:
        sent = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
        if text is not None:
            sent["Authorization"] = f"Bearer {text}"
        return await self.access.admit(CIMultiDictProxy(sent))


async def test_a_good_token_makes_a_caller_with_a_subject() -> None:
    caller = await Gate().admit(token(role=["dev", "admin"]))
    assert isinstance(caller, TokenCaller)
    assert caller.subject == "main:ada"
    assert caller.allows(Rbac(False, (Permission("role", "admin"),)))
    assert not caller.allows(Rbac(True, (Permission("role", "admin"),)))


async def test_the_same_token_is_verified_once_until_it_expires() -> None:
    gate = Gate()
    text = token()
    first = await gate.admit(text)
    assert await gate.admit(text) is first
    assert gate.heard == ["ok"]
    gate.now += 300
    assert (await gate.admit(text)).status == 401
    assert gate.heard == ["ok", "expired"]
    assert len(gate.access) == 0


async def test_a_token_signed_with_a_key_that_was_taken_away_is_refused_at_once() -> None:
    gate = Gate()
    text = token(EC)
    assert isinstance(await gate.admit(text), TokenCaller)
    gate.source.replace(keys(RSA))
    assert (await gate.admit(text)).status == 401
    assert isinstance(await gate.admit(token(RSA, "RS256")), TokenCaller)


async def test_a_rotated_key_is_found_by_asking_the_issuer_again() -> None:
    class Rotating(LocalKeys):
        async def renewed(self, unfit: Keys) -> Keys | None:
            self.replace(keys(STRANGER))
            return await super().renewed(unfit)

    source = Rotating(keys(EC))
    gate = JwtAccess(AccessSettings(), [Trusted(Provider(name="main", issuer=ISSUER), source)], now=lambda: NOW)
    assert isinstance(await gate.admit({"Authorization": f"Bearer {token(STRANGER)}"}), TokenCaller)


async def test_only_so_many_tokens_are_remembered() -> None:
    gate = Gate(max_tokens=3)
    for number in range(5):
        assert isinstance(await gate.admit(token(sub=f"user {number}")), TokenCaller)
    assert len(gate.access) == 3


async def test_no_token_is_a_challenge_without_an_error_or_nobody_where_that_is_allowed() -> None:
    denial = await Gate(metadata_url=METADATA).admit()
    assert denial == Denial(
        401, "a bearer token is needed", {"WWW-Authenticate": f'Bearer resource_metadata="{METADATA}"'}
    )
    gate = Gate(required=False)
    assert isinstance(await gate.admit(), Anonymous)
    assert (await gate.admit("a.b.c")).status == 401, "a bad token is worse than none"


@pytest.mark.parametrize(
    ("bent", "says"),
    [
        ({"exp": int(NOW) - 1}, "the token has expired"),
        ({"nbf": int(NOW) + 60}, "the token is not valid yet"),
        ({"iss": "https://evil.example"}, "the token is from an issuer that is not trusted here"),
        ({"aud": "https://other.example"}, "the token is for another audience"),
        ({"header": {"kid": "unknown"}}, "the token is signed with a key that the issuer does not publish"),
        ({"key": RSA, "algorithm": "RS256", "header": {"kid": "ec"}}, "the token's signature does not fit"),
    ],
)
async def test_a_bad_token_is_told_what_is_wrong_and_where_to_learn_more(bent: dict[str, Any], says: str) -> None:
    denial = await Gate(metadata_url=METADATA).admit(token(**bent))
    assert isinstance(denial, Denial)
    assert (denial.status, denial.message) == (401, says)
    challenge = denial.headers["WWW-Authenticate"]
    assert challenge.startswith(f'Bearer resource_metadata="{METADATA}", error="invalid_token"')
    assert "evil" not in challenge


async def test_a_missing_scope_is_forbidden_and_named() -> None:
    gate = Gate(scopes=frozenset({"tools:call", "tools:list"}))
    denial = await gate.admit(token(scope="tools:list other"))
    assert isinstance(denial, Denial)
    assert denial.status == 403
    assert 'error="insufficient_scope"' in denial.headers["WWW-Authenticate"]
    assert 'scope="tools:call tools:list"' in denial.headers["WWW-Authenticate"]
    assert isinstance(await gate.admit(token(scope="tools:list tools:call")), TokenCaller)
    assert gate.heard == ["scope", "ok"]


async def test_two_tokens_in_one_request_are_refused() -> None:
    sent = CIMultiDict([("Authorization", f"Bearer {token()}"), ("authorization", "Bearer x")])
    denial = await Gate().access.admit(CIMultiDictProxy(sent))
    assert isinstance(denial, Denial)
    assert denial.status == 400


@pytest.mark.parametrize("scheme", ["Basic abc", "bearer", "Digest x", ""])
async def test_another_scheme_is_no_token(scheme: str) -> None:
    denial = await Gate().admit(Authorization=scheme)
    assert denial.status == 401
    assert "error" not in denial.headers["WWW-Authenticate"]


async def test_a_provider_s_tokens_stand_only_in_its_own_headers() -> None:
    other = Trusted(
        Provider(name="other", issuer="https://other.example"), LocalKeys(keys(STRANGER)), (FromHeader("X-Token", ""),)
    )
    gate = Gate(other)
    text = token(STRANGER, iss="https://other.example")
    caller = await gate.admit(X_Token=text)
    assert isinstance(caller, TokenCaller)
    assert caller.subject == "other:ada"
    assert (await gate.admit(text)).status == 401
    assert (await gate.admit(X_Token=token())).status == 401


async def test_one_issuer_s_key_does_not_sign_for_another() -> None:
    other = Trusted(Provider(name="other", issuer="https://other.example"), LocalKeys(keys(STRANGER)))
    gate = Gate(other)
    assert isinstance(await gate.admit(token(STRANGER, iss="https://other.example")), TokenCaller)
    assert (await gate.admit(token(STRANGER))).status == 401
    assert (await gate.admit(token(EC, iss="https://other.example"))).status == 401


async def test_subjects_of_different_providers_and_strange_subjects_stay_apart() -> None:
    gate = Gate()
    assert (await gate.admit(token(sub=None, client_id="robot"))).subject == "main:robot"
    assert (await gate.admit(token(sub=None))).subject == "main:"
    long = (await gate.admit(token(sub="x" * 5000))).subject
    assert long.startswith("main:sha256-")
    assert (await gate.admit(token(sub="a\nb"))).subject.startswith("main:sha256-")


async def test_a_token_without_expiration_is_verified_again_after_a_while() -> None:
    provider = Provider(name="main", issuer=ISSUER, require_expiration=False)
    heard: list[str] = []
    now = [NOW]
    gate = JwtAccess(AccessSettings(), [Trusted(provider, LocalKeys(keys()))], now=lambda: now[0], heard=heard.append)
    sent = {"Authorization": f"Bearer {token(exp=None)}"}
    for seconds in (0, 1, 400):
        now[0] = NOW + seconds
        assert isinstance(await gate.admit(sent), TokenCaller)
    assert heard == ["ok", "ok"]


async def test_permissions_are_judged_once_per_set_of_guards() -> None:
    caller = await Gate().admit(token(role="dev"))
    guards = (Rbac(False, (Permission("role", "dev"),)), Rbac(False, (Permission("role", "ops"),)))
    assert caller.denied(guards) == 0b10
    assert caller.denied(guards) == 0b10
    assert caller.denied(guards[1:]) == 0b1
    assert Anonymous().denied(guards) == 0b11


def test_the_metadata_names_resource_and_issuers() -> None:
    assert access.protected_resource(AUDIENCE, [ISSUER, "", ISSUER], ["b", "a"], "gw") == {
        "resource": AUDIENCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["a", "b"],
        "bearer_methods_supported": ["header"],
        "resource_name": "gw",
    }
