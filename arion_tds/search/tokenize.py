"""Words of a tool or a query as search terms.

In: a `Tool`, or query text. Out: `Document` (weighted term frequencies, ready for `SearchIndex.add`) and query words.
Called by ingest (a document per tool, in slices, before publication) and by search.query.

This is the costly part of indexing, so one pass does it: text becomes bytes, one table turns everything that is not
part of a word into blanks, and each chunk between blanks is looked up in a bounded cache of ready terms. Only a chunk
that was not seen before is split at camelCase and digits, stemmed, or cut into CJK bigrams.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from typing import Any, Final, NamedTuple

import msgspec
import Stemmer

from arion_tds.model import names
from arion_tds.model.names import Naming
from arion_tds.model.tool import Tool

MAX_WEIGHT: Final = 255
"""Quarters of one term in one tool. BM25 is flat long before; a posting keeps the weight in one byte."""

MAX_NAME_BYTES: Final = 256
MAX_DESCRIPTION_BYTES: Final = 4096
MAX_PARAMETER_BYTES: Final = 8192
"""Bytes of a tool's text that are indexed; what is beyond is ignored."""

MAX_QUERY_BYTES: Final = 4096
MAX_QUERY_WORDS: Final = 256
"""Bytes and words of query text that are read."""

MAX_DEPTH: Final = 4
MAX_PROPERTIES: Final = 256
"""How deep, and over how many properties, a schema is walked."""

CACHED_WORDS: Final = 1 << 15
CACHED_BYTES: Final = 48
"""Chunks of a generation kept with their terms, and the longest that is kept."""

_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") | frozenset(range(128, 256))
_BLANKED: Final = bytes(byte if byte in _WORD else 0x20 for byte in range(256))
_LOWER: Final = bytes(range(256)).lower()
_DROPPED: Final = bytes(byte for byte in range(256) if byte not in _WORD)

_CASES = re.compile(rb"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_PLURAL = re.compile(rb"[A-Z]{2,}s\Z")  # APIs, URLs: one word, although the case changes
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_SCRIPTS = re.compile(
    rf"[A-Za-z0-9]+|(?P<unspaced>[{_UNSPACED}\U00020000-\U0002fa1f]+)|(?:[^\W_A-Za-z0-9]|[\u0900-\u0dff])+"
)
_ACCENTS = re.compile("(?<=[A-Za-z])[\u0300-\u036f]+")

_STOPPED = (
    "a about all also am an and any are as at be been being but by can could currently d did do does doing don for "
    "from give had has have having he hello help her here hi him his how i if in interested into is it its just "
    "know let like ll looking m me might more most my need no not now of on or our out please re s she should so "
    "some such t tell than thank thanks that the their them then there these they this those to too up us use used "
    "using ve very want was we were what when where which while who whom why will with would you your yours "
)
STOP_WORDS: Final = frozenset(_STOPPED.split())
"""Words that say nothing about a tool. A query (or tool name) of nothing else is taken as it stands."""

_stem = Stemmer.Stemmer("english", 0).stemWord
_decode = msgspec.json.Decoder().decode


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """What the index needs of one tool.

    `terms`: weight by term in quarters, 1 to 255. `length`: their sum. Quarters are integers, which add up exactly in
    any order, so that scores never depend on what was added and removed before. `names`: the folded spellings that
    an exact or prefix query may use (local, qualified, and published where it is not the same folded).
    """

    terms: dict[str, int]
    length: int
    names: tuple[str, ...]


def fold(text: str) -> str:
    """Lower case without anything but letters and digits: `git.createIssue`, `git__create_issue`: `gitcreateissue`."""
    return text.encode("utf-8", "replace").translate(_LOWER, _DROPPED).decode("utf-8", "replace")


class QueryWord(NamedTuple):
    """One word of a query. `term` is looked up; `whole` is False for a part of a compound, or the compound joined."""

    text: str
    term: str
    whole: bool


def _cased(chunk: bytes) -> list[str]:
    lower = chunk.lower().decode()
    if chunk.isalpha() and (chunk.islower() or chunk[1:].islower()):
        return [lower]
    parts = _CASES.findall(chunk)
    if len(parts) == 1 or _PLURAL.match(chunk):
        return [lower]
    return [lower, *[part.lower().decode() for part in parts if len(part) > 1]]


def _spelled(chunk: bytes) -> list[str]:
    """The words of a chunk without blanks: a compound gives itself and its parts, CJK text its bigrams."""
    if chunk.isascii():
        return _cased(chunk)
    text = unicodedata.normalize("NFKD", chunk.decode("utf-8", "ignore"))
    text = unicodedata.normalize("NFC", _ACCENTS.sub("", text))
    found: list[str] = []
    for run in _SCRIPTS.finditer(text):
        word = run.group()
        if run["unspaced"]:
            found.extend([word[at : at + 2] for at in range(len(word) - 1)] or [word])
        elif word.isascii():
            found.extend(_cased(word.encode()))
        else:
            found.append(word.casefold())
    return found


class _Words(dict[bytes, "str | tuple[str, ...]"]):
    """Chunk to its term, or to several, or to "" for a stop word; filled on first sight.

    When it is full it becomes the older generation, from which what is still in use is taken over: a catalog with more
    words than fit costs the rare words, never the frequent ones.
    """

    def __init__(self) -> None:
        self.older: dict[bytes, str | tuple[str, ...]] = {}
        self.spoken: dict[str, str] = {}
        self.spoken_older: dict[str, str] = {}

    def __missing__(self, chunk: bytes) -> str | tuple[str, ...]:
        if chunk.isdigit():
            number = chunk.decode()
            if len(chunk) <= 4:  # else the number of something: met once, not worth a place
                self._keep(chunk, number)
            return number
        value = self.older.get(chunk)
        if value is not None:
            terms = (value,) if isinstance(value, str) else value
            kept = [self.spoken_older.get(term, term) for term in terms]
        else:
            kept = [word for word in _spelled(chunk) if word not in STOP_WORDS]
            terms = tuple([_stem(word) for word in kept])
            value = terms if len(terms) > 1 else "".join(terms)
            if len(chunk) > CACHED_BYTES:
                return value
        self._keep(chunk, value)
        for term, word in zip(terms, kept, strict=True):
            self._speak(term, word)
        return value

    def _keep(self, chunk: bytes, value: str | tuple[str, ...]) -> None:
        if len(self) >= CACHED_WORDS:
            self.older, self.spoken_older, self.spoken = dict(self), self.spoken, {}
            self.clear()
        self[chunk] = value

    def _speak(self, term: str, word: str) -> None:
        known = self.spoken.get(term)
        if known is None or (len(word), word) < (len(known), known):
            self.spoken[term] = word


_words: Final = _Words()


def spoken(term: str) -> str:
    """A word that has this term, for people to read (`repository` for `repositori`); the term when none is known."""
    return _words.spoken.get(term) or _words.spoken_older.get(term, term)


def words(text: str) -> list[QueryWord]:
    """The words of query text in order, without stop words (with them when there is nothing else)."""
    every: list[QueryWord] = []
    for chunk in _chunks(text, MAX_QUERY_BYTES):
        spelled = _spelled(chunk)
        every.extend(QueryWord(word, _stem(word), len(spelled) == 1 and word.isalpha()) for word in spelled)
        if len(every) >= MAX_QUERY_WORDS:
            break
    return [word for word in every if word.text not in STOP_WORDS] or every


def _chunks(text: str, limit: int) -> list[bytes]:
    return text.encode("utf-8", "replace")[:limit].translate(_BLANKED).split()


def document(tool: Tool) -> Document:
    """The tool's terms: name 2, description and namespace 1, parameter names 0.5, parameter descriptions 0.25."""
    labels: list[str] = []
    texts: list[str] = []
    _walk(tool.input_schema.text, labels, texts)
    named = _chunks(tool.name, MAX_NAME_BYTES)
    described = _chunks(f"{tool.namespace} {tool.description}", MAX_DESCRIPTION_BYTES)
    fields = _chunks(" ".join(texts), MAX_PARAMETER_BYTES), _chunks(" ".join(labels), MAX_DESCRIPTION_BYTES)
    terms = _weigh(*fields, described, named)
    local = fold(tool.name)
    if len(named) > 1:
        joined = _stem(local)  # `create_issue` is also typed `createissue`
        terms[joined] = terms.get(joined, 0) + 8
    if not any(map(_words.__getitem__, named)):  # `who_am_i`: a name of stop words only
        for term in [_stem(part) for chunk in named for part in _spelled(chunk)]:
            terms[term] = terms.get(term, 0) + 8
    for compound in [term for term in terms if term.__class__ is tuple]:
        weight = terms.pop(compound)
        for term in compound:
            terms[term] = terms.get(term, 0) + weight
    terms.pop("", None)
    length = sum(terms.values())
    if length > MAX_WEIGHT and max(terms.values()) > MAX_WEIGHT:
        terms = {term: min(weight, MAX_WEIGHT) for term, weight in terms.items()}
        length = sum(terms.values())
    return Document(terms, length, _names(tool, local))


def _weigh(texts: list[bytes], labels: list[bytes], described: list[bytes], named: list[bytes]) -> dict[Any, int]:
    """Quarters of weight by what the cache says of a chunk: a term, "", several terms (taken apart later: few)."""
    weights: dict[Any, int] = {}
    # Four loops that differ in a number: one loop over the numbers costs a third more, and every tool passes here.
    have, word = weights.get, _words.__getitem__
    for term in map(word, texts):
        weights[term] = have(term, 0) + 1
    for term in map(word, labels):
        weights[term] = have(term, 0) + 2
    for term in map(word, described):
        weights[term] = have(term, 0) + 4
    for term in map(word, named):
        weights[term] = have(term, 0) + 8
    return weights


def _names(tool: Tool, local: str) -> tuple[str, ...]:
    if (
        len(tool.namespace) + len(tool.name) + 2 <= names.MAX_PORTABLE
    ):  # published whole: folded, it is the qualified name
        return local, fold(tool.namespace + tool.name)
    published = names.published(Naming.PORTABLE, tool.namespace, tool.name)
    return local, fold(tool.namespace + tool.name), fold(published)


def _walk(schema: bytes, labels: list[str], texts: list[str]) -> None:
    """Add the names of the schema's properties to `labels` and their descriptions to `texts`, nested ones too."""
    try:
        level: list[object] = [_decode(schema)]
    except (msgspec.DecodeError, RecursionError):  # a Schema holds JSON; one too deep to read adds no words
        return
    for _ in range(MAX_DEPTH):
        deeper: list[object] = []
        for node in level:
            if isinstance(node, dict):
                _properties(node, labels, texts, deeper)
        if not deeper or len(labels) >= MAX_PROPERTIES:
            return
        level = deeper


def _properties(node: dict[str, object], labels: list[str], texts: list[str], deeper: list[object]) -> None:
    properties = node.get("properties")
    if isinstance(properties, dict):
        chosen = list(properties.items())[: MAX_PROPERTIES - len(labels)]
        for label, value in chosen:
            labels.append(label)
            if isinstance(value, dict):
                text = value.get("description")
                if isinstance(text, str):
                    texts.append(text)
                if "properties" in value or "items" in value:
                    deeper.append(value)
    if "items" in node:
        deeper.append(node["items"])
