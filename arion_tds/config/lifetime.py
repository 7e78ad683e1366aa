"""Keys of gateway.yaml that say how a process comes, changes and goes: cache, reload, drain. Part of config.file."""

from __future__ import annotations

import pathlib

import pydantic
from pydantic import Field

from arion_tds.config.values import Model


class CacheConfig(Model):
    """Accepted resources kept on disk: a restarted gateway serves them before, or without, its control plane."""

    directory: str
    """Absolute path of a directory of this gateway's own; made when it is missing, for its owner alone."""
    max_bytes: int = Field(default=1 << 30, ge=1 << 20)
    """Largest file; what would go beyond is not kept."""

    @pydantic.field_validator("directory")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if not pathlib.PurePath(value).is_absolute() or "\0" in value:
            msg = f"{value!r} is not an absolute path"
            raise ValueError(msg)
        return value


class ReloadConfig(Model):
    """When the file is read again. SIGHUP always does it; a file with mistakes changes nothing."""

    watch: bool = False
    """Also when the file changes; it is looked at every second."""
