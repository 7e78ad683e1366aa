"""A local MCP server that starts in milliseconds: `python upstream_child.py STATE_FOLDER`.

In: files in the folder: `more` (one tool more is served), `crash` (it ends at once). Out: an MCP server of 2025-11-25
on stdin and stdout; a line with its pid in `starts` for every start. Started by the gateway in test_upstreams_stdio.py.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

STATE = Path(sys.argv[1])
INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "child", "version": "1"}}


def result(asked: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None for a method that it does not know."""
    match asked["method"]:
        case "initialize":
            return INFO
        case "tools/list":
            names = ["die", "pid", *(["one_more"] if (STATE / "more").exists() else [])]
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        case "tools/call":
            if asked["params"]["name"] == "die":
                os._exit(9)
            return {"content": [{"type": "text", "text": str(os.getpid())}]}
    return None


def main() -> None:
    with (STATE / "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    if (STATE / "crash").exists():
        sys.exit(3)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        found = result(asked)
        unknown = {"error": {"code": -32601, "message": "Method not found"}}
        answer = {"jsonrpc": "2.0", "id": asked["id"], **(unknown if found is None else {"result": found})}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
