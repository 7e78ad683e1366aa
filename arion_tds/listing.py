"""Which listed tools callers of one permission set see, and whom a change of the list concerns. Pure.

In: the policies (Rbac) of a View's tools and the names under each. Out: per permission set a ready sequence of names,
made once and shared by everybody with the same permissions; per publication a `ListChange`. Used by view alone.

A permission set is a number: bit n is set when the caller may not use what guards[n] guards (`Caller.denied`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, KeysView, Mapping
from typing import Final

from arion_tds.model.rbac import Rbac
from arion_tds.registry.index import Draft, Index
from arion_tds.registry.order import Names

MAX_GUARDS: Final = 1024
"""Different policies up to which lists are kept; with more every page is filtered as it is asked for."""

_MAX_LISTS: Final = 64
"""Permission sets whose lists are kept per View; the oldest goes first."""

_FEW: Final = 16
"""Names up to which a list is mended rather than made anew."""

Groups = Mapping[Rbac, Index[None]]
"""The published names under each policy."""


@dataclasses.dataclass(frozen=True, slots=True)
class ListChange:
    """What became different in a list, by the policies involved (None: everybody's).

    `shown`: a definition under one of these came, went or changed. `moved`: a tool went from one policy to another.
    """

    shown: frozenset[Rbac | None] = frozenset()
    moved: frozenset[tuple[Rbac | None, Rbac | None]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.shown or self.moved)

    def __or__(self, other: ListChange) -> ListChange:
        return ListChange(self.shown | other.shown, self.moved | other.moved)

    def concerns(self, allows: Callable[[Rbac | None], bool]) -> bool:
        """Whether the list of a caller with these permissions is another one now."""
        if None in self.shown or any(map(allows, self.shown)):
            return True
        return any(allows(old) != allows(new) for old, new in self.moved)


NO_CHANGE: Final = ListChange()
_NOBODY: Final[Index[None]] = Index()


class Lists:
    """The listed names of one View, for every permission set. `guards` None: too many policies to keep lists."""

    __slots__ = ("_base", "_groups", "_made", "_mend", "guards", "order")

    def __init__(self, order: Names, groups: Groups, guards: tuple[Rbac, ...] | None) -> None:
        """Made by `EMPTY` and `replace`. `order`: every listed name, sorted. `groups` may hold unlisted names too."""
        self.order = order
        self.guards = guards
        self._groups = groups
        self._made: dict[int, Names] = {}
        self._base: Mapping[int, Names] = {}
        self._mend: tuple[KeysView[str], Mapping[str, Rbac | None]] | None = None

    def of(self, denied: int) -> Names:
        """The names that callers see who are denied these guards, sorted."""
        if not denied:
            return self.order
        found = self._made.get(denied)
        if found is None:
            if len(self._made) >= _MAX_LISTS:
                del self._made[next(iter(self._made))]
            found = self._made[denied] = self._make(denied)
        return found

    def _make(self, denied: int) -> Names:
        guards = self.guards or ()
        refused = {rbac for position, rbac in enumerate(guards) if denied >> position & 1}
        base = self._base.get(denied)
        if base is not None and self._mend is not None:
            unlisted, listed = self._mend
            come = {name: None for name, rbac in listed.items() if rbac not in refused}
            return reorder(base, unlisted, come.keys())
        hidden: set[str] = set()
        for rbac in refused:
            hidden.update(self._groups[rbac])
        return Names(name for name in self.order if name not in hidden)

    def replace(
        self,
        order: Names,
        left: Iterable[tuple[Rbac, str]],
        joined: Iterable[tuple[Rbac, str]],
        unlisted: KeysView[str],
        listed: Mapping[str, Rbac | None],
    ) -> Lists:
        """Lists of the next View: names that left or joined a policy; and what left and joined the list itself."""
        groups = dict(self._groups)
        fresh: dict[Rbac, Draft[None]] = {}
        for rbac, name in left:
            names = self._mine(fresh, rbac)
            if name in names:
                names.drop(name)
        for rbac, name in joined:
            self._mine(fresh, rbac).put(name, None)
        for rbac, names in fresh.items():
            if names:
                groups[rbac] = names.finish()
            else:
                groups.pop(rbac, None)
        guards = self.guards
        if any((rbac in self._groups) != (rbac in groups) for rbac in fresh):
            guards = tuple(groups) if len(groups) <= MAX_GUARDS else None
        new = Lists(order, groups, guards)
        if guards is not None and guards is self.guards:
            if order is self.order and not fresh:
                new._made = self._made
            elif len(unlisted) + len(listed) <= _FEW:
                new._base, new._mend = self._made, (unlisted, listed)
        return new

    def _mine(self, fresh: dict[Rbac, Draft[None]], rbac: Rbac) -> Draft[None]:
        """The names under the policy, to be altered."""
        found = fresh.get(rbac)
        if found is None:
            found = fresh[rbac] = Draft(self._groups.get(rbac, _NOBODY))
        return found


EMPTY: Final = Lists(Names(), {}, ())


def reorder(order: Names, unlisted: KeysView[str], listed: KeysView[str]) -> Names:
    """The names without `unlisted`, with `listed`."""
    if unlisted == listed and all(name in order for name in listed):
        return order
    return order.replace(unlisted, listed)
