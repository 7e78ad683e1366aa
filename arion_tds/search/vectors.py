"""Tools by meaning: unit vectors by key, and the nearest ones to a query's vector, exactly.

In: embeddings (of tools, as delivered or fetched; of a query). Out: keys with cosine similarity, best first.
Called by ingest (adds, removes) and by whoever searches, who passes the result to `search` as `dense`.

Exact and in numpy on purpose: 50,000 vectors of 384 numbers take 4 ms, and an approximate index takes minutes to build.
Rows stand in blocks, so that growing never copies what is there; float32, because numpy is slow with halves.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

ROWS: Final = 1024
"""Vectors of a block."""

Vector = npt.NDArray[np.float32]


def unit(numbers: bytes | Sequence[float], dimensions: int) -> Vector | str:
    """A vector of length 1, or why these numbers are none. Bytes are float32, little-endian (`Tool.embedding`)."""
    if isinstance(numbers, bytes):
        if len(numbers) != 4 * dimensions:
            return f"an embedding of {len(numbers) / 4:g} numbers where {dimensions} are configured"
        raw = np.frombuffer(numbers, "<f4").astype(np.float64)
    else:
        if len(numbers) != dimensions:
            return f"an embedding of {len(numbers)} numbers where {dimensions} are configured"
        raw = np.array(numbers, np.float64)
    size = float(np.abs(raw).max(initial=0.0))
    if not np.isfinite(size):
        return "an embedding with a number that is not finite"
    if size == 0.0:
        return "an embedding of zeros only, which points nowhere"
    raw /= size  # squares of very large or small numbers would leave the range of floats
    return (raw / np.sqrt(raw @ raw)).astype(np.float32)


class Vectors:
    """Unit vectors by key. Not for two threads."""

    def __init__(self, dimensions: int) -> None:
        """`dimensions`: the length of every vector (`RemoteEmbeddings.dimensions`)."""
        self.dimensions = dimensions
        self._keys: list[str] = []  # by row
        self._rows: dict[str, int] = {}
        self._blocks: list[Vector] = []

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def add(self, key: str, vector: Vector) -> None:
        """Put in, or replace, the vector (from `unit`) of the key."""
        row = self._rows.get(key)
        if row is None:
            row = len(self._keys)
            if row == len(self._blocks) * ROWS:
                self._blocks.append(np.empty((ROWS, self.dimensions), np.float32))
            self._rows[key] = row
            self._keys.append(key)
        self._blocks[row // ROWS][row % ROWS] = vector

    def remove(self, key: str) -> None:
        """Take out the key's vector; nothing happens when it has none."""
        row = self._rows.pop(key, None)
        if row is None:
            return
        moved = self._keys.pop()  # the last row fills the hole
        last = len(self._keys)
        if row != last:
            self._blocks[row // ROWS][row % ROWS] = self._blocks[last // ROWS][last % ROWS]
            self._keys[row] = moved
            self._rows[moved] = row
        if last == (len(self._blocks) - 1) * ROWS:
            self._blocks.pop()

    def nearest(
        self,
        vector: Vector,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
        among: Iterable[str] | None = None,
    ) -> list[tuple[str, float]]:
        """Up to `limit` (key, cosine) of the keys that `allowed` lets pass, most similar first, ties in key order.

        `among`: only these keys are looked at; quicker than `allowed` where they are few.
        """
        keys = self._keys
        cosines = np.empty(len(keys), np.float32)
        for at, block in enumerate(self._blocks):
            part = cosines[at * ROWS : (at + 1) * ROWS]
            np.dot(block[: len(part)], vector, out=part)
        if among is not None:
            few = [self._rows[key] for key in among if key in self._rows and (allowed is None or allowed(key))]
            return self._best(np.array(few, np.intp), cosines, limit)
        if allowed is None:
            return self._best(np.arange(len(keys)), cosines, limit)
        tried = self._best(np.arange(len(keys)), cosines, 4 * limit)
        found = [item for item in tried if allowed(item[0])]
        if len(found) < limit and len(tried) < len(keys):
            rows = np.array([row for row, key in enumerate(keys) if allowed(key)], np.intp)
            return self._best(rows, cosines, limit)
        return found[:limit]

    def _best(self, rows: npt.NDArray[np.intp], cosines: Vector, count: int) -> list[tuple[str, float]]:
        if count <= 0:
            return []
        values = cosines[rows]
        if count < len(rows):
            chosen = values >= np.partition(values, len(rows) - count)[len(rows) - count]
            rows, values = rows[chosen], values[chosen]
        named = ((-value, self._keys[row]) for row, value in zip(rows.tolist(), values.tolist(), strict=True))
        return [(key, -negative) for negative, key in heapq.nsmallest(count, named)]
