"""A few hundred mutated documents; `tests/fuzz/openapi.py` runs as many as wanted."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def fuzz() -> ModuleType:
    """The fuzz target, by its path: it is a command, not part of a package."""
    path = Path(__file__).parent.parent / "fuzz" / "openapi.py"
    spec = importlib.util.spec_from_file_location("fuzz_openapi", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", [1, 2])
def test_a_mutated_document_gives_tools_or_problems_and_never_an_exception(fuzz: ModuleType, seed: int) -> None:
    found = fuzz.run(300, seed)
    assert found["served"] > 50
