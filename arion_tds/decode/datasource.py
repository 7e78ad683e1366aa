"""DataSource (envoy.config.core.v3) to text or bytes: inline, or a file or variable that the rules allow.

In: the message and the Case. Out: text (never empty) or None with the reason in the Case. Called by the decoders of
every message that holds one.
"""

from __future__ import annotations

import codecs
from typing import Final

from envoy.config.core.v3.base_pb2 import DataSource
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

from arion_tds.decode.case import Case

_CHUNK: Final = 1 << 16


def text(source: DataSource, field: str, case: Case) -> str | None:
    """The content as text without byte order mark."""
    if source.WhichOneof("specifier") == "inline_string":  # protobuf has checked its UTF-8
        found: str | None = source.inline_string
    else:
        content = _content(source, field, case)
        if content is None:
            return None
        found = _utf8(content, field, case)
    if found is None:
        return None
    found = found.removeprefix("\ufeff")
    if not found:
        case.refuse(field, "is empty")
        return None
    return found


def data(source: DataSource, field: str, case: Case) -> bytes | None:
    """The content as bytes, which are UTF-8. Megabytes become no text on the way: that takes 0.1 s of the loop."""
    if source.WhichOneof("specifier") == "inline_string":
        content: bytes | None = _inline(source)
    else:
        content = _content(source, field, case)
        if content is not None and not _is_utf8(content):
            _utf8(content, field, case)
            return None
    if content is None:
        return None
    if not content:
        case.refuse(field, "is empty")
        return None
    return content


def _content(source: DataSource, field: str, case: Case) -> bytes | None:
    which = source.WhichOneof("specifier")
    if which == "filename":
        return _file(source.filename, field, case)
    if which == "environment_variable":
        return _variable(source.environment_variable, field, case)
    # An unset specifier has no inline_bytes either: the callers refuse the emptiness.
    inline: bytes = source.inline_string.encode() if which == "inline_string" else source.inline_bytes
    return inline


def _inline(source: DataSource) -> bytes:
    """inline_string as it was on the wire: protobuf has checked its UTF-8, but gives it as text only."""
    fields = UnknownFieldSet(Empty.FromString(source.SerializeToString()))
    found = (fields[at] for at in range(len(fields)))
    inline: bytes = next(one.data for one in found if one.field_number == DataSource.INLINE_STRING_FIELD_NUMBER)
    return inline


def _file(filename: str, field: str, case: Case) -> bytes | None:
    path = case.rules.path(filename)
    if path is None:
        case.refuse(field, f"names the file {filename!r}: the gateway's config does not allow it to be read")
        return None
    try:
        return case.rules.read_file(path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        case.refuse(field, f"names the file {filename!r}, which cannot be read: {error}")
        return None


def _variable(name: str, field: str, case: Case) -> bytes | None:
    if not case.rules.variable(name):
        why = f"names the environment variable {name!r}: the gateway's config does not allow it to be read"
        case.refuse(field, why)
        return None
    value = case.rules.read_environment(name)
    if value is None:
        case.refuse(field, f"names the environment variable {name!r}, which is not set")
        return None
    # What Python could not decode from the environment it holds as surrogates: those bytes are not UTF-8 then.
    return value.encode(errors="surrogateescape")


def _is_utf8(content: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    whole = memoryview(content)
    try:
        for start in range(0, len(content), _CHUNK):
            decoder.decode(whole[start : start + _CHUNK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _utf8(content: bytes, field: str, case: Case) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        case.refuse(field, f"is not UTF-8: {error.reason} at byte {error.start}")
        return None
