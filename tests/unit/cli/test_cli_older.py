"""The commands ask a gateway of another version: what it does not say is a dash or a sentence, never a traceback."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from arion_tds.cli.main import main


class Older:
    """A gateway that answers as it is told to."""

    def __init__(self) -> None:
        self.pages: dict[str, Any] = {}
        self.stream = b""
        older = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                body = older.stream if path == "/events" else json.dumps(older.pages[path]).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.admin = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def older() -> Iterator[Older]:
    made = Older()
    serving = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    yield made
    made.server.shutdown()
    serving.join()
    made.server.server_close()


def test_status_has_a_dash_for_what_an_older_gateway_does_not_say(
    older: Older, capsys: pytest.CaptureFixture[str]
) -> None:
    older.pages["/status"] = {
        "ready": True,
        "control_plane": {"address": "plane:1", "connected": False},
        "workers": [{"worker": 0, "pid": 7}],
        "listeners": {"a": {"address": "127.0.0.1:1", "scope": "a/main"}},
        "scopes": [{"scope": "a/main", "tools": 3, "namespaces": {"ns": {}}}, {}],
        "mcp_servers": [{"url": "http://up", "state": "failing"}, {}],
        "pending_servers": [{}],
        "clusters": [{"name": "c", "endpoints": [{"down": True}, {}]}, {}],
    }
    assert main(["status", "--admin", older.admin]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "arion-tds -: ready",
        "control plane plane:1: away, - tries; what it sent stays served",
        "0\t7\t-\tgeneration -\t-\t-",
        "a\t-\ta/main\t-\t-",
        "a/main\t3\t-\t-\tns (-, -)",
        "-\t-\t-\t-\t",
        "MCP server http://up\t- (- ago)",
        "MCP server of -/-\tasked - times",
        "cluster c, -\t-",
    ]
    older.pages["/status"] = {}
    assert main(["status", "--admin", older.admin]) == 1
    assert capsys.readouterr().out.splitlines() == ["arion-tds -: not ready", "control plane: none is configured"]


@pytest.mark.parametrize(
    "command", [["tools"], ["explain", "x"], ["problems"], ["call", "x", "--listener", "a"], ["search", "x"]], ids=str
)
def test_what_a_command_cannot_do_without_is_a_sentence(
    older: Older, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    older.pages = {"/status": {"listeners": {"a": {"scope": "a/main"}}}, "/explain": {}, "/problems": {}}
    assert main([*command, "--admin", older.admin]) == 1
    said = capsys.readouterr().err
    assert "does not say " in said
    assert "is it older than this arion-tds" in said


def test_an_event_without_what_is_shown_of_it_is_shown_as_it_came(
    older: Older, capsys: pytest.CaptureFixture[str]
) -> None:
    older.stream = b'id: 1\nevent: catalog\ndata: {"scope": "a/main"}\n\n'
    assert main(["watch", "--limit", "1", "--admin", older.admin]) == 0
    assert capsys.readouterr().out.strip() == 'catalog {"scope": "a/main"}'
