"""Conversations with the pure session, ready to begin."""

from __future__ import annotations

import pytest
from xds_talk import Talk


@pytest.fixture
def talk() -> Talk:
    """One scope, `s/m`, in wildcard mode; the first stream is open and every type was asked for."""
    made = Talk()
    made.opens()
    return made


@pytest.fixture
def new_talk() -> type[Talk]:
    return Talk
