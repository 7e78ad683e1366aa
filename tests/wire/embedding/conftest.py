"""The house of tests/wire/gateway and the clients of tests/wire/disclosure are this folder's too."""

from __future__ import annotations

import sys
from pathlib import Path

WIRE = Path(__file__).resolve().parents[1]
sys.path += [str(WIRE / "gateway"), str(WIRE / "disclosure")]  # pytest knows a folder only once it collects from it
