"""The tools of one scope, to be found by word, name or namespace. Changes one tool at a time and is searchable at once.

In: documents by key (`add`, `remove`). Out: keys in order, slots by name and by group.
Called by ingest (the only writer), search.scoring and search.hits (the readers), in one event loop and never across an
await.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Hashable, Iterator

from arion_tds.search.order import Order
from arion_tds.search.postings import Postings
from arion_tds.search.tokenize import Document, spoken

Group = tuple[str, Hashable]
"""What filters judge: namespace and policy."""


class SearchIndex:
    """Tools by key. A slot, where one is given out, means its tool until the next change."""

    def __init__(self) -> None:
        self.words = Postings(spoken)
        self.keys: list[str] = []
        """Key by slot, "" where no tool is."""
        self.order = Order()
        """Slots in key order."""
        self._slots: dict[str, int] = {}
        self._names: list[str] = []  # by slot: its folded names, NUL after each
        self._spellings = Order()  # by each of the names, with those that follow it
        self.group_of = array("i")
        """By slot: the number of its group; where no tool is, of the group that was."""
        self._group_numbers: dict[Group, int] = {}
        self._groups: list[Group] = []  # these two by number
        self._group_sizes: list[int] = []
        self._free_groups: list[int] = []

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: object) -> bool:
        return key in self._slots

    def slot(self, key: str) -> int | None:
        """Where the tool stands in `keys`."""
        return self._slots.get(key)

    def add(self, key: str, namespace: str, document: Document, policy: Hashable = None) -> None:
        """Index the tool, or replace the one of this key (its qualified name). Tens of microseconds.

        `policy` (a tool's `rbac`) is what a search asks once for all the tools that share it.
        """
        self.remove(key)
        slot = self.words.add(document.terms, document.length)
        if slot == len(self.keys):
            self.keys.append("")
            self._names.append("")
            self.group_of.append(0)
        self._slots[key] = slot
        self.keys[slot] = key
        self.group_of[slot] = self._enter((namespace, policy))
        self.order.add(key, slot)
        names = self._names[slot] = "".join([f"{name}\0" for name in dict.fromkeys(document.names)])
        for spelling in _spellings(names):
            self._spellings.add(spelling, slot)

    def remove(self, key: str) -> None:
        """Forget the tool; nothing happens when there is none of this key."""
        slot = self._slots.pop(key, None)
        if slot is None:
            return
        self.words.remove(slot)
        self._leave(self.group_of[slot])
        self.order.remove(key, slot)
        for spelling in _spellings(self._names[slot]):
            self._spellings.remove(spelling, slot)
        self.keys[slot] = self._names[slot] = ""

    def spelled(self, prefix: str) -> list[int]:
        """Slots of tools with a (folded) name that begins so; a name ends in NUL. One may be there twice."""
        return self._spellings.prefixed(prefix)

    def chosen(self, namespaces: Container[str] | None, permits: Callable[[Hashable], bool] | None) -> bytearray:
        """By number of a group: 1 where its namespace is one of these and its policy is permitted."""
        chosen = bytearray(len(self._groups))
        judged: dict[Hashable, bool] = {}
        for (namespace, policy), number in self._group_numbers.items():
            if namespaces is not None and namespace not in namespaces:
                continue
            if permits is not None:
                if policy not in judged:
                    judged[policy] = permits(policy)
                if not judged[policy]:
                    continue
            chosen[number] = 1
        return chosen

    def listed(
        self,
        namespaces: Container[str] | None = None,
        permits: Callable[[Hashable], bool] | None = None,
        visible: Callable[[str], bool] | None = None,
    ) -> list[str]:
        """The keys of these namespaces and policies in order, of those alone that may be seen."""
        slots, keys, groups = self.order.prefixed(""), self.keys, self.group_of
        if namespaces is not None or permits is not None:
            chosen = self.chosen(namespaces, permits)
            slots = [slot for slot in slots if chosen[groups[slot]]]
        found = [keys[slot] for slot in slots]
        return found if visible is None else [key for key in found if visible(key)]

    def census(self, permits: Callable[[Hashable], bool] | None) -> dict[str, int]:
        """How many tools of permitted policies each namespace has, in name order."""
        found: dict[str, int] = {}
        for (namespace, policy), number in self._group_numbers.items():
            if permits is None or permits(policy):
                found[namespace] = found.get(namespace, 0) + self._group_sizes[number]
        return dict(sorted(found.items()))

    def _enter(self, group: Group) -> int:
        number = self._group_numbers.get(group)
        if number is None:
            if self._free_groups:
                number = self._free_groups.pop()
                self._groups[number] = group
            else:
                number = len(self._groups)
                self._groups.append(group)
                self._group_sizes.append(0)
            self._group_numbers[group] = number
        self._group_sizes[number] += 1
        return number

    def _leave(self, number: int) -> None:
        self._group_sizes[number] -= 1
        if not self._group_sizes[number]:
            del self._group_numbers[self._groups[number]]
            self._free_groups.append(number)


def _spellings(names: str) -> Iterator[str]:
    """Of `a NUL b NUL`: that, and `b NUL`. What begins with a name is found, and the first is no string of its own."""
    while names:
        yield names
        names = names[names.index("\0") + 1 :]
