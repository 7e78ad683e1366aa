"""How many tokens a tool costs a model's context.

In: tools, or texts. Out: counts, exact (OpenAI's o200k_base) where the extra `tokens` is installed, else estimated.
Called by counting and the cli, to say what a full list would cost. A count changes only with its tool: keep it.

The vocabulary takes half a second and 60 MB: `load` it in a thread, and before that use `estimate`.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Final

from arion_tds.model.tool import Tool

ENCODING: Final = "o200k_base"
CHARACTERS_A_TOKEN: Final = 4.45
"""What definitions of tools measure at (names, English and JSON together); plain English is nearer to 4."""


def text(tool: Tool) -> str:
    """What of a tool a model reads: name, description and input schema."""
    return f"{tool.qualified}\n{tool.description}\n{tool.input_schema.text.decode()}"


def count(texts: Sequence[str]) -> list[int]:
    """Tokens of each text. Exact counting takes about 35 µs a tool, and half a second once, for the vocabulary."""
    counter = _counter()
    if counter is None:
        return [estimate(len(each)) for each in texts]
    return counter(texts)


def estimate(characters: int) -> int:
    """Tokens of so many characters, about a tenth off."""
    return math.ceil(characters / CHARACTERS_A_TOKEN)


def exact() -> bool:
    """Whether counts are exact: otherwise they are estimated from the length."""
    return _counter() is not None


def load() -> None:
    """Make the first `count` quick. Blocks for half a second: call it in a thread."""
    count(["a"])


@functools.cache
def _counter() -> Callable[[Sequence[str]], list[int]] | None:
    try:
        toktok = importlib.import_module("toktok")  # the extra `tokens`
    except ImportError:
        return None
    # One thread: this shares its cores with the traffic.
    return lambda texts: list(toktok.batch_count(list(texts), ENCODING, threads=1))
