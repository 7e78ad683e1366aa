"""`arion-tds call NAME [JSON]`: call a tool as a client would, through its listener and all that this checks."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

from arion_tds.cli import asking, showing
from arion_tds.errors import AskError

_Json = dict[str, Any]


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("call", help="call a tool of a running gateway as a client would")
    parser.add_argument("name", metavar="NAME", help="the tool, as clients or control planes call it")
    parser.add_argument(
        "arguments", metavar="JSON", nargs="?", default="{}", help="an object; @FILE reads a file, - standard input"
    )
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="wait this long (default: 60)")
    asking.listener_options(parser)
    asking.token_option(parser)
    asking.options(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Call and show the result. Status 1 when the tool failed."""
    arguments = _arguments(chosen.arguments)
    endpoint, scope = asking.listener(chosen)
    params = {"name": chosen.name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = asking.post(chosen, endpoint, body, chosen.timeout)
    if chosen.json:
        showing.as_json(answer.get("result", answer))
        return 1 if "error" in answer or answer["result"].get("isError") else 0
    if "error" in answer:
        print(showing.clean(answer["error"]["message"]), file=sys.stderr)
        _why(chosen, scope)
        return 1
    return _show(answer["result"])


def _arguments(text: str) -> _Json:
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = pathlib.Path(text[1:]).read_text(encoding="utf-8")
        found = json.loads(text)
    except OSError as error:
        raise AskError(f"{text[1:]}: {error.strerror or error}") from error
    except ValueError as error:
        raise AskError(f'the arguments are not JSON: {error}; write them like \'{{"city": "Osaka"}}\'') from error
    if not isinstance(found, dict):
        raise AskError('the arguments must be a JSON object, like \'{"city": "Osaka"}\'')
    return found


def _show(result: _Json) -> int:
    failed = bool(result.get("isError"))
    out = sys.stderr if failed else sys.stdout
    if "structuredContent" in result and not failed:
        showing.as_json(result["structuredContent"])
        return 0
    for block in result.get("content", ()):
        if block.get("type") == "text":
            print(_lines(block["text"]), file=out)
        else:
            print(f"({block.get('type')}: --json shows it)", file=out)
    return 1 if failed else 0


def _lines(text: str) -> str:
    """A result keeps its lines, and nothing else that steers a terminal."""
    return "\n".join(showing.clean(line) for line in text.splitlines()) if sys.stdout.isatty() else text


def _why(chosen: argparse.Namespace, scope: str) -> None:
    """What the gateway knows of a tool that it does not have."""
    for one in asking.get(chosen, "/explain", {"name": chosen.name, "scope": scope})["answers"]:
        if one["state"] != "served":
            print(showing.clean(one["summary"]), file=sys.stderr)
            for advice in one.get("advice", ()):
                print(f"next: {showing.clean(advice)}", file=sys.stderr)
            if one.get("suggestions"):
                print(f"did you mean: {', '.join(map(showing.clean, one['suggestions']))}", file=sys.stderr)
