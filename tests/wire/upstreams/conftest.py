"""The house of tests/wire/gateway with the scripted servers of tests/wire/backends_mcp as its neighbours."""

from __future__ import annotations

import sys
from pathlib import Path

WIRE = Path(__file__).resolve().parents[1]
sys.path += [str(WIRE / "gateway"), str(WIRE / "backends_mcp")]  # pytest knows a folder only once it collects from it
