"""The official MCP suite against a gateway, both revisions: exactly the failures that docs/conformance.md explains."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_conformance import judged

pytestmark = pytest.mark.e2e


def test_what_fails_is_written_down_with_its_reason_and_in_the_page(suite: Path) -> None:
    judged("conformance.run", suite)
