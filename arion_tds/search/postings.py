"""Which tools hold which words: an inverted index that changes one document at a time.

In: documents. Out: slots (small numbers that stand for documents) and postings by term. Called by search.index; read by
search.scoring. Nothing here needs numpy: a gateway that is never asked for a word need not hold it.

How a change stays cheap. A term's postings are one growing array of 32-bit numbers, slot and weight packed (one
alone, which is what half of all terms have, stands with those of other terms), so an addition appends about 60
numbers. A removal only counts: the slot's length becomes infinite, which makes its scores zero, and each of its terms
has one stale posting more. A term with more than a quarter of stale postings is cut down on its own, and of terms
with many postings one for each removal: there is no moment at which the whole index is compacted. A slot is used
again once no term names it any more.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

SHORTEST_FIXABLE: Final = 4
"""Letters from which a word is offered as the right spelling of an unknown one."""

WEIGHT_BITS: Final = 8
"""Of a packed posting; the slot stands above them."""

MANY: Final = 1024
"""Postings from which cutting a term down is worth spreading: 60 µs."""


class Postings:
    """Documents by slot. Not for two threads. Room for 16 million slots."""

    def __init__(self, spoken: Callable[[str], str] = str) -> None:
        """`spoken` gives a word that people would write for a term."""
        self._spoken = spoken
        self.size = 0
        """Slots that exist, free ones included."""
        self.living = 0
        """Documents."""
        self.total = 0
        """Quarters of weight over all of them."""
        self.lengths = array("f")
        """Quarters of weight by slot; infinite where no document is."""
        self._numbers: dict[str, int] = {}  # a number for each term
        self._texts: list[str] = []  # the rest is by number
        self._first = array("I")  # the one posting of a term that is not in `_more`
        self._more: dict[int, array[int]] = {}
        self._stale = array("I")
        self._free_numbers: list[int] = []
        self._held: list[bytes] = []  # by slot: the numbers of its terms, see _pack
        self._pending: list[int] = []  # by slot: stale postings that still name it
        self._free_slots: list[int] = []
        self._letters: dict[str, dict[str, str]] = {}  # first letter: term: word

    def add(self, terms: Mapping[str, int], length: int) -> int:
        """The slot of a new document. Weights 1 to 255, `length` their sum."""
        slot = self._take_slot()
        base = slot << WEIGHT_BITS
        numbers, more = self._numbers, self._more
        held: list[int] = []
        for term, weight in terms.items():
            number = numbers.get(term)
            if number is None:
                number = self._new_term(term, base | weight)
            else:
                known = more.get(number)
                if known is None:
                    more[number] = array("I", (self._first[number], base | weight))
                else:
                    known.append(base | weight)
            held.append(number)
        self._held[slot] = _pack(held)
        self.lengths[slot] = length
        self.total += length
        self.living += 1
        return slot

    def remove(self, slot: int) -> None:
        """The document of the slot is gone; each slot once."""
        self.living -= 1
        self.total -= int(self.lengths[slot])
        self.lengths[slot] = math.inf
        held = _unpack(self._held[slot])
        self._held[slot] = b""
        self._pending[slot] = len(held)
        if not held:
            self._free_slots.append(slot)
        stale, more = self._stale, self._more
        spread = False  # terms that all tools hold come to be cut down at the same time
        for number in held:
            stale[number] += 1
            known = more.get(number)
            if known is None:
                self._cut(number)
            elif stale[number] * 4 > len(known) and not (spread and len(known) >= MANY):
                spread = spread or len(known) >= MANY
                self._cut(number)

    def held(self, term: str) -> tuple[array[int], int]:
        """The packed postings of the term, stale ones included, and how many documents hold it."""
        number = self._numbers.get(term)
        if number is None:
            return array("I"), 0
        packed = self._more.get(number)
        if packed is None:
            packed = array("I", (self._first[number],))
        return packed, len(packed) - self._stale[number]

    def frequency(self, term: str) -> int:
        """How many documents hold the term."""
        return self.held(term)[1]

    def like(self, letter: str) -> Mapping[str, str]:
        """Terms that begin with the letter, each with a word that has it; only what a correction may lead to."""
        return self._letters.get(letter, {})

    def _take_slot(self) -> int:
        if self._free_slots:
            return self._free_slots.pop()
        slot = self.size
        self.size += 1
        self._held.append(b"")
        self._pending.append(0)
        self.lengths.append(math.inf)
        return slot

    def _new_term(self, term: str, packed: int) -> int:
        """The number of a term with its first posting."""
        if self._free_numbers:
            number = self._free_numbers.pop()
            self._texts[number] = term
            self._first[number] = packed
        else:
            number = len(self._texts)
            self._texts.append(term)
            self._first.append(packed)
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
        postings = self._more.get(number)
        if postings is None:
            self._release((self._first[number] >> WEIGHT_BITS,))
            self._forget(number)
        elif self._stale[number] == len(postings):
            self._release([packed >> WEIGHT_BITS for packed in postings])
            self._forget(number)
        else:
            held = self._held
            self._release([packed >> WEIGHT_BITS for packed in postings if not held[packed >> WEIGHT_BITS]])
            living = [packed for packed in postings if held[packed >> WEIGHT_BITS]]
            if len(living) == 1:
                self._first[number] = living[0]
                del self._more[number]
            else:
                self._more[number] = array("I", living)
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
        self._more.pop(number, None)
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
