"""The streamable HTTP transport: a `Line` over a channel, in both eras.

In: request bytes and headers. Out: answers as `line.Line` says. Called by connection (as a Line) and watch.

Answers are understood in every form that is met: a JSON body, an event stream, a bare JSON body that claims to be an
event stream, an array of messages.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from multidict import CIMultiDict

from arion_tds.backends import spans
from arion_tds.backends.mcp import requests, wire
from arion_tds.backends.mcp.era import Era, Peer
from arion_tds.backends.mcp.http import Channel
from arion_tds.backends.mcp.line import (
    ERROR_BODY_LIMIT,
    Answer,
    Background,
    Broken,
    Hear,
    Limit,
    malformed,
    refused_status,
    too_large,
)
from arion_tds.backends.mcp.response import Lost, Response
from arion_tds.backends.mcp.sse import SseParser

if TYPE_CHECKING:
    from arion_tds.tracing.spans import Attributes

_TELL_SECONDS: Final = 5.0
_MAX_RESUMES: Final = 32
_RESUME_SECONDS: Final = 1.0
_DELETE_SECONDS: Final = 2.0
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"


class _CutError(Broken):
    """A stream that ended before its answer. `last_id` and `retry` (seconds) say how to resume it."""

    def __init__(self, broken: Broken, last_id: str | None, retry: float | None) -> None:
        super().__init__(broken.failure, executed=True)
        self.last_id = last_id
        self.retry = retry


class HttpLine:
    """One server's conversation. Request numbers never repeat. Background tasks are its own and end with it."""

    def __init__(self, channel: Channel, extra: tuple[tuple[str, str], ...]) -> None:
        """`extra` are the configured headers."""
        self.channel = channel
        self.base = requests.common(extra)
        self.where: Attributes = {
            "network.transport": "tcp",
            "network.protocol.name": "http",
            **spans.server(str(channel.url.origin())),
        }
        self._numbers = itertools.count(1)
        self._background = Background()

    @property
    def name(self) -> str:
        """Host and port, for messages."""
        return self.channel.name

    def number(self) -> int:
        """The next request id."""
        return next(self._numbers)

    async def ask(
        self,
        peer: Peer,
        number: int,
        headers: CIMultiDict[str],
        body: bytes,
        *,
        limit: Limit,
        hear: Hear | None = None,
    ) -> Answer:
        """See line.Line. A legacy stream that ends before the answer is resumed where the server allows it."""
        response = await self.channel.send("POST", headers, body)
        try:
            return await self.receive(response, number, limit, hear)
        except _CutError as cut:
            if peer.era is Era.MODERN or cut.last_id is None:
                raise
            return await self._resumed(peer, cut, number, limit, hear)

    async def _resumed(self, peer: Peer, cut: _CutError, number: int, limit: Limit, hear: Hear | None) -> Answer:
        """The server ended the stream on purpose or the network did: the answer waits behind the last event id."""
        for _ in range(_MAX_RESUMES):
            if self.channel.closed:
                break
            await asyncio.sleep(min(cut.retry if cut.retry is not None else _RESUME_SECONDS, 30.0))
            sent = requests.for_peer(self.base, peer, "")
            del sent["content-type"]
            sent["last-event-id"] = cut.last_id or ""
            try:
                response = await self.channel.send("GET", sent)
            except Broken:
                continue  # restarting, perhaps; the call itself was sent long ago
            if response.status != 200:
                response.close()
                break
            try:
                return await self.receive(response, number, limit, hear)
            except _CutError as again:
                cut = _CutError(again, again.last_id or cut.last_id, again.retry or cut.retry)
        raise cut

    async def receive(self, response: Response, number: int, limit: Limit, hear: Hear | None) -> Answer:
        """The rest of `ask`, for a response that is there already."""
        status = response.status
        try:
            if not 200 <= status < 300:
                return Answer(status, await self._refusal(response, number), response.headers)
            if _content_type(response) == "application/json":
                body = await self.channel.read(response, *limit)
                found = await self._among(body, number, hear, strict=True)
                if found is None and body.lstrip(_BLANK)[:1] not in {b"{", b"["}:
                    found = await self._whole_stream(body, number, limit, hear)
            else:
                found = await self._stream(response, number, limit, hear)
        except BaseException:
            response.close()
            raise
        if found is None:
            kind = _content_type(response) or "no content type"
            if status == 202:
                raise malformed(self.name, "HTTP 202 to a request, and so without an answer")
            raise malformed(self.name, f"a body ({kind}) that is not the JSON-RPC answer to the request")
        return Answer(status, found, response.headers)

    async def _refusal(self, response: Response, number: int) -> wire.Message | None:
        try:
            body = await self.channel.read(response, ERROR_BODY_LIMIT, "an error's body")
        except Broken:
            return None
        messages = wire.parse(body)
        if isinstance(messages, str):
            return None
        for message in messages:
            if message.error and bytes(message.id) in {b"", b"null", b"%d" % number, b'"%d"' % number}:
                return message
        return None

    async def _among(self, data: bytes, number: int, hear: Hear | None, *, strict: bool) -> wire.Message | None:
        """The answer in one body or event; everything else in it is heard."""
        messages = wire.parse(data)
        if isinstance(messages, str):
            if strict and data.lstrip(_BLANK)[:1] in {b"{", b"["}:
                raise malformed(self.name, messages)
            return None
        found: wire.Message | None = None
        for message in messages:
            if not message.is_response:
                if hear is not None:
                    await hear(message, data)
                continue
            ident = bytes(message.id)
            mine = ident == b"%d" % number or (message.error and ident in {b"", b"null"})
            if mine and found is None:
                if not message.result and not message.error:
                    raise malformed(self.name, "a response that has neither result nor error")
                found = message
            elif strict and not mine:
                raise malformed(
                    self.name, f"the answer to another request (id {ident[:40].decode('utf-8', 'replace')})"
                )
        return found

    async def _whole_stream(self, body: bytes, number: int, limit: Limit, hear: Hear | None) -> wire.Message | None:
        parser = SseParser(limit[0])
        for data in parser.feed(body) + parser.end():
            found = await self._among(data, number, hear, strict=False)
            if found is not None:
                return found
        return None

    async def _stream(self, response: Response, number: int, limit: Limit, hear: Hear | None) -> wire.Message | None:
        parser = SseParser(limit[0])
        started = False
        try:
            while chunk := await response.readany():
                if not started and (begun := chunk.lstrip(_BLANK)):
                    started = True
                    if begun[:1] in {b"{", b"["}:
                        body = await self.channel.read(response, *limit, begun=begun)
                        return await self._among(body, number, hear, strict=True)
                    chunk = begun
                for data in parser.feed(chunk):
                    found = await self._among(data, number, hear, strict=False)
                    if found is not None:
                        self.channel.finish(response)
                        return found
                if parser.too_long:
                    raise too_large(self.name, *limit)
        except Lost as lost:
            raise _CutError(self.channel.broken(lost), parser.last_id, _seconds(parser.retry)) from lost
        for data in parser.end():
            found = await self._among(data, number, hear, strict=False)
            if found is not None:
                return found
        if _content_type(response) != "text/event-stream":
            return None
        broken = malformed(self.name, "an event stream that ended without the answer")
        raise _CutError(broken, parser.last_id, _seconds(parser.retry))

    async def tell(self, peer: Peer, method: str, body: bytes, *, seconds: float = _TELL_SECONDS) -> Broken | None:
        """POST what has no answer (a notification, an answer of ours). Bounded; a failure is returned, not raised."""
        try:
            async with asyncio.timeout(seconds):
                response = await self.channel.send("POST", requests.for_peer(self.base, peer, method), body)
                try:
                    if not 200 <= response.status < 300:
                        return refused_status(self.name, response.status)
                finally:
                    self.channel.finish(response)
        except Broken as broken:
            return broken
        except TimeoutError:
            return malformed(self.name, "nothing to a notification")
        return None

    def cancels_by_leaving(self, peer: Peer) -> bool:
        """Since 2026-07-28 closing a request's stream is its cancellation; before that it was not."""
        return peer.era is Era.MODERN

    async def leave(self, peer: Peer) -> None:
        """End a legacy session. A server that does not hear it forgets the session in its own time."""
        if peer.session is None:
            return
        sent = requests.for_peer(self.base, peer, "")
        del sent["content-type"]
        try:
            async with asyncio.timeout(_DELETE_SECONDS):
                response = await self.channel.send("DELETE", sent)
                response.close()
        except (Broken, TimeoutError):
            return

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """See line.Line."""
        self._background.spawn(work)

    async def close(self) -> None:
        """End background tasks and the channel."""
        await self._background.close()
        await self.channel.close()


def _content_type(response: Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
