"""The operator's page in a real browser: it shows, follows and explains, by keyboard, and breaks no rule of its own.

With ADMIN_SCREENSHOT=docs/admin.png in the environment the picture of the README is taken on the way.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import AsyncIterator

import pytest
from gateway_browser import Page, browser
from gateway_house import House, house, inline, listener, tool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "description": "Where to look"}}}


@pytest.fixture
async def here() -> AsyncIterator[House]:
    async with house(listener("tenant-a"), listener("tenant-b", tool_names="portable")) as made:
        for name, text in (
            ("weather.get_current", "The weather of this hour in a city"),
            ("weather.get_forecast", "The weather of the next days in a city"),
            ("weather.list_alerts", "Warnings that are in force"),
            ("orders.create", "Order something"),
            ("orders.cancel", "<img src=x onerror=alert(1)> takes an order back"),
        ):
            await made.put("McpTool", f"tenant-a/main/{name}", tool(name, text, input_schema=inline(SCHEMA)))
        bad = tool("weather.get_tides", "Tides", rest_backend={"method": "FETCH", "path": "/t", "cluster": "echo"})
        await made.refused("McpTool", "tenant-a/main/weather.get_tides", bad, "FETCH")
        yield made


@pytest.fixture
async def page(here: House, tmp_path: pathlib.Path) -> AsyncIterator[Page]:
    async with browser(tmp_path) as tab:
        await tab.open(f"http://{here.gateway.admin}/")
        await tab.until("document.querySelector('.cards')")
        yield tab
        assert tab.errors == []


async def take_picture(page: Page) -> None:
    """The picture of the README, if it was asked for."""
    path = os.environ.get("ADMIN_SCREENSHOT")
    if path is not None:
        pathlib.Path(path).write_bytes(await page.screenshot())


async def test_it_shows_finds_explains_and_follows(here: House, page: Page) -> None:
    assert "tenant-a/main" in await page.text("main")
    assert (await page.text("#ready"), await page.text("#problems")) == ("ready", "1")
    await page.key("/")
    await page.until("document.activeElement.id === 'query'")
    await page.type("forecast")
    await page.until("document.querySelectorAll('main tbody tr').length === 1")
    assert "weather.get_forecast" in await page.text("main tbody")

    await page.run("document.querySelector('main tbody button').click()")
    await page.until("!document.querySelector('#detail').hidden")
    detail = await page.text("#detail")
    assert "is served from Tool tenant-a/main/weather.get_forecast" in detail
    assert "Where to look" in detail
    await take_picture(page)
    await page.key("Escape")
    await page.until("document.querySelector('#detail').hidden")

    await page.run("document.activeElement.blur()")
    await page.key("?")
    await page.type("weather.get_tides")
    await page.key("Enter")
    await page.until("!document.querySelector('#detail').hidden")
    assert "FETCH" in await page.text("#detail")
    await page.key("Escape")

    await page.run("location.hash = 'problems'")
    await page.until("document.querySelector('main').innerText.includes('get_tides')")
    await here.put("McpTool", "tenant-a/main/weather.get_tides", tool("weather.get_tides", "Tides"))
    await page.until("document.querySelector('main').innerText.includes('Nothing stands rejected')")


async def test_every_page_draws_and_what_was_pushed_is_text(here: House, page: Page) -> None:
    await page.until("document.querySelector('#live').className === 'dot good'")
    for number, expected in enumerate(
        ("Namespaces of tenant-a/main", "orders.cancel", "weather.get_tides", "FETCH", "echo"), start=1
    ):
        await page.key(str(number))
        await page.until(f"document.querySelector('main').innerText.includes({expected!r})")
    await page.key("6")
    await here.put("McpTool", "tenant-b/main/zoo.lion", tool("zoo.lion"))
    await page.until("document.querySelector('main').innerText.includes('+zoo__lion')")
    await page.run("location.hash = 'tools'")
    await page.until("document.querySelector('main').innerText.includes('<img src=x')")
    assert await page.run("document.querySelectorAll('main img').length") == 0


async def test_it_has_a_dark_side_and_names_for_what_can_be_used(page: Page) -> None:
    colours = []
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await page.send("Emulation.setEmulatedMedia", features=features)
        colours.append(await page.run("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(251, 251, 250)", "rgb(20, 23, 26)"]
    await page.key("2")
    await page.until("document.querySelector('#query')")
    nameless = """[...document.querySelectorAll('a, button, input, select')].filter((one) => !(one.innerText.trim()
        || one.getAttribute('aria-label') || one.labels?.length)).map((one) => one.outerHTML)"""
    assert await page.run(nameless) == []
