"""The house of tests/wire/gateway and the issuer of tests/unit/auth are this folder's too."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path.append(str(TESTS / "wire" / "gateway"))  # pytest knows a folder once it collects from it
sys.path.append(str(TESTS / "unit" / "auth"))
