"""Agreeing with a server on era and version: the probe, and `initialize` where the probe says so.

In: the server's line. Out: a `Peer`, or the failure to report to everybody who waits.
Called by connection, one at a time per server.
"""

from __future__ import annotations

import asyncio
import logging

from arion_tds.backends.mcp import era, requests, wire
from arion_tds.backends.mcp.era import Era, Peer
from arion_tds.backends.mcp.line import Broken, Line, malformed, refused_status
from arion_tds.model.result import CallFailure, ErrorCode

_log = logging.getLogger(__name__)
_LIMIT = (1 << 20, "limit of a handshake")


async def agree(line: Line, number: int, seconds: float, *, probe: bool) -> Peer | CallFailure:
    """Agree within `seconds`. `number` becomes the peer's; without `probe` straight to `initialize`."""
    try:
        async with asyncio.timeout(seconds):
            peer = await _agree(line, number, seconds / 2, probe=probe)
    except Broken as broken:
        return broken.failure
    except TimeoutError:
        why = f"MCP server {line.name}: no handshake within {seconds:g} s (handshake_timeout)"
        return CallFailure(ErrorCode.UPSTREAM_TIMEOUT, why, retryable=True)
    _log.info("MCP server %s (%s) speaks %s (%s)", line.name, peer.name, peer.version, peer.era.value)
    return peer


async def _agree(line: Line, number: int, probe_seconds: float, *, probe: bool) -> Peer:
    if probe:
        verdict = await _probe(line, era.MODERN_VERSIONS[0], probe_seconds)
        if isinstance(verdict, era.Again):
            verdict = await _probe(line, verdict.version, probe_seconds)
        if isinstance(verdict, era.Modern):
            return Peer(
                Era.MODERN,
                verdict.version,
                number,
                name=verdict.name,
                listens=verdict.listens,
                certain=verdict.certain,
            )
        if isinstance(verdict, era.Incompatible):
            raise malformed(line.name, f"no common protocol version: {verdict.why}")
        if isinstance(verdict, era.Again):
            raise malformed(line.name, f"a refusal of {verdict.version}, which it says that it speaks")
    return await _initialize(line, number)


async def _probe(line: Line, version: str, seconds: float) -> era.Verdict:
    peer = Peer(Era.MODERN, version, 0)
    number = line.number()
    body = wire.request(number, "server/discover", requests.plain_params(peer))
    try:
        async with asyncio.timeout(seconds):
            headers = requests.for_peer(line.base, peer, "server/discover")
            answer = await line.ask(peer, number, headers, body, limit=_LIMIT)
    except TimeoutError:
        return era.Legacy()  # some old servers never answer what they do not know
    except Broken as broken:
        if not broken.executed:
            raise  # not reached at all: no verdict
        return era.Legacy()
    return era.judge(answer.status, answer.message, version)


async def _initialize(line: Line, number: int) -> Peer:
    opening = Peer(Era.LEGACY, era.HANDSHAKE_VERSIONS[0], 0)
    ident = line.number()
    headers = requests.for_peer(line.base, opening, "initialize")
    del headers["mcp-protocol-version"]  # not agreed yet; some servers refuse the newest one here
    body = wire.request(ident, "initialize", requests.INITIALIZE)
    answer = await line.ask(opening, ident, headers, body, limit=_LIMIT)
    message = answer.message
    if message is None:
        raise refused_status(line.name, answer.status, answer.headers.get("location"))
    if message.error:
        error = wire.error_of(message.error)
        text = error if isinstance(error, str) else f"error {error.code} ({error.message[:200]}) to initialize"
        raise malformed(line.name, text)
    said = era.initialized(message.result)
    if isinstance(said, str):
        raise malformed(line.name, said)
    peer = Peer(
        Era.LEGACY,
        said.version,
        number,
        session=answer.headers.get("mcp-session-id"),
        name=said.name,
        listens=said.listens,
    )
    broken = await line.tell(peer, "notifications/initialized", requests.INITIALIZED)
    if broken is not None and not broken.executed and broken.failure.status is None:
        raise broken
    return peer
