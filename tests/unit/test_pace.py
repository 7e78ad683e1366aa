"""What takes long to import is imported beside the event loop, once."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from arion_tds import pace


async def test_a_module_is_imported_in_a_thread_and_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "takes_long.py").write_text("import threading\nwhere = threading.current_thread()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(pace, "_loaded", set())
    await pace.load("takes_long")
    assert sys.modules["takes_long"].where is not threading.current_thread()
    monkeypatch.delitem(sys.modules, "takes_long")
    await pace.load("takes_long")
    assert "takes_long" not in sys.modules
