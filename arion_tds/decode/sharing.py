"""Equal values as one object: the tools of one service repeat their policies, and a catalog holds thousands of tools.

In: a value of one resource. Out: the equal one of an earlier resource, if there was one lately, else the value itself.
Called by the decoders of what resources repeat.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Final, TypeVar

REMEMBERED: Final = 1024
"""Values that are looked up, the least recently seen going first."""

T = TypeVar("T", bound=Hashable)


@functools.lru_cache(REMEMBERED)
def _first(value: Hashable) -> Hashable:
    return value


def shared(value: T) -> T:
    """The first of the equal values, which must never change; of the value's own type."""
    found = _first(value)
    return found if isinstance(found, type(value)) else value
