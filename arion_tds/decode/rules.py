"""What a resource is judged by beside its own text, as a value, so that decoding stays pure.

Made by the app from config (one for delivered resources, one for static ones) and passed to decode.
"""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Callable
from typing import Final


def _no_file(path: str) -> bytes:
    msg = f"no reader for {path}"
    raise OSError(msg)


def _no_variable(name: str) -> str | None:
    del name
    return None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DataRules:
    """Which files and environment variables a DataSource may name, and how they are read.

    `files`: absolute paths, each a file or (ending in `/`) a folder with all below it; `any_file` allows every path,
    also relative ones. `environment`: exact names; `any_environment` allows every name. `read_file` takes a path and
    raises OSError with a reason, also for a file over its size limit; `read_environment` gives None for an unset
    variable. Links are not resolved: an allowed folder is trusted with what it links to.
    `dimensions`: numbers of an embedding, where the gateway has embeddings.
    """

    files: tuple[str, ...] = ()
    environment: frozenset[str] = frozenset()
    any_file: bool = False
    any_environment: bool = False
    read_file: Callable[[str], bytes] = _no_file
    read_environment: Callable[[str], str | None] = _no_variable
    dimensions: int | None = None

    def path(self, filename: str) -> str | None:
        """The path to read for the file name, with every `..` resolved by name; None when it is not allowed."""
        if self.any_file:
            return filename
        path = posixpath.normpath(filename)
        for allowed in self.files:
            if path == allowed or (allowed.endswith("/") and path.startswith(allowed)):
                return path
        return None

    def variable(self, name: str) -> bool:
        """Whether the environment variable may be read."""
        return self.any_environment or name in self.environment


INLINE_ONLY: Final = DataRules()
"""The default for delivered resources: no file and no environment variable."""
