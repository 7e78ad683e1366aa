"""The MCP endpoint of one listener, both protocol eras: /mcp and /mcp/search.

In: HTTP requests from the low-level aiohttp server. Out: answers and event streams. A request takes the View once and
passes it down. Which era a message belongs to and what that demands is judged in eras, what is answered without a
backend is made in methods; here they meet the wire. Built by app; `close` ends the streams.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from aiohttp import web

from arion_tds.model.caller import Caller
from arion_tds.model.result import RpcError
from arion_tds.server import eras, exchange, guard, jsonrpc, notes, noting, search, shape
from arion_tds.server.calling import Asked, CallRunner
from arion_tds.server.entrance import Entrance
from arion_tds.server.jsonrpc import Fault, Notification, Response
from arion_tds.server.methods import Methods
from arion_tds.server.notes import Note
from arion_tds.server.packing import Packer
from arion_tds.server.reply import Answered, Reply
from arion_tds.server.sessions import Sessions
from arion_tds.server.settings import (
    AccessPort,
    CallPort,
    FrontSettings,
    MethodsConfig,
    Observer,
    SearchPort,
    Unobserved,
)
from arion_tds.server.spans import Spans
from arion_tds.server.streams import Opening, Streams
from arion_tds.view import Published

PATH: Final = "/mcp"
SEARCH_PATH: Final = "/mcp/search"
SEARCH_METHOD: Final = "search"
"""What an `Observer` hears for /mcp/search."""

METADATA_PATH: Final = "/.well-known/oauth-protected-resource"

_JUDGED_HERE: Final = 1 << 18
"""Bytes of a body whose depth is judged in the loop: 5 ms where somebody did their worst. Others: in a thread."""

_OTHER: Final = "other"
_KNOWN: Final = frozenset(("initialize", "server/discover", "ping", "tools/list", "tools/call", "subscriptions/listen"))
_NO_SESSION: Final = "Session not found: it has ended or run out, initialize again"
_log = logging.getLogger("arion_tds.server")


class McpFront:
    """One listener's endpoint. `handler` is what the HTTP server calls."""

    def __init__(  # noqa: PLR0913 - the composition root names every part once
        self,
        settings: FrontSettings,
        published: Published,
        calls: CallPort,
        search: SearchPort | None,
        sessions: Sessions,
        *,
        clock: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        config: MethodsConfig | None = None,
        access: AccessPort | None = None,
        observer: Observer | None = None,
        log: noting.RequestLog | None = None,
        spans: Spans | None = None,
        tell: notes.Tell = notes.nobody,
    ) -> None:
        """`clock` gives seconds and never goes back. Without `access` every caller is anonymous.

        `tell` reaches the fronts of other processes that serve the same listener.
        """
        self._settings = settings
        self._tell = tell
        self._published = published
        self._search = search
        self._sessions = sessions
        self._clock = clock
        self._observer: Observer = Unobserved() if observer is None else observer
        self._requests = log
        self._spans = spans
        self._entrance = Entrance(settings, access, self._observer, clock=clock)
        self._under_way = 0
        config = MethodsConfig() if config is None else config
        self._methods = Methods(settings, config)
        self._packer = Packer(settings.max_packed_bytes)
        self._activated = config.activated
        self._calls = CallRunner(settings, self._methods, calls, self._observer, random_bytes)
        self._streams = Streams(published, settings, self._observer, self._methods.identity)
        if self._activated is not None:
            self._activated.listen(self._streams.tell_session, self._found)

    def status(self) -> dict[str, int]:
        """`open_streams`, `running_calls` (those of legacy sessions) and `sessions_issued` (by this process)."""
        return {
            "open_streams": len(self._streams),
            "running_calls": len(self._calls.running),
            "sessions_issued": self._sessions.issued,
        }

    async def close(self) -> None:
        """Tell every open stream to end and take no new ones. Calls run on; the HTTP server waits for them."""
        self._streams.close()
        if self._activated is not None:
            self._activated.close()

    async def handler(self, request: web.BaseRequest) -> Answered:
        """Serve one HTTP request."""
        self._under_way += 1
        started, status = self._clock(), noting.CLIENT_GONE
        try:
            response = await self._serve(request)
            if isinstance(response, Opening):  # served from here, so that the request's parts are not held by it
                response = await self._streams.serve(request, response)
            status = response.status
        except Exception:  # top of the request's task
            _log.exception("%s %s failed", request.method, request.path[:256])
            status = 500
            if request.writer.output_size > 0:
                raise  # an event stream has begun: the server cuts it off
            return exchange.refuse(status, "Internal error", code=jsonrpc.INTERNAL_ERROR)
        else:
            return response
        finally:
            self._under_way -= 1
            if self._requests is not None:
                self._requests.served(request, status, self._clock() - started)

    def heard(self, note: Note) -> None:
        """Another process that serves the listener tells of one of its sessions."""
        match note.what:
            case "cancelled":
                self._calls.running.cancel(note.session, note.request.encode())
            case "streams":
                self._streams.end_session(note.session)
            case "ended":
                self._end(note.session, note.subject)
            case "found":
                if self._activated is not None:
                    self._activated.learn(note.session, note.names)

    def refused(self, what: str) -> None:
        """A connection was not served: for the observer."""
        self._observer.refused(what)

    async def _serve(self, request: web.BaseRequest) -> Answered:
        refused = self._entrance.refusal(request, self._under_way - len(self._streams))
        if refused is not None:
            return refused
        path, _, _ = request.raw_path.partition("?")
        if path.startswith(METADATA_PATH) and self._settings.protected_resource is not None:
            return self._metadata(request, path, self._settings.protected_resource)
        if path not in {PATH, SEARCH_PATH}:
            return exchange.refuse(404, f"nothing is served at {path[:256]}: the MCP endpoint is {PATH}")
        caller = await self._entrance.admit(request)
        if isinstance(caller, Reply):
            return caller
        if caller.subject is not None:
            request[noting.SUBJECT] = caller.subject
        if path == SEARCH_PATH:
            return await self._search_tools(request, caller)
        if request.method == "POST":
            return await self._post(request, caller)
        if request.method in {"GET", "DELETE"}:
            return self._stream_or_end(request, caller)
        return exchange.refuse(405, f"{request.method} is not served here", headers={"Allow": "POST, GET, DELETE"})

    @staticmethod
    def _metadata(request: web.BaseRequest, path: str, document: bytes) -> Reply:
        """What clients need to know to get a token (RFC 9728)."""
        if path not in {METADATA_PATH, METADATA_PATH + PATH}:
            return exchange.refuse(404, f"the metadata of this resource is at {METADATA_PATH}{PATH}")
        if request.method not in {"GET", "HEAD"}:
            return exchange.refuse(405, "GET this document", headers={"Allow": "GET"})
        return exchange.reply(200, document, {"Cache-Control": "max-age=3600"})

    async def _post(self, request: web.BaseRequest, caller: Caller) -> Answered:
        started = self._clock()
        message = await self._read(request)
        if isinstance(message, Reply):
            self._observer.answered(_OTHER, message.status, self._clock() - started, modern=False)
            return message
        request[noting.METHOD] = message.method
        routing = exchange.routing(request)
        modern = eras.is_modern(routing.version, message.method, message.params)
        if modern:
            answering = self._modern(request, message, routing, caller)
        else:
            answering = self._legacy(request, message, routing, caller)
        response = await (answering if self._spans is None else self._spans.around(request, answering))
        method = message.method if message.method in _KNOWN else _OTHER
        self._observer.answered(method, response.status, self._clock() - started, modern=modern)
        return response

    async def _read(self, request: web.BaseRequest) -> jsonrpc.Request | Notification | Reply:
        """The message of a POST, or the answer where it is not one that can be served."""
        if not guard.is_json(request.headers.get(exchange.CONTENT_TYPE)):
            return exchange.refuse(415, "Content-Type must be application/json")
        body = await exchange.body(request, self._settings.max_body_bytes, self._settings.body_timeout)
        if isinstance(body, Reply):
            return body
        depth = self._settings.limits.max_json_depth
        if len(body) <= _JUDGED_HERE:
            deep = shape.too_deep(body, depth)
        else:
            deep = await asyncio.to_thread(shape.too_deep, body, depth)
        if deep:
            why = f"Invalid request: nested deeper than {depth} (limits.max_json_depth)"
            return exchange.refuse(400, why)
        message = jsonrpc.parse(body)
        if isinstance(message, Fault):
            return exchange.reply(400, jsonrpc.error(message.id, message.code, message.message))
        if isinstance(message, Response):
            return exchange.empty(202)
        return message

    async def _modern(
        self, request: web.BaseRequest, message: jsonrpc.Request | Notification, routing: eras.Routing, caller: Caller
    ) -> Answered:
        """A stateless request, or a notification: the protocol has none from clients, so they are dropped."""
        if isinstance(message, Notification):
            unsupported = eras.unsupported_revision(routing.version or "")
            if unsupported is None:
                return exchange.empty(202)
            return exchange.refuse(400, unsupported.message, code=unsupported.code)
        meta = jsonrpc.members(jsonrpc.member(message.params, "_meta"))
        accepts = guard.accepts(request.headers.get(exchange.ACCEPT))
        asked = Asked(request, message, caller, accepts, modern=True, meta=meta)
        if self._spans is not None:
            self._spans.begin(asked, routing.version)
        refusal = eras.refusal(message.method, message.params, meta, routing)
        if refusal is not None:
            return asked.error(refusal)
        match message.method:
            case "tools/call":
                return await self._calls.run(self._published.view, asked)
            case "tools/list":
                return await self._list(asked)
            case "server/discover":
                return asked.result(self._methods.discovered)
            case "subscriptions/listen":
                return self._listen(asked)
            case unknown:
                return asked.error(RpcError(jsonrpc.METHOD_NOT_FOUND, f"Method not found: {unknown[:128]}"))

    async def _legacy(
        self, request: web.BaseRequest, message: jsonrpc.Request | Notification, routing: eras.Routing, caller: Caller
    ) -> Answered:
        """A message of a handshake revision. A session id is optional, but one that is sent must be good."""
        session = request.headers.get(exchange.SESSION)
        opening = isinstance(message, jsonrpc.Request) and message.method == "initialize"
        if session is not None and not opening and self._sessions.check(session, caller.subject) is None:
            return exchange.refuse(404, _NO_SESSION)
        if isinstance(message, Notification):
            if session is not None and message.method == "notifications/cancelled":
                self._cancel(session, jsonrpc.member(message.params, "requestId"))
            return exchange.empty(202)
        raw = message.params.get("_meta")
        meta = None if raw is None else jsonrpc.members(raw)
        accepts = guard.accepts(request.headers.get(exchange.ACCEPT))
        asked = Asked(request, message, caller, accepts, modern=False, meta=meta, session=session)
        if self._spans is not None:
            self._spans.begin(asked, routing.version)
        match message.method:
            case "tools/call":
                return await self._calls.run(self._published.view, asked)
            case "tools/list":
                return await self._list(asked)
            case "ping":
                return asked.result(b"{}")
            case "initialize":
                revision, body = self._methods.initialize(message.params)
                response = asked.result(body)
                response.add(exchange.SESSION, self._sessions.issue(revision, caller.subject))
                return response
            case unknown:
                return asked.error(RpcError(jsonrpc.METHOD_NOT_FOUND, f"Method not found: {unknown[:128]}"))

    async def _list(self, asked: Asked) -> Reply:
        view = self._published.view
        found = self._methods.tools_list(view, asked.message, asked.caller, modern=asked.modern, session=asked.session)
        if isinstance(found, RpcError):
            return asked.error(found)
        identity = asked.message.id
        coding = guard.coding(asked.http.headers.get(exchange.ACCEPT_ENCODING)) if asked.accepts.json else None
        if coding is not None:
            packed = await self._packer.pack(coding, found, identity)
            if packed is not None:
                return exchange.reply(200, packed, {"Content-Encoding": coding, "Vary": "Accept-Encoding"})
        if asked.accepts.json:
            return Reply(200, self._packer.pieces(found, identity))
        return exchange.answer(asked.accepts, 200, found.plain(identity))

    def _listen(self, asked: Asked) -> Answered:
        filters = jsonrpc.members(jsonrpc.member(asked.message.params, "notifications"))
        if filters is None:
            return asked.error(RpcError(jsonrpc.INVALID_PARAMS, "params.notifications must be an object"))
        if not asked.accepts.any:
            return exchange.refuse(406, "subscriptions/listen answers with text/event-stream: accept it")
        who = self._entrance.key(asked.http, asked.caller)
        refused = self._no_room(who)
        if refused is not None:
            return refused
        wanted = jsonrpc.member(filters, "toolsListChanged") == b"true"
        return self._streams.listen(asked.message.id, (asked.caller, who), tools=wanted)

    def _stream_or_end(self, request: web.BaseRequest, caller: Caller) -> Answered:
        """GET opens the session's stream, DELETE ends the session. The stateless era has neither."""
        version = exchange.routing(request).version
        if version is not None and version not in eras.LEGACY_REVISIONS:
            why = f"{request.method} is not part of this protocol version: POST instead"
            return exchange.refuse(405, why, headers={"Allow": "POST"})
        identity = request.headers.get(exchange.SESSION)
        if identity is None:
            return exchange.refuse(400, "Mcp-Session-Id header is missing: initialize first")
        session = self._sessions.check(identity, caller.subject)
        if session is None:
            return exchange.refuse(404, _NO_SESSION)
        if request.method == "DELETE":
            self._end(identity, caller.subject)
            self._tell(Note("ended", identity, subject=caller.subject))
            return exchange.empty(204)
        if not guard.accepts(request.headers.get(exchange.ACCEPT)).any:
            return exchange.refuse(406, "GET answers with text/event-stream: accept it")
        who = self._entrance.key(request, caller)
        refused = self._no_room(who)
        if refused is not None:
            return refused
        self._tell(Note("streams", identity))
        return self._streams.get(session, (caller, who))

    def _end(self, session: str, subject: str | None) -> None:
        self._sessions.end(session, subject)
        if self._activated is not None:
            self._activated.end(session)
        self._streams.end_session(session)

    def _cancel(self, session: str, request: bytes) -> None:
        """The call may be one of another process: its connection decided which."""
        if not self._calls.running.cancel(session, request):
            self._tell(Note("cancelled", session, request=bytes(request).decode("utf-8", "replace")))

    def _found(self, session: str, names: tuple[str, ...]) -> None:
        self._tell(Note("found", session, names=names))

    def _no_room(self, who: str) -> Reply | None:
        """Why no further stream is taken from this caller."""
        why = self._streams.no_room(who)
        if why is None:
            return None
        self._observer.refused("streams")
        return exchange.refuse(503, why, headers={"Retry-After": "10"})

    async def _search_tools(self, request: web.BaseRequest, caller: Caller) -> Reply:
        """`POST /mcp/search`: see search.py for the shapes."""
        if self._search is None:
            return exchange.reply(404, search.wrong(search.Wrong("", "search is not enabled on this listener")))
        if request.method != "POST":
            why = search.wrong(search.Wrong("", "POST a JSON object here"))
            return exchange.reply(405, why, {"Allow": "POST"})
        if not guard.is_json(request.headers.get(exchange.CONTENT_TYPE)):
            return exchange.reply(415, search.wrong(search.Wrong("", "Content-Type must be application/json")))
        started = self._clock()
        body = await exchange.body(request, self._settings.max_body_bytes, self._settings.body_timeout)
        if isinstance(body, Reply):
            return body
        parsed = search.parse(body, self._settings.max_search_results)
        if isinstance(parsed, search.Wrong):
            return exchange.reply(400, search.wrong(parsed))
        ask, capped = parsed

        found = await self._search.search(self._published.view, ask, caller.allows)
        self._observer.answered(SEARCH_METHOD, 200, self._clock() - started, modern=True)
        return exchange.reply(200, search.render(found, ask, capped=capped))
