"""List pages as gzip and zstd: one stream that any reader takes, made once, bounded."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arion_tds.server import guard, packing
from arion_tds.server.guard import Coding
from arion_tds.server.packing import Listed, Packer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

READERS: dict[Coding, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "zstd": zstd.decompress}

HEAD = b'{"resultType":"complete","tools":['


def listed(*names: str, size: int = 2000) -> Listed:
    tools = [json.dumps({"name": name, "description": f"{name} " * (size // len(name))}).encode() for name in names]
    return Listed(HEAD, tools, b'],"ttlMs":5000}')


@given(st.one_of(st.integers(), st.text(max_size=300)), st.integers(1, 5), st.sampled_from(sorted(READERS)))
def test_the_packed_answer_says_what_the_plain_one_says(identity: Any, count: int, coding: Coding) -> None:
    page, raw = listed(*(f"tool{number}" for number in range(count))), json.dumps(identity).encode()
    packed = asyncio.run(Packer(1 << 20).pack(coding, page, raw))
    assert packed is not None
    assert json.loads(READERS[coding](packed)) == json.loads(page.plain(raw))


async def test_it_is_one_frame_with_an_end() -> None:
    packed = await Packer(1 << 20).pack("zstd", listed("a"), b"7")
    assert packed is not None
    reader = zstd.ZstdDecompressor()
    assert json.loads(reader.decompress(packed))["id"] == 7
    assert (reader.eof, reader.unused_data) == (True, b"")
    begun = zstd.ZstdDecompressor()
    begun.decompress(packed[:-1])
    assert not begun.eof


async def test_it_is_one_member_that_other_programs_read() -> None:
    packed = await Packer(1 << 20).pack("gzip", listed("a"), b"7")
    assert packed is not None
    said = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True)  # noqa: ASYNC221
    assert json.loads(said.stdout)["id"] == 7


async def test_the_same_page_is_compressed_once_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    whole = packing._compress
    monkeypatch.setattr(packing, "_compress", lambda *key: made.append(1) or whole(*key))
    packer, page = Packer(1 << 20), listed("a", "b")
    for number in range(5):
        assert await packer.pack("gzip", page, b"%d" % number)
    assert len(made) == 1
    await packer.pack("gzip", listed("a", "c"), b"1")
    assert len(made) == 2
    for number in range(5):
        assert await packer.pack("zstd", page, b"%d" % number)
    assert len(made) == 3


async def test_a_large_page_is_compressed_beside_the_loop_and_once_for_all_who_wait() -> None:
    packer, page = Packer(4 << 20), listed("a", "b", size=400_000)
    answers = await asyncio.gather(*(packer.pack("gzip", page, b"%d" % number) for number in range(4)))
    assert [json.loads(gzip.decompress(one or b""))["id"] for one in answers] == [0, 1, 2, 3]
    assert packer.held == len(page.plain(b"")) - len(b',"id":}')


async def test_what_was_not_asked_for_longest_makes_room() -> None:
    packer = Packer(3 * 2100)
    one, two, three, four = (listed(name) for name in "abcd")
    for page in (one, two, three, one, four):
        await packer.pack("gzip", page, b"1")
    assert packer.held <= 3 * 2100
    assert await packer.pack("gzip", one, b"1")
    assert packer.held <= 3 * 2100


async def test_small_answers_huge_pages_and_endless_ids_are_not_packed() -> None:
    packer = Packer(10_000)
    assert await packer.pack("gzip", listed("a", size=100), b"1") is None
    assert await packer.pack("gzip", listed("a", size=20_000), b"1") is None
    assert await packer.pack("gzip", listed("a"), b'"' + b"x" * 65_000 + b'"') is None


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_an_answer_joins_any_number_of_definitions(count: int) -> None:
    page = Listed(b'{"tools":[', [b'{"n":%d}' % number for number in range(count)], b"]}")
    for answer in (page.plain(b"1"), b"".join(Packer(0).pieces(page, b"1"))):
        assert json.loads(answer)["result"] == {"tools": [{"n": number} for number in range(count)]}


def test_a_page_is_put_together_once_for_those_who_ask_again_and_again() -> None:
    packer, page, other = Packer(0), listed("a", "b"), listed("c")
    pieces = [packer.pieces(one, b"%d" % number) for number, one in enumerate((page, page, page, other, page))]
    assert [json.loads(b"".join(one))["id"] for one in pieces] == [0, 1, 2, 3, 4]
    assert pieces[1][1] is pieces[2][1]
    assert json.loads(b"".join(pieces[3]))["result"]["tools"][0]["name"] == "c"
    assert len(json.loads(b"".join(pieces[4]))["result"]["tools"]) == 2


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        (None, None),
        ("", None),
        ("gzip", "gzip"),
        ("GZIP, deflate, br", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd;q=0.5, gzip", "gzip"),
        ("zstd;q=0.5, gzip;q=0.2", "zstd"),
        ("zstd;q=0, gzip", "gzip"),
        ("ZSTD", "zstd"),
        ("br, gzip;q=0.5", "gzip"),
        ("br;q=1, gzip; q=0", None),
        ("gzip;q=0.000", None),
        ("gzip;q=x", "gzip"),
        ("*", "gzip"),
        ("*, gzip;q=0", None),
        ("identity", None),
        ("x-gzip", "gzip"),
    ],
)
def test_accept_encoding_is_read_as_http_says(header: str | None, coding: str | None) -> None:
    assert guard.coding(header) == coding
