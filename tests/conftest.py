"""What holds for all tests: none of them asserts a time, examples of hypothesis neither."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
