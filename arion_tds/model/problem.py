"""What is wrong with something that came in: returned, not raised, by all pure code."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that was refused. `where`: a resource name, config path or JSON Pointer; `why`: a sentence."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}" if self.where else self.why
