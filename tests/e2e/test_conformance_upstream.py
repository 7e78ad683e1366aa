"""The official MCP suite behind a gateway, whose client it is: exactly the failures that docs/upstreams.md explains."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_conformance import judged

pytestmark = pytest.mark.e2e


def test_what_fails_is_written_down_with_its_reason_and_in_the_page(suite: Path) -> None:
    judged("conformance.upstream", suite)
