"""Hostile input: none of it crashes, hangs, leaks or reaches what it must not. `make hostile` runs this folder.

One gateway serves all tests of a file: what an attack leaves behind would show in the next test.
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
for folder in ("wire/gateway", "wire/backends_mcp", "wire/auth", "unit/auth", "unit/decode"):
    sys.path.append(str(TESTS / folder))  # pytest knows a folder once it collects from it
