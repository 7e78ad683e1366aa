"""The line between a worker and its supervisor."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest

from arion_tds.workers import role
from arion_tds.workers.role import Line, Role

PLACE = Role(1, 2, Path("/tmp/somewhere"), b"\0secret of thirty-two bytes......", patient=True)


def test_a_place_arrives_as_it_was_sent_and_its_key_is_in_no_repr() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(PLACE.encode() + role.message(order=role.RELOAD))
        assert Line(theirs).role() == PLACE
    assert b"secret" not in repr(PLACE).encode()
    assert not PLACE.leads
    assert PLACE.socket(0) == "/tmp/somewhere/0.sock"


def test_a_supervisor_that_says_nothing_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.close()
        with pytest.raises(OSError, match="said nothing"):
            Line(theirs).role()


async def test_orders_come_in_their_order_and_the_end_of_the_line_is_the_last() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        obeyed: list[str] = []
        whole = role.message(order=role.RELOAD) + role.message(order=role.STOP)
        hearing = asyncio.create_task(Line(theirs).orders(obeyed.append))
        ours.sendall(whole[:25])
        await asyncio.sleep(0)
        ours.sendall(whole[25:])
        ours.close()
        async with asyncio.timeout(10):
            await hearing
        assert obeyed == [role.RELOAD, role.STOP, role.STOP, role.HURRY]


def test_what_is_told_are_lines_of_json_of_a_bounded_length() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        line = Line(theirs)
        line.state(serving=True, patience=12.5, timeout=30.0)
        line.lives()
        line.refused(["x" * role.MAX_LINE], bind=False)
        line.refused(["listener 'a': taken"], bind=True)
        said = [json.loads(one) for one in ours.recv(1 << 16).splitlines()]
    assert said == [
        {"serving": True, "patience": 12.5, "timeout": 30.0},
        {"lives": True},
        {"refused": ["too many mistakes to tell"], "bind": False},
        {"refused": ["listener 'a': taken"], "bind": True},
    ]
