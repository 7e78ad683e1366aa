"""Proto JSON (from YAML or JSON) into a message, with every mistake at once and the path of each.

The protobuf library stops at the first mistake, describes it at length, and takes a field that is written in both its
spellings. So the walk over messages is done here; single values are left to the library.
Called by gateway (config) and document (control-plane documents).
"""

from __future__ import annotations

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from arion_tds.errors import meant
from arion_tds.model.problem import Problem

MAX_DEPTH = 32  # messages in messages; ours nest seven deep


def fill(block: object, message: Message, where: str, problems: list[Problem], depth: int = 0) -> None:
    """Write the mapping `block` into `message`; what does not fit is left out and added to `problems`."""
    if not isinstance(block, dict):
        problems.append(Problem(where, f"must be a mapping, not {_said(block)}"))
        return
    if depth > MAX_DEPTH:
        problems.append(Problem(where, f"is nested deeper than {MAX_DEPTH} messages"))
        return
    written: dict[str, str] = {}
    for key, value in block.items():
        field = _field(message, key)
        if field is None:
            known = meant(key, message.DESCRIPTOR.fields_by_name)
            problems.append(Problem(_under(where, key), f"unknown field{known}"))
            continue
        path = _under(where, field.name)
        if value is None:  # proto JSON: null is the same as not there
            continue
        taken = _taken(field, written, key)
        if taken is not None:
            problems.append(Problem(path, taken))
            continue
        if not _is_message(field):
            _leaf(message, key, value, path, problems)
        elif field.is_repeated:
            _each(message, field, value, path, problems, depth)
        else:
            inner = getattr(message, field.name)
            inner.SetInParent()
            fill(value, inner, path, problems, depth + 1)


def _under(where: str, key: object) -> str:
    return f"{where}.{key}" if where else str(key)


def _field(message: Message, key: object) -> FieldDescriptor | None:
    if not isinstance(key, str):
        return None
    found = message.DESCRIPTOR.fields_by_name.get(key) or message.DESCRIPTOR.fields_by_camelcase_name.get(key)
    return found if isinstance(found, FieldDescriptor) else None


def _taken(field: FieldDescriptor, written: dict[str, str], key: str) -> str | None:
    """Why the field cannot be written beside those that were, or None, and then it counts as written."""
    other = written.setdefault(field.name, key)
    if other != key:
        return f"is written as {other} and as {key}: keep one of them"
    union = field.containing_oneof
    if union is None or len(union.fields) == 1:  # one field: not a choice, but proto3's `optional`
        return None
    other = written.setdefault(f"oneof {union.name}", key)
    return None if other == key else f"cannot stand beside {other}: only one of them may be set"


def _is_message(field: FieldDescriptor) -> bool:
    """Whether to walk into it. Google's own types and maps have JSON forms that the library knows."""
    kind = field.message_type
    return kind is not None and not kind.full_name.startswith("google.protobuf.") and not kind.GetOptions().map_entry


def _leaf(message: Message, key: str, value: object, path: str, problems: list[Problem]) -> None:
    try:
        json_format.ParseDict({key: value}, message)
    except json_format.ParseError as error:
        problems.append(Problem(path, _reason(error, key)))


def _each(  # noqa: PLR0917 - the walk's own state beside one field
    message: Message, field: FieldDescriptor, value: object, path: str, problems: list[Problem], depth: int
) -> None:
    if not isinstance(value, list | tuple):
        problems.append(Problem(path, f"must be a list, not {_said(value)}"))
        return
    for at, item in enumerate(value):
        fill(item, getattr(message, field.name).add(), f"{path}[{at}]", problems, depth + 1)


def _reason(error: json_format.ParseError, key: str) -> str:
    """The library's sentence without the parts that the path already says."""
    text = str(error).splitlines()[0].removeprefix(f"Failed to parse {key} field: ")
    return f"does not fit the field: {text[:300]}"


def _said(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return type(value).__name__
