"""What tokens and policies cost: `python -m benchmarks.rbac [TOOLS]`. CPU microseconds, all in this process.

A call: the token looked up among the verified ones, and the tool's policy judged. A list: a page of 100 out of TOOLS of
which nine in ten are restricted to one of three roles, by a thousand users, against the same page without policies.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from joserfc import jwk, jwt
from multidict import CIMultiDict, CIMultiDictProxy

from arion_tds import view as views
from arion_tds.auth.access import AccessSettings, JwtAccess, TokenCaller, Trusted
from arion_tds.auth.jwks import LocalKeys
from arion_tds.auth.jwt import Keys, Provider, parse_keys
from arion_tds.model.backend import McpBackend
from arion_tds.model.caller import Anonymous, Caller
from arion_tds.model.names import Naming
from arion_tds.model.rbac import Permission, Rbac
from arion_tds.model.tool import Tool
from arion_tds.schema import EMPTY_OBJECT
from arion_tds.server import jsonrpc
from arion_tds.server.methods import Methods
from arion_tds.server.packing import Listed
from arion_tds.server.settings import FrontSettings, MethodsConfig
from arion_tds.view import View
from benchmarks import rig

ROLES = ("red", "green", "blue")
ISSUER = "https://issuer.example"


def tool(number: int, rbac: Rbac | None, text: str = "x" * 1000) -> Tool:
    backend = McpBackend("http://up", "x")
    return Tool(
        namespace="space",
        name=f"tool_{number:06}",
        description=text,
        input_schema=EMPTY_OBJECT,
        backend=backend,
        rbac=rbac,
    )


def view(tools: list[Tool]) -> View:
    entries = [views.entry(one, Naming.QUALIFIED) for one in tools]
    return views.empty(Naming.QUALIFIED).replace([], entries, {}, eager_only=False)


def cpu(work: Callable[[], object], count: int) -> float:
    """Microseconds of one call, the best of five rounds: the machine is shared."""
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(count):
            work()
        best = min(best, (time.process_time() - began) / count)
    return round(best * 1e6, 2)


async def admitted(access: JwtAccess, headers: Mapping[str, str], count: int) -> float:
    """Microseconds of `admit` for a token that is known."""
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(count):
            await access.admit(headers)
        best = min(best, (time.process_time() - began) / count)
    return round(best * 1e6, 2)


def page(methods: Methods, served: View, caller: Caller, cursor: str | None = None) -> bytes:
    params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
    asked = jsonrpc.parse(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).encode())
    if not isinstance(asked, jsonrpc.Request):
        raise TypeError(asked)
    found = methods.tools_list(served, asked, caller, modern=True)
    if not isinstance(found, Listed):
        raise TypeError(found)
    return found.plain(b"1")


async def main(count: int) -> None:
    key = jwk.ECKey.generate_key("P-256", parameters={"kid": "k"})
    keys = parse_keys(json.dumps({"keys": [key.as_dict(private=False)]}).encode())
    if not isinstance(keys, Keys):
        raise TypeError(keys)
    trusted = Trusted(Provider(name="p", issuer=ISSUER), LocalKeys(keys))
    access = JwtAccess(AccessSettings(), [trusted], now=time.time)

    def headers(user: int) -> Mapping[str, str]:
        claims = {
            "iss": ISSUER,
            "sub": f"user {user}",
            "role": ["staff", ROLES[user % 3]],
            "exp": int(time.time()) + 999,
        }
        token = jwt.encode({"alg": "ES256", "kid": "k"}, claims, key)
        return CIMultiDictProxy(CIMultiDict([("Host", "x"), ("Accept", "y"), ("Authorization", f"Bearer {token}")]))

    began = time.process_time()
    people = [await access.admit(headers(user)) for user in range(1000)]
    first_sight = (time.process_time() - began) / 1000 * 1e6
    callers = [one for one in people if isinstance(one, TokenCaller)]
    policies = [Rbac(deny=False, permissions=(Permission("role", role),)) for role in ROLES]
    mixed = [None if number % 10 == 0 else policies[number % 3] for number in range(count)]
    open_view, guarded = view([tool(n, None) for n in range(count)]), view([tool(n, mixed[n]) for n in range(count)])
    methods = Methods(FrontSettings(name="gw", version="1", page_size=100), MethodsConfig())
    anonymous, ada = Anonymous(), callers[0]
    plain = cpu(lambda: page(methods, open_view, anonymous), 300)
    began = time.process_time()
    lists = {id(guarded.listed(one)) for one in callers}
    thousand = (time.process_time() - began) * 1e6
    restricted = cpu(lambda: page(methods, guarded, ada), 300)
    changed = guarded.replace([], [views.entry(tool(count, policies[0]), Naming.QUALIFIED)], {}, eager_only=False)
    began = time.process_time()
    changed.listed(ada)
    mended = (time.process_time() - began) * 1e6
    known = await admitted(access, headers(0), 20_000)
    judged = cpu(lambda: ada.allows(policies[0]), 20_000)
    rig.report(
        "rbac",
        tools=count,
        token_first_seen_us=round(first_sight, 1),
        token_known_us=known,
        policy_judged_us=judged,
        call_extra_us=round(known + judged, 2),
        list_page_open_us=plain,
        list_page_restricted_us=restricted,
        list_extra_per_listed_tool_us=round(max(0.0, restricted - plain) / 100, 3),
        lists_kept_for_a_thousand_users=len(lists),
        lists_of_a_thousand_users_us=round(thousand, 1),
        list_after_one_change_us=round(mended, 1),
    )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
