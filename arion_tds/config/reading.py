"""Reading a nested mapping part by part, so that in the end it is known which parts nobody has read.

In: parsed proto JSON, in either spelling of its keys (`static_resources`, `staticResources`). Out: values, and the
paths of all that was not taken. Pure. Used by bootstrap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


class Reading:
    """One reading. `problems` are sentences that begin with a path."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._notes: list[str] = []
        self._parts: list[Part] = []

    def part(self, value: object, path: str) -> Part:
        """The mapping at that path; none there is an empty one."""
        if value is not None and not isinstance(value, dict):
            self.problem(path, f"must be a mapping, not {type(value).__name__}")
        part = Part(self, value if isinstance(value, dict) else {}, path)
        self._parts.append(part)
        return part

    def problem(self, path: str, why: str) -> None:
        """Something cannot be used, and must not be passed over."""
        self.problems.append(f"{path or '(file)'}: {why}")

    def note(self, sentence: str) -> None:
        """Something to be told."""
        self._notes.append(sentence)

    def unused(self) -> tuple[str, ...]:
        """Every note, and every part that nobody took."""
        left = [path for part in self._parts for path in part.left()]
        return (*self._notes, *(f"{path}: is not used by this gateway" for path in left))


class Part:
    """One mapping. What is taken from it counts as read."""

    def __init__(self, reading: Reading, value: Mapping[str, Any], path: str) -> None:
        """Made by `Reading.part`."""
        self.path = path
        self._reading = reading
        self._raw = value
        self._values = {_snake(str(key)): inner for key, inner in value.items() if inner is not None}
        self._made: dict[str, Part] = {}
        self._lists: dict[str, list[Part]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._values or key in self._made or key in self._lists

    def at(self, key: str) -> str:
        """The path of a member."""
        return f"{self.path}.{key}" if self.path else key

    def left(self) -> list[str]:
        """The paths of what nobody has taken: its own if that is all of it."""
        if self.path and self._values and len(self._values) == len(self._raw):
            return [self.path]
        return [self.at(key) for key in self._values]

    def take(self, key: str) -> Any:  # noqa: ANN401 - whatever the file holds
        """The member, or None."""
        return self._values.pop(key, None)

    def move(self, key: str, into: dict[str, Any], name: str | None = None) -> bool:
        """Put the member, if it is there, into `into` under `name`; whether it was."""
        if key not in self._values:
            return False
        into[name or key] = self._values.pop(key)
        return True

    def part(self, key: str) -> Part:
        """The member as a mapping; the same one each time."""
        if key not in self._made:
            self._made[key] = self._reading.part(self.take(key), self.at(key))
        return self._made[key]

    def parts(self, key: str) -> list[Part]:
        """The member as a list of mappings; the same ones each time."""
        if key not in self._lists:
            value = self.take(key)
            if value is not None and not isinstance(value, list):
                self._reading.problem(self.at(key), f"must be a list, not {type(value).__name__}")
                value = None
            self._lists[key] = [
                self._reading.part(one, f"{self.at(key)}[{position}]") for position, one in enumerate(value or ())
            ]
        return self._lists[key]

    def members(self) -> Iterator[tuple[str, Part]]:
        """Every member as a mapping, by its name as it is written."""
        self._values.clear()
        for key, value in self._raw.items():
            yield str(key), self._reading.part(value, self.at(str(key)))

    def kind(self, key: str) -> str:
        """The `@type` of a member that has one, without taking it."""
        value = self._values.get(key)
        if value is None and key in self._made:
            return ""
        return str(value.get("@type", "")) if isinstance(value, dict) else ""

    def rest(self) -> dict[str, Any]:
        """Everything but `@type`, as it is written, for somebody who judges it all."""
        self._values.clear()
        return {key: value for key, value in self._raw.items() if key != "@type"}


def _snake(key: str) -> str:
    return _HUMP.sub(lambda found: f"_{found[1].lower()}", key)
