"""List pages as gzip: one stream that any reader takes, made once, bounded."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arion_tds.server import guard, packing
from arion_tds.server.packing import Listed, Packer

HEAD = b'{"resultType":"complete","tools":['


def listed(*names: str, size: int = 2000) -> Listed:
    tools = [json.dumps({"name": name, "description": f"{name} " * (size // len(name))}).encode() for name in names]
    return Listed(HEAD, tools, b'],"ttlMs":5000}')


@given(st.one_of(st.integers(), st.text(max_size=300)), st.integers(1, 5))
def test_the_packed_answer_says_what_the_plain_one_says(identity: Any, count: int) -> None:
    page, raw = listed(*(f"tool{number}" for number in range(count))), json.dumps(identity).encode()
    packed = asyncio.run(Packer(1 << 20).pack(page, raw))
    assert packed is not None
    assert json.loads(gzip.decompress(packed)) == json.loads(page.plain(raw))


async def test_it_is_one_member_that_other_programs_read() -> None:
    packed = await Packer(1 << 20).pack(listed("a"), b"7")
    assert packed is not None
    said = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True)  # noqa: ASYNC221
    assert json.loads(said.stdout)["id"] == 7


async def test_the_same_page_is_compressed_once_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    whole = packing._compress
    monkeypatch.setattr(packing, "_compress", lambda key: made.append(1) or whole(key))
    packer, page = Packer(1 << 20), listed("a", "b")
    for number in range(5):
        assert await packer.pack(page, b"%d" % number)
    assert len(made) == 1
    await packer.pack(listed("a", "c"), b"1")
    assert len(made) == 2


async def test_a_large_page_is_compressed_beside_the_loop_and_once_for_all_who_wait() -> None:
    packer, page = Packer(4 << 20), listed("a", "b", size=400_000)
    answers = await asyncio.gather(*(packer.pack(page, b"%d" % number) for number in range(4)))
    assert [json.loads(gzip.decompress(one or b""))["id"] for one in answers] == [0, 1, 2, 3]
    assert packer.held == len(page.plain(b"")) - len(b',"id":}')


async def test_what_was_not_asked_for_longest_makes_room() -> None:
    packer = Packer(3 * 2100)
    one, two, three, four = (listed(name) for name in "abcd")
    for page in (one, two, three, one, four):
        await packer.pack(page, b"1")
    assert packer.held <= 3 * 2100
    assert await packer.pack(one, b"1")
    assert packer.held <= 3 * 2100


async def test_small_answers_huge_pages_and_endless_ids_are_not_packed() -> None:
    packer = Packer(10_000)
    assert await packer.pack(listed("a", size=100), b"1") is None
    assert await packer.pack(listed("a", size=20_000), b"1") is None
    assert await packer.pack(listed("a"), b'"' + b"x" * 65_000 + b'"') is None


@pytest.mark.parametrize(
    ("header", "takes"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("GZIP, deflate, br", True),
        ("br, gzip;q=0.5", True),
        ("br;q=1, gzip; q=0", False),
        ("gzip;q=0.000", False),
        ("*", True),
        ("*, gzip;q=0", False),
        ("identity", False),
        ("x-gzip", True),
    ],
)
def test_accept_encoding_is_read_as_http_says(header: str | None, takes: bool) -> None:
    assert guard.takes_gzip(header) is takes
