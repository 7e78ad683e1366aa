"""Compressed bodies are decoded up to the limit and no further."""

from __future__ import annotations

import gzip
import zlib

import pytest

from arion_tds.inflate import Body, TooLarge, supported


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("", b"hello " * 100),
        ("identity", b"hello " * 100),
        ("gzip", gzip.compress(b"hello " * 100)),
        (" X-GZip ", gzip.compress(b"hello " * 100)),
        ("gzip", gzip.compress(b"hello " * 50) + gzip.compress(b"hello " * 50) + b"\0" * 5),
        ("deflate", zlib.compress(b"hello " * 100)),
        ("deflate", raw_deflate(b"hello " * 100)),
    ],
    ids=["none", "identity", "gzip", "x-gzip", "two members and padding", "zlib", "deflate without header"],
)
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_a_body_is_whole_again_however_it_was_packed_and_cut(encoding: str, packed: bytes, step: int) -> None:
    assert supported(encoding)
    body = Body(600, encoding)
    for at in range(0, len(packed), step):
        body.feed(packed[at : at + step])
    assert body.whole() == b"hello " * 100


def test_the_limit_counts_decoded_bytes_exactly() -> None:
    fits = Body(1000, "gzip")
    fits.feed(gzip.compress(b"x" * 1000))
    assert fits.whole() == b"x" * 1000
    with pytest.raises(TooLarge):
        Body(999, "gzip").feed(gzip.compress(b"x" * 1000))
    with pytest.raises(TooLarge):
        Body(999).feed(b"x" * 1000)


def test_a_bomb_is_stopped_without_unpacking_it() -> None:
    bomb = gzip.compress(bytes(50 << 20), 9)
    with pytest.raises(TooLarge):
        Body(1 << 20, "gzip").feed(bomb)


def test_members_that_unpack_to_nothing_also_count() -> None:
    with pytest.raises(TooLarge):
        Body(100, "gzip").feed(gzip.compress(b"") * 1000)


def test_a_body_that_ends_early_is_not_whole() -> None:
    body = Body(1000, "gzip")
    body.feed(gzip.compress(b"x" * 500)[:-4])
    assert body.whole() is None


def test_what_is_not_packed_as_it_says_is_an_error() -> None:
    with pytest.raises(zlib.error):
        Body(1000, "gzip").feed(b"plain text")


def test_an_empty_body_is_whole() -> None:
    assert Body(10, "gzip").whole() == b""


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip"])
def test_other_encodings_are_not_supported(encoding: str) -> None:
    assert not supported(encoding)
