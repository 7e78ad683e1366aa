"""Errors that end a command, raised where it meets the world and shown by the cli as they are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence


def one_line(error: Exception) -> str:
    """What a parser says, in one line and without the names that it gives to bytes and text."""
    text = " ".join(str(error).split())
    return text.replace(' in "<byte string>"', "").replace(' in "<unicode string>"', "")


def meant(word: object, known: Iterable[str]) -> str:
    """The end of a sentence about a word that nobody knows: the known one that is most like it, if there is one."""
    from difflib import get_close_matches  # only where a mistake is told of

    found = get_close_matches(str(word)[:100], list(known), 1)
    return f": did you mean {found[0]!r}?" if found else ""


class ConfigError(Exception):
    """The config cannot be used. `problems` are sentences, each with the path of the mistake."""

    def __init__(self, problems: Sequence[str]) -> None:
        """At least one problem."""
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class BindError(Exception):
    """A listener's address cannot be bound."""

    @classmethod
    def at(cls, whose: str, host: str, port: int, error: OSError) -> BindError:
        """The system's own words for it: event loops say more around them, each in its own way."""
        number = error.errno or 0
        why = os.strerror(number) if number > 0 else error.strerror or str(error)
        return cls(f"{whose}: cannot listen on {host}:{port}: {why}")


class AskError(Exception):
    """A running gateway could not be asked, or said no. The text says what to do next."""
