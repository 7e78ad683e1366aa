"""An answer means the same however the network cuts it into pieces."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arion_tds.backends.reading import MAX_HEAD, Headers, Loss, Reading


class Heard:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Headers = []
        self.bodiless = False
        self.text = b""
        self.ended = 0

    def head(self, status: int, headers: Headers, *, bodiless: bool) -> None:
        self.status, self.headers, self.bodiless = status, headers, bodiless

    def body(self, data: bytes) -> None:
        assert self.status, "a body before its head"
        self.text += data

    def end(self) -> None:
        self.ended += 1

    def lost(self, loss: Loss, *, stale: bool) -> None:
        raise AssertionError(loss, stale)


def read(answer: bytes, cuts: list[int] | None = None, *, bare: bool = False) -> tuple[Heard, Reading, Loss | None]:
    """What one answer comes to, cut at these places."""
    heard, reading = Heard(), Reading()
    reading.begin(heard, bare=bare)
    places = sorted({0, len(answer), *(cut % (len(answer) + 1) for cut in cuts or ())})
    for start, end in itertools.pairwise(places):
        loss = reading.feed(answer[start:end])
        if loss is not None:
            return heard, reading, loss
    return heard, reading, None


CHUNKED = (
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nX-Empty:\r\nX-Two: a\r\nX-Two: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"4;more=1\r\nwiki\r\n6\r\npedia \r\n0\r\nX-Trailer: t\r\n\r\n"
)


@given(st.lists(st.integers(0, 1000), max_size=12))
def test_interim_answers_chunks_and_trailers_come_to_one_answer(cuts: list[int]) -> None:
    heard, reading, loss = read(CHUNKED, cuts)
    assert loss is None
    assert (heard.status, heard.text) == (200, b"wikipedia ")
    assert heard.headers == [("x-empty", ""), ("x-two", "a"), ("x-two", "b"), ("transfer-encoding", "chunked")]
    assert reading.complete
    assert reading.finish()


@given(st.lists(st.integers(0, 1000), max_size=6))
def test_without_a_length_the_end_of_the_connection_ends_the_answer(cuts: list[int]) -> None:
    heard, reading, loss = read(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nall there is", cuts)
    assert loss is None
    assert heard.text == b"all there is"
    assert (reading.complete, reading.ends_with_connection, reading.finish()) == (False, True, False)


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok and more", False),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", True),
    ],
    ids=["kept", "closed", "1.0", "1.0 kept", "another answer", "garbage", "garbage at the end", "bare line feeds"],
)
def test_what_may_follow_on_the_connection(answer: bytes, *, again: bool) -> None:
    heard, reading, loss = read(answer)
    assert loss is None
    assert reading.complete
    assert heard.text == b"ok"
    assert reading.finish() is again


def test_blanks_around_a_value_are_not_its_own() -> None:
    heard, _, _ = read(b"HTTP/1.1 200 OK\r\nX: \t a b \t\r\nY: \xa0\r\nContent-Length:  0 \r\n\r\n")
    assert heard.headers == [("x", "a b"), ("y", "\udca0"), ("content-length", "0")]


def test_an_answer_to_head_ends_with_its_head_and_the_next_one_is_read() -> None:
    heard, reading, loss = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", bare=True)
    assert loss is None
    assert (heard.bodiless, reading.complete, reading.finish()) == (True, True, True)
    following = Heard()
    reading.begin(following, bare=False)
    assert reading.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nthere") is None
    assert following.text == b"there"


def test_a_body_after_the_answer_to_head_spoils_the_connection() -> None:
    _, reading, loss = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nthere", bare=True)
    assert loss is None
    assert not reading.finish()


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_never_have_a_body(status: int) -> None:
    heard, reading, _ = read(b"HTTP/1.1 %d X\r\nX: y\r\n\r\n" % status)
    assert (heard.bodiless, reading.complete, reading.finish()) == (True, True, True)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 099 Little\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=[
        "another protocol",
        "bad length",
        "two lengths",
        "length and chunks",
        "bad chunk",
        "upgrade",
        "no header",
        "0",
        "99",
    ],
)
def test_what_is_no_answer_is_told(answer: bytes) -> None:
    assert read(answer)[2] is Loss.MALFORMED


@given(st.lists(st.integers(0, MAX_HEAD * 2), max_size=3))
def test_a_head_is_too_long_however_it_arrives(cuts: list[int]) -> None:
    answer = b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * (MAX_HEAD + 1) + b"\r\nContent-Length: 0\r\n\r\n"
    heard, _, loss = read(answer, cuts)
    assert (heard.status, loss) == (0, Loss.LONG_HEAD)


def test_a_head_that_just_fits_is_read_with_a_body_behind_it() -> None:
    filling = b"x" * (MAX_HEAD - 2 * 32 - len("xcontent-length6"))
    heard, _, loss = read(b"HTTP/1.1 200 OK\r\nx: " + filling + b"\r\nContent-Length: 6\r\n\r\nbehind")
    assert (heard.status, heard.text, loss) == (200, b"behind", None)


def test_too_many_headers_are_too_long_a_head() -> None:
    headers = b"A: b\r\n" * (MAX_HEAD // 34 + 1)
    assert read(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n")[2] is Loss.LONG_HEAD
    assert read(b"HTTP/1.1 200 OK\r\n" + headers[6:] + b"\r\n")[2] is None


def test_interim_answers_without_end_are_too_long_a_head() -> None:
    one = b"HTTP/1.1 102 Processing\r\nX: " + b"y" * 1000 + b"\r\n\r\n"
    reading = Reading()
    reading.begin(Heard(), bare=False)
    losses = [reading.feed(one) for _ in range(MAX_HEAD // 1000 + 1)]
    assert losses[-1] is Loss.LONG_HEAD


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=4))
def test_no_bytes_make_it_fail_otherwise(garbage: bytes, cuts: list[int]) -> None:
    for answer in (
        garbage,
        b"HTTP/1.1 200 OK\r\n" + garbage,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + garbage,
    ):
        read(answer, cuts)
