"""The house of tests/wire/gateway, and the receiver of tests/wire/events, are this folder's too."""

from __future__ import annotations

import sys
from pathlib import Path

for _folder in ("gateway", "events"):  # pytest knows a folder once it collects from it
    sys.path.append(str(Path(__file__).resolve().parents[1] / _folder))
