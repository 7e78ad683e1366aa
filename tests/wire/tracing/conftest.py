"""The house of tests/wire/gateway is this folder's too."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "gateway"))  # pytest knows a folder once it collects from it
