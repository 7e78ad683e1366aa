"""The access log: lines that hold what is known, in a file that may be moved away; never more waiting than allowed."""

from __future__ import annotations

import json
import pathlib
import threading
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from arion_tds.access_log import AccessLog, Requests, Style
from arion_tds.server import noting

NOW = 1_767_225_600.5


def nothing_lost(count: int) -> None:
    pytest.fail(f"{count} lines were lost")


def logged(path: pathlib.Path, style: Style, *requests: Any, status: int = 200) -> list[str]:
    """The lines that these requests leave."""
    log = AccessLog(str(path), 1 << 20, nothing_lost)
    with log.running():
        for request in requests:
            Requests(log, "a", style, lambda: NOW).served(request, status, 0.0123456)
    return path.read_text().rstrip("\n").split("\n")


def call(**headers: str) -> Any:
    request = make_mocked_request("POST", "/mcp?x=secret", headers={"User-Agent": "tests", **headers})
    request[noting.METHOD] = "tools/call"
    request[noting.TOOL] = "ns.tool"
    request[noting.OUTCOME] = "ok"
    request[noting.REQUEST_ID] = "r-1"
    return request


def test_a_json_line_holds_what_is_known_and_no_query(tmp_path: pathlib.Path) -> None:
    (line,) = logged(tmp_path / "log", "json", call())
    found = json.loads(line)
    assert found.pop("remote", None) is None
    assert found == {
        "time": "2026-01-01T00:00:00.500Z",
        "listener": "a",
        "http_method": "POST",
        "path": "/mcp",
        "status": 200,
        "ms": 12.346,
        "method": "tools/call",
        "tool": "ns.tool",
        "outcome": "ok",
        "request_id": "r-1",
        "user_agent": "tests",
    }


def test_a_text_line_has_every_place_filled(tmp_path: pathlib.Path) -> None:
    lines = logged(tmp_path / "log", "text", call(), make_mocked_request("GET", "/mcp"), status=499)
    assert lines == [
        '[2026-01-01T00:00:00.500Z] "POST /mcp" 499 12.346 a "tools/call" "ns.tool" ok "-" "r-1" "tests" -',
        '[2026-01-01T00:00:00.500Z] "GET /mcp" 499 12.346 a "-" "-" - "-" "-" "-" -',
    ]


def test_a_client_cannot_forge_a_line(tmp_path: pathlib.Path) -> None:
    evil = call()
    evil[noting.METHOD] = 'x"\n[2026] "POST /forged" 200'
    evil[noting.SUBJECT] = "\x1b[31mred\u2028"
    (line,) = logged(tmp_path / "text", "text", evil)
    assert r'"x\"\n[2026] \"POST /forged\" 200"' in line
    assert "\x1b" not in line
    (line,) = logged(tmp_path / "json", "json", evil)
    assert json.loads(line)["method"].startswith('x"\n')


def test_a_file_that_is_moved_away_is_opened_anew(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log"
    log = AccessLog(str(path), 1 << 20, nothing_lost)
    log.write(b"one")
    log._flush()
    path.rename(tmp_path / "log.1")
    log.write(b"two")
    log._flush()
    assert (tmp_path / "log.1").read_text() == "one\n"
    assert path.read_text() == "two\n"
    log._file.close()


def test_lines_beyond_the_buffer_are_dropped_and_counted_and_later_ones_fit_again(tmp_path: pathlib.Path) -> None:
    lost: list[int] = []
    log = AccessLog(str(tmp_path / "log"), 10, lost.append)
    for line in (b"12345", b"1234567", b"1"):
        log.write(line)
    assert lost == [1]
    log._flush()
    log.write(b"123456789")
    log._flush()
    assert (tmp_path / "log").read_text() == "12345\n1\n123456789\n"
    log._file.close()


def test_a_disk_that_takes_nothing_loses_lines_and_says_so_once(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    full = pathlib.Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    lost: list[int] = []
    log = AccessLog(str(full), 1 << 20, lost.append)
    for _ in range(3):
        log.write(b"line")
        log._flush()
    assert lost == [1, 1, 1]
    assert len(caplog.records) == 1
    assert "lines are dropped" in caplog.text
    log._file.close()


def test_a_write_that_hangs_holds_up_nobody_and_the_end_is_bounded(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arion_tds.access_log._END", 0.05)
    lost: list[int] = []
    log = AccessLog(str(tmp_path / "log"), 100, lost.append)
    go = threading.Event()

    class Hung:
        def write(self, _data: bytes) -> None:
            go.wait(10)

        def flush(self) -> None: ...
        def close(self) -> None: ...
        def fileno(self) -> int:
            return real.fileno()

    real = log._file
    log._file = Hung()  # type: ignore[assignment]
    with log.running():
        for _ in range(50):
            log.write(b"123456789")
    assert sum(lost) == 40
    go.set()
    real.close()


def test_a_path_that_cannot_be_opened_fails_at_once(tmp_path: pathlib.Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        AccessLog(str(tmp_path / "nowhere" / "log"), 1 << 20, nothing_lost)
