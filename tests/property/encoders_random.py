"""Random protobuf messages of any type, by its descriptor. `of(kind)` is a hypothesis strategy. Used by test_encoders.

Few fields of each message are set, and they stand in each other at most DEPTH deep: Envoy's are large and recursive.
A Duration and a Timestamp are what the other side can hold: microseconds, within the years of a datetime.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

DEPTH: Final = 4
FIELDS: Final = 5
ITEMS: Final = 3

F = FieldDescriptor
_TEXT: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def _whole(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    low = -(1 << (bits - 1)) if signed else 0
    return st.integers(low, (1 << (bits - (1 if signed else 0))) - 1)


_SCALARS: Final[dict[int, st.SearchStrategy[Any]]] = {
    F.TYPE_STRING: _TEXT,
    F.TYPE_BYTES: st.binary(max_size=12),
    F.TYPE_BOOL: st.booleans(),
    F.TYPE_DOUBLE: st.floats(allow_nan=False),
    F.TYPE_FLOAT: st.floats(allow_nan=False, width=32),
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_SINT32, F.TYPE_SFIXED32), _whole(32, signed=True)),
    **dict.fromkeys((F.TYPE_INT64, F.TYPE_SINT64, F.TYPE_SFIXED64), _whole(64, signed=True)),
    **dict.fromkeys((F.TYPE_UINT32, F.TYPE_FIXED32), _whole(32, signed=False)),
    **dict.fromkeys((F.TYPE_UINT64, F.TYPE_FIXED64), _whole(64, signed=False)),
}


def of(kind: type[Message]) -> st.SearchStrategy[Message]:
    """Messages of that type."""
    return _messages(kind.DESCRIPTOR, DEPTH)


@st.composite
def _messages(draw: st.DrawFn, descriptor: Descriptor, depth: int) -> Message:
    made = GetMessageClass(descriptor)()
    if descriptor.full_name in ("google.protobuf.Duration", "google.protobuf.Timestamp"):
        made.seconds = draw(st.integers(0, 1 << 31))  # type: ignore[attr-defined]
        made.nanos = draw(st.integers(0, 999_999)) * 1000  # type: ignore[attr-defined]
        return made
    possible = [field for field in descriptor.fields if depth > 0 or field.message_type is None]
    for field in draw(st.lists(st.sampled_from(possible), max_size=FIELDS, unique=True)) if possible else ():
        _fill(draw, made, field, depth)
    return made


def _fill(draw: st.DrawFn, made: Message, field: FieldDescriptor, depth: int) -> None:
    held = getattr(made, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        for name in draw(st.lists(_value(key, depth), max_size=ITEMS, unique=True)):
            if value.message_type is None:
                held[name] = draw(_value(value, depth))
            else:
                held[name].CopyFrom(draw(_value(value, depth)))
    elif field.is_repeated:
        held.extend(draw(st.lists(_value(field, depth), max_size=ITEMS)))
    elif field.message_type is not None:
        held.CopyFrom(draw(_value(field, depth)))
        held.SetInParent()
    else:
        setattr(made, field.name, draw(_value(field, depth)))


def _value(field: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    if field.message_type is not None:
        return _messages(field.message_type, depth - 1)
    if field.enum_type is not None:
        return st.sampled_from([one.number for one in field.enum_type.values])
    return _SCALARS[field.type]
