"""The type of what a third party's document or a caller's arguments hold: any JSON value, unchecked."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""dict, list, str, int, float, bool or None; whoever reads one narrows it first."""
