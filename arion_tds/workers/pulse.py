"""Whether a worker lives: it is asked several times within the time it has, and hangs when all of that went unanswered.

Pure. Called by supervisor. It counts questions and looks at no clock: where supervisor and worker were stopped together
(a frozen container, a laptop that slept), one question at most has gone without its answer, however long that took.
"""

from __future__ import annotations

from typing import Final

TRIES: Final = 4
"""Questions within the time that a worker has to answer one."""


class Pulse:
    """Of one worker."""

    __slots__ = ("_missed",)

    def __init__(self) -> None:
        self._missed = -1  # nothing has been asked yet

    def answered(self) -> None:
        """It has said something."""
        self._missed = -1

    def beats(self) -> bool:
        """To be called before each question: whether there is to be one. False: it hangs."""
        self._missed += 1
        return self._missed < TRIES
