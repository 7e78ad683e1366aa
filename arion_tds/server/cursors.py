"""Keyset cursors: the published name after which a page starts, opaque to clients. Pure.

A name instead of a position, so that a walk across changes neither loses nor doubles a tool that was there throughout.
The empty cursor is valid and means the start (MCP 2026-07-28, server/utilities/pagination). Called by methods.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

_TAG: Final = b"n:"
_NAME: Final = re.compile(rb"[\x21-\x7e]{1,512}\Z")


def encode(name: str) -> str:
    """The cursor that continues after `name`."""
    return base64.urlsafe_b64encode(_TAG + name.encode()).rstrip(b"=").decode()


def decode(cursor: str) -> str | None:
    """The name to continue after ("" for the empty cursor), or None if no server of ours made this cursor."""
    if not cursor:
        return ""
    try:
        raw = base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError, ValueError):
        return None
    if not raw.startswith(_TAG) or not _NAME.match(raw, len(_TAG)):
        return None
    name = raw[len(_TAG) :].decode()
    return name if encode(name) == cursor else None
