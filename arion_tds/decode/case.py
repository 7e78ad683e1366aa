"""One resource under judgement: what it may read, and everything that was found wrong with it so far.

Made by table and gateway for each resource, passed through the decoder of every message in it. A decoder writes down
what it finds and carries on, so that one look at a resource names every mistake; the value counts only when
`problems` is empty at the end.
"""

from __future__ import annotations

from arion_tds.decode.rules import DataRules
from arion_tds.model.problem import Problem


class Case:
    """`problems` and `warnings` so far. Their `where` is the field's path inside the resource, as proto spells it."""

    __slots__ = ("problems", "rules", "warnings")

    def __init__(self, rules: DataRules) -> None:
        """Nothing found yet."""
        self.rules = rules
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def refuse(self, field: str, why: str) -> None:
        """The resource cannot be used: `why` completes the sentence that `field` begins."""
        self.problems.append(Problem(field, why))

    def warn(self, field: str, why: str) -> None:
        """The resource is used, but someone should know this."""
        self.warnings.append(Problem(field, why))

    def required(self, field: str, text: str) -> str:
        """The text as it is; empty is refused."""
        if not text:
            self.refuse(field, "is empty: it is required")
        return text
