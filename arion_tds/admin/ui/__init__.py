"""The page's files, read once, and the policy under which a browser shows them. Called by admin.http."""

from __future__ import annotations

import functools
import importlib.resources
from typing import Final

POLICY: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; require-trusted-types-for 'script'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

_KINDS: Final = {
    "index.html": "text/html",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "parts.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


@functools.cache
def _read(name: str) -> bytes:
    return importlib.resources.files(__package__).joinpath(name).read_bytes()


def file(name: str) -> tuple[bytes, str] | None:
    """The file's content and media type; None when there is no such file."""
    kind = _KINDS.get(name)
    return None if kind is None else (_read(name), kind)
