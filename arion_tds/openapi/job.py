"""What goes to an expanding process and what comes back: nouns and frames that both sides hold.

In: a document with its settings. Out: a pickled `Job`, a pickled `Head`, an `Expansion`. Used by expansion in the
gateway's process, which so does without all that expands, and by expand and worker in the other.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from arion_tds.model.problem import Problem
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.openapi.limits import Limits, Output

HEADER: Final = 8
"""Bytes of a frame's length."""


@dataclasses.dataclass(frozen=True, slots=True)
class Expansion:
    """What became of a source. `problems` not empty: it is rejected, and there are no tools.

    `skipped` are operations left out because the source says `skip_unsupported_operations`, each with the reason;
    `warnings` cost nothing. Every list is capped, with a last entry that counts the rest.
    """

    tools: tuple[Tool, ...] = ()
    skipped: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """One document to expand: it follows in a frame of its own, and `source` has an empty one."""

    source: OpenApiSource
    limits: Limits
    output: Output


@dataclasses.dataclass(frozen=True, slots=True)
class Head:
    """The first frame of an answer.

    The Expansion without its tools, how many frames of tools follow, and whether the worker ends afterwards (it has
    grown, or ran out of memory).
    """

    expansion: Expansion
    frames: int
    last: bool


def frame(payload: bytes) -> bytes:
    """The payload with its length before it."""
    return len(payload).to_bytes(HEADER, "big") + payload
