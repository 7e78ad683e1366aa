"""A headless Chromium that looks at the operator's page, driven over its DevTools protocol.

In: a URL, expressions, keys. Out: what the page says, and every error that its console had. Skips where there is no
Chromium.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import pathlib
import re
import shutil
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

BOUND = 30.0
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-default-apps", "--disable-extensions", "--disable-sync", "--no-first-run",
    "--no-default-browser-check", "--mute-audio", "--remote-debugging-port=0", "--window-size=1200,760",
)  # fmt: skip


class Page:
    """One tab. `errors`: exceptions, refused resources and violations of the page's policy."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.errors: list[str] = []
        self._socket = socket
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self._answers: dict[int, asyncio.Future[Any]] = {}

    async def read(self) -> None:
        """Take what the browser says, until it ends."""
        async for message in self._socket:
            said = json.loads(message.data)
            waiting = self._answers.pop(said.get("id", 0), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(said)
            elif said.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(said["params"]["exceptionDetails"])[:500])
            elif said.get("method") == "Log.entryAdded" and said["params"]["entry"]["level"] == "error":
                self.errors.append(said["params"]["entry"]["text"])

    async def send(self, method: str, **params: Any) -> Any:
        """One command; its result."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        session = {} if self._session is None else {"sessionId": self._session}
        await self._socket.send_json({"id": number, "method": method, "params": params, **session})
        async with asyncio.timeout(BOUND):
            said = await self._answers[number]
        assert "error" not in said, said
        return said["result"]

    async def open(self, url: str) -> None:
        """Show the URL in a new tab."""
        target = await self.send("Target.createTarget", url="about:blank")
        attached = await self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await self.send(f"{domain}.enable")
        await self.send("Page.navigate", url=url)

    async def run(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        result = await self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until the expression holds; the page looks again every 20 ms."""
        look = f"const look = () => ({expression}) ? done(true) : setTimeout(look, 20)"
        wait = f"new Promise((done) => {{ {look}; look(); }})"
        try:
            await self.run(wait)
        except TimeoutError:
            pytest.fail(f"{expression} did not come true; the page says: {await self.text()}; errors: {self.errors}")

    async def text(self, selector: str = "body") -> str:
        """What stands there."""
        found = await self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        assert isinstance(found, str)
        return found

    async def key(self, key: str) -> None:
        """Press and let go."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Escape": 27, "Tab": 9}.get(key, ord(key[0]))
        await self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        await self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    async def type(self, text: str) -> None:
        """Type into what has the focus."""
        await self.send("Input.insertText", text=text)

    async def screenshot(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode((await self.send("Page.captureScreenshot", format="png"))["data"])


def chromium() -> str:
    """The browser's command; skips the test where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("Chromium is not installed")
    return found


@contextlib.asynccontextmanager
async def browser(folder: pathlib.Path) -> AsyncIterator[Page]:
    """A browser with a profile of its own in the folder."""
    command = (chromium(), *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank")
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=nothing, stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        async with asyncio.timeout(BOUND):
            address = None
            while address is None:
                line = (await process.stderr.readline()).decode()
                assert line, "the browser ended before it could be spoken to"
                address = re.search(r"ws://\S+", line)
        reading = asyncio.create_task(_away(process.stderr))
        async with aiohttp.ClientSession() as http, http.ws_connect(address.group(), max_msg_size=0) as socket:
            page = Page(socket)
            listening = asyncio.create_task(page.read())
            try:
                yield page
            finally:
                listening.cancel()
        reading.cancel()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _away(stream: asyncio.StreamReader) -> None:
    """Read and forget: a full pipe would stop the browser."""
    while await stream.read(1 << 16):
        pass
