"""The kinds of value that config keys have: durations, addresses, references to secrets. Used by config.file."""

from __future__ import annotations

import os
import pathlib
import re
from typing import Annotated

import pydantic
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from arion_tds.config.sharing import split_address

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)?\s*\Z")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


def _seconds(value: object) -> object:
    if isinstance(value, str):
        found = _DURATION.match(value)
        if found is None:
            msg = f"{value!r} is not a duration: write 15s, 250ms, 5m or a number of seconds"
            raise ValueError(msg)
        return float(found.group(1)) * _UNIT[found.group(2)]
    return value


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0)]
"""Seconds; `15s`, `250ms`, `5m`, `1h` or a number in the file."""

Pause = Annotated[float, BeforeValidator(_seconds), Field(ge=0)]
"""Seconds that may be none."""

Share = Annotated[float, Field(ge=0, le=1)]
"""From nothing (0) to all (1)."""


def _address(value: str) -> str:
    split_address(value)
    return value


Address = Annotated[str, pydantic.AfterValidator(_address)]


class Model(BaseModel):
    """Frozen, and strict about unknown keys."""

    # The texts under the fields are for scripts/gen_docs.py: pydantic would read the sources for them at each start.
    model_config = ConfigDict(extra="forbid", frozen=True)


class Secret(Model):
    """A secret by reference: exactly one of `file` and `environment`."""

    file: str | None = None
    """Path of a file that holds it."""
    environment: str | None = None
    """Name of the environment variable that holds it."""

    @pydantic.model_validator(mode="after")
    def _one(self) -> Secret:
        if (self.file is None) == (self.environment is None):
            msg = "name exactly one of `file` and `environment`"
            raise ValueError(msg)
        return self

    def read(self) -> bytes:
        """The secret's bytes, without surrounding white space. OSError or KeyError when it is not there."""
        if self.file is not None:
            return pathlib.Path(self.file).read_bytes().strip()
        return os.environb[(self.environment or "").encode()].strip()
