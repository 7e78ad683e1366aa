"""The names under which a request can be found again: W3C trace context and x-request-id. Pure.

In: what the caller sent, and 32 random bytes. Out: the caller's value where it is valid, else one made from the bytes.
Called by front, once per call.

A caller's trace context stands in the params' `_meta` (SEP-414: it is of this message), else in the HTTP headers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from multidict import istr

from arion_tds.server import jsonrpc
from arion_tds.server.jsonrpc import Params

_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}\Z")
_TRACESTATE: Final = re.compile(r"[\x20-\x7e]{1,512}\Z")
_REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}\Z")
_PARENT: Final = "traceparent"
_STATE: Final = "tracestate"
_PARENT_HEADER: Final = istr("Traceparent")
_STATE_HEADER: Final = istr("Tracestate")
RANDOM_BYTES: Final = 32
"""Bytes that both names are made from."""


class Sent(NamedTuple):
    """What a caller said of its trace: valid values only. `ambient`: the headers' traceparent where `_meta` has one."""

    parent: str | None = None
    state: str | None = None
    ambient: str | None = None


_NOTHING: Final = Sent()


def sent(headers: Mapping[str, str], meta: Params | None) -> Sent:
    """The caller's trace context. `headers` are looked up case-insensitively; a tracestate without a parent is none."""
    ambient = headers.get(_PARENT_HEADER)
    if ambient is not None and not _TRACEPARENT.match(ambient):
        ambient = None
    if meta is not None and _PARENT in meta:
        parent = jsonrpc.text(meta[_PARENT])
        if parent is not None and _TRACEPARENT.match(parent):
            return Sent(parent, _state(jsonrpc.text(meta[_STATE]) if _STATE in meta else None), ambient)
    if ambient is None:
        return _NOTHING
    return Sent(ambient, _state(headers.get(_STATE_HEADER)))


def _state(found: str | None) -> str | None:
    return found if found is not None and _TRACESTATE.match(found) else None


def traceparent(sent: str | None, random: bytes) -> str:
    """The caller's traceparent if it is valid, else a new trace, not sampled."""
    if sent is not None and _TRACEPARENT.match(sent):
        return sent
    return f"00-{random[:16].hex()}-{random[16:24].hex()}-00"


def request_id(sent: str | None, random: bytes) -> str:
    """The caller's x-request-id if it is at most 128 visible ASCII characters, else a new one."""
    if sent is not None and _REQUEST_ID.match(sent):
        return sent
    return random[24:32].hex()
