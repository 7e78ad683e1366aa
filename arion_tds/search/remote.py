"""The conversation with an OpenAI-compatible embedding endpoint, as values: what is asked, what an answer says. Pure.

In: tools or query text; an answer's body. Out: a request's body; unit vectors, or why the answer cannot be used.
Called by embedding, which sends and waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from arion_tds.model.gateway import Embeddings
from arion_tds.model.tool import Tool

if TYPE_CHECKING:
    from arion_tds.search.vectors import Vector

MAX_TEXT: Final = 2000
"""Characters of a tool or query that are embedded; small models read about 500 tokens."""

MAX_DESCRIPTION: Final = 1500
"""Characters of a description that leave room for what follows."""

BYTES_A_NUMBER: Final = 32
"""Room for one number of an answer as JSON; the largest float takes 24."""

_encode = msgspec.json.Encoder().encode


class _Item(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Item]


class _Parameters(msgspec.Struct):
    properties: dict[str, msgspec.Raw] = {}


_decode = msgspec.json.Decoder(_Answer).decode
_properties = msgspec.json.Decoder(_Parameters).decode


def text(tool: Tool) -> str:
    """What is embedded of a tool: its name, its description, and the names of its parameters (worth half a point)."""
    head = f"{tool.namespace} {tool.name}: {tool.description[:MAX_DESCRIPTION]}"
    try:
        labels = " ".join(_properties(tool.input_schema.text).properties).replace("_", " ")
    except (msgspec.DecodeError, RecursionError):
        labels = ""
    return f"{head} {labels}"[:MAX_TEXT].rstrip()


def query(asked: str) -> str:
    """What is embedded of a query: the same for queries that differ in blanks only."""
    return " ".join(asked.split())[:MAX_TEXT]


def body(settings: Embeddings, texts: list[str], *, dimensions: bool) -> bytes:
    """A request for the texts' embeddings. `dimensions`: ask for the configured length."""
    asked: dict[str, object] = {"model": settings.model_id, "input": texts}
    if dimensions:
        asked["dimensions"] = settings.dimensions
    return _encode(asked)


def most_bytes(settings: Embeddings, count: int) -> int:
    """The largest answer to `count` texts that is read."""
    return (1 << 16) + count * (settings.dimensions * BYTES_A_NUMBER + 256)


def read(answer: bytes, count: int, dimensions: int) -> list[Vector] | str:
    """A unit vector for each text in order, or why there are not that many good ones."""
    try:
        items = _decode(answer).data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"the answer is not what an embedding endpoint says: {error}"
    if len(items) != count:
        return f"{len(items)} embeddings for {count} texts"
    from arion_tds.search.vectors import unit  # here, not above: with it comes numpy

    vectors: dict[int, Vector] = {}
    for position, item in enumerate(items):
        vector = unit(item.embedding, dimensions)
        if isinstance(vector, str):
            return vector
        vectors[position if item.index is None else item.index] = vector
    if vectors.keys() != set(range(count)):
        return f"the indexes of {count} embeddings are not 0 to {count - 1}"
    return [vectors[position] for position in range(count)]
