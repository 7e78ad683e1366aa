"""Which tools hold which words: an inverted index that changes one document at a time, and BM25 over it.

In: documents. Out: slots (small numbers that stand for documents) and scores by slot. Called by search.index.

How a change stays cheap. A term's postings are one growing array of 32-bit numbers, slot and weight packed (one alone,
which is what half of all terms have, is a plain number), so an addition appends about 60 numbers. A removal only
counts: the slot's length becomes infinite, which makes its scores zero, and each of its terms has one stale posting
more. A term with more than a quarter of stale postings is cut down on its own: there is no moment at which the whole
index is compacted. A slot is used again once no term names it any more.

How scores stay exact. Document frequencies, count and average length are always those of the living documents, and all
sums over documents are sums of integers: the scores are, to the bit, those of an index that was built anew.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

K1: Final = 1.2
B: Final = 0.75
"""BM25's usual constants; the evaluation hardly moves between k1 0.9 and 2.0, b 0.5 and 0.9."""

SHORTEST_FIXABLE: Final = 4
"""Letters from which a word is offered as the right spelling of an unknown one."""

_QUARTERS: Final = 4
_WEIGHT_BITS: Final = 8
_WEIGHT_MASK: Final = 0xFF
_FIRST_SLOTS: Final = 256
_FEW: Final = 24
"""Postings up to which a Python loop beats numpy."""

Floats = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]
Slots = npt.NDArray[np.intp]


class Postings:
    """Documents by slot. Not for two threads. Room for 16 million slots."""

    def __init__(self, spoken: Callable[[str], str] = str) -> None:
        """`spoken` gives a word that people would write for a term."""
        self._spoken = spoken
        self.size = 0
        """Slots that exist, free ones included: the length of `scores`."""
        self._living = 0
        self._total = 0  # quarters of weight over all living documents
        self._numbers: dict[str, int] = {}  # a number for each term
        self._texts: list[str] = []  # the rest is by number
        self._postings: list[array[int] | int] = []
        self._stale: list[int] = []
        self._free_numbers: list[int] = []
        self._held: list[bytes] = []  # by slot: the numbers of its terms, see _pack
        self._pending: list[int] = []  # by slot: stale postings that still name it
        self._free_slots: list[int] = []
        self._lengths: Floats = np.full(_FIRST_SLOTS, np.inf, np.float32)
        self._letters: dict[str, dict[str, str]] = {}  # first letter: term: word

    def add(self, terms: Mapping[str, int], length: int) -> int:
        """The slot of a new document. Weights 1 to 255, `length` their sum."""
        slot = self._take_slot()
        base = slot << _WEIGHT_BITS
        numbers, postings = self._numbers, self._postings
        held: list[int] = []
        for term, weight in terms.items():
            number = numbers.get(term)
            if number is None:
                number = self._new_term(term, base | weight)
            else:
                known = postings[number]
                if isinstance(known, int):
                    postings[number] = array("I", (known, base | weight))
                else:
                    known.append(base | weight)
            held.append(number)
        self._held[slot] = _pack(held)
        self._lengths[slot] = length
        self._total += length
        self._living += 1
        return slot

    def remove(self, slot: int) -> None:
        """The document of the slot is gone; each slot once."""
        self._living -= 1
        self._total -= int(self._lengths[slot])
        self._lengths[slot] = np.inf
        held = _unpack(self._held[slot])
        self._held[slot] = b""
        self._pending[slot] = len(held)
        if not held:
            self._free_slots.append(slot)
        stale, postings = self._stale, self._postings
        for number in held:
            stale[number] += 1
            known = postings[number]
            if isinstance(known, int) or stale[number] * 4 > len(known):
                self._cut(number)

    def living(self) -> npt.NDArray[np.bool_]:
        """By slot: whether a document is there."""
        return np.isfinite(self._lengths[: self.size])

    def frequency(self, term: str) -> int:
        """How many documents hold the term."""
        number = self._numbers.get(term)
        return 0 if number is None else self._count(number) - self._stale[number]

    def like(self, letter: str) -> Mapping[str, str]:
        """Terms that begin with the letter, each with a word that has it; only what a correction may lead to."""
        return self._letters.get(letter, {})

    def scores(self, terms: Sequence[tuple[str, float]]) -> Scores:
        """BM25 by slot (Lucene's idf, no constant factor) of (term, factor) pairs; zero where none of them occurs."""
        where: list[Slots] = []
        parts: list[Floats] = []
        flat = np.float32(_QUARTERS * K1 * (1 - B))
        slope = np.float32(_QUARTERS * K1 * B * self._living / max(self._total, 1))
        for term, factor in terms:
            number = self._numbers.get(term)
            if number is None:
                continue
            known = self._postings[number]
            packed = np.array([known], np.uint32) if isinstance(known, int) else np.frombuffer(known, np.uint32)
            frequency = len(packed) - self._stale[number]
            idf = math.log(1 + (self._living - frequency + 0.5) / (frequency + 0.5))
            slots = (packed >> _WEIGHT_BITS).astype(np.intp)
            weights = (packed & _WEIGHT_MASK).astype(np.float32)
            del packed  # an array that is looked at cannot grow
            norms = self._lengths[slots]
            norms *= slope
            norms += flat
            norms += weights
            weights /= norms
            weights *= np.float32(idf * factor)
            where.append(slots)
            parts.append(weights)
        if not where:
            return np.zeros(self.size)
        return np.bincount(np.concatenate(where), np.concatenate(parts), self.size).astype(np.float64, copy=False)

    def _take_slot(self) -> int:
        if self._free_slots:
            return self._free_slots.pop()
        slot = self.size
        self.size += 1
        self._held.append(b"")
        self._pending.append(0)
        if slot == len(self._lengths):
            self._lengths = np.concatenate([self._lengths, np.full(slot // 2, np.inf, np.float32)])
        return slot

    def _count(self, number: int) -> int:
        """Postings of the term, stale ones included."""
        known = self._postings[number]
        return 1 if isinstance(known, int) else len(known)

    def _new_term(self, term: str, packed: int) -> int:
        """The number of a term with its first posting."""
        if self._free_numbers:
            number = self._free_numbers.pop()
            self._texts[number] = term
            self._postings[number] = packed
        else:
            number = len(self._postings)
            self._texts.append(term)
            self._postings.append(packed)
            self._stale.append(0)
        self._numbers[term] = number
        if not term.isalpha():  # nor is any word that has it
            return number
        word = self._spoken(term)
        if len(word) >= SHORTEST_FIXABLE and word.isalpha():
            self._letters.setdefault(term[0], {})[term] = word
        return number

    def _cut(self, number: int) -> None:
        """Drop the stale postings of a term, and the term itself when no other is left."""
        postings = self._postings[number]
        if isinstance(postings, int):
            self._release((postings >> _WEIGHT_BITS,))
            self._forget(number)
        elif self._stale[number] == len(postings):
            self._release([packed >> _WEIGHT_BITS for packed in postings])
            self._forget(number)
        elif len(postings) <= _FEW:
            held = self._held
            self._release([packed >> _WEIGHT_BITS for packed in postings if not held[packed >> _WEIGHT_BITS]])
            living = [packed for packed in postings if held[packed >> _WEIGHT_BITS]]
            self._postings[number] = living[0] if len(living) == 1 else array("I", living)
        else:
            view = np.frombuffer(postings, np.uint32)
            slots = view >> _WEIGHT_BITS
            there = np.isfinite(self._lengths[slots])
            self._release(slots[~there].tolist())
            self._postings[number] = array("I", view[there].tobytes())
        self._stale[number] = 0

    def _release(self, dead: Iterable[int]) -> None:
        """One stale posting less for each of the slots; a slot without any can be used again."""
        pending = self._pending
        for slot in dead:
            pending[slot] -= 1
            if not pending[slot]:
                self._free_slots.append(slot)

    def _forget(self, number: int) -> None:
        term = self._texts[number]
        del self._numbers[term]
        self._texts[number] = ""
        self._postings[number] = 0
        self._free_numbers.append(number)
        letters = self._letters.get(term[0])
        if letters is not None:
            letters.pop(term, None)
            if not letters:
                del self._letters[term[0]]


def _pack(numbers: Sequence[int]) -> bytes:
    """The kind of number, then the numbers: most catalogs have fewer terms than two bytes can count."""
    try:
        return b"H" + array("H", numbers).tobytes()
    except OverflowError:
        return b"I" + array("I", numbers).tobytes()


def _unpack(packed: bytes) -> array[int]:
    return array(packed[:1].decode(), packed[1:])
