"""What is kept while the gateway runs, and what the next life is told about it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from arion_tds.cache import keeping
from arion_tds.cache.keeping import Cache, Origin, Restored
from arion_tds.cache.store import FILE
from arion_tds.model.delivery import Delivered, Kind, ResourceId

TOOL = Kind.TOOL
PLANE = Origin("plane:1", "arion")


def one(name: str, version: str = "1", scope: str = "s/m", payload: bytes = b"tool") -> Delivered:
    return Delivered(ResourceId(scope, name), version, payload)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Life:
    """A process that keeps things in `directory`."""

    def __init__(self, directory: Path, origin: Origin = PLANE) -> None:
        self.directory = directory
        self.origin = origin
        self.clock = Clock()
        self.connected = True

    @contextlib.asynccontextmanager
    async def begins(self, *scopes: str) -> AsyncIterator[tuple[Cache, Restored]]:
        cache = Cache(str(self.directory), 1 << 20, self.origin, clock=self.clock, connected=lambda: self.connected)
        restored = await cache.open(scopes or ("s/m",))
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            task = group.create_task(cache.run())
            try:
                yield cache, restored
            finally:
                task.cancel()
                await cache.close()

    async def finds(self, *scopes: str) -> Restored:
        """A process that only looks."""
        async with self.begins(*scopes) as (_, restored):
            return restored


def names(restored: Restored) -> list[str]:
    return sorted(f"{found.id} {found.version}" for found in restored.kept.resources[TOOL])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - the thread that writes tells nobody
            await asyncio.sleep(0.01)


async def until_written(cache: Cache, batches: int) -> None:
    await until(lambda: cache.status().written >= batches)


async def test_what_was_accepted_last_is_there_in_the_next_life(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.begins() as (cache, restored):
        assert (restored.age, restored.kept.resources.get(TOOL, ())) == (None, ())
        for version in ("1", "2"):
            cache.put(TOOL, one("x.a", version))
        cache.put(TOOL, one("x.b"))
        cache.remove(TOOL, one("x.b").id)
        cache.listed("http://a/mcp", (b"{}",))
    found = await life.finds()
    assert names(found) == ["s/m/x.a 2"]
    assert found.kept.listings == {"http://a/mcp": (b"{}",)}


async def test_changes_are_written_while_the_gateway_runs_a_few_at_a_time(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.begins() as (cache, _):
        for number in range(100):
            cache.put(TOOL, one(f"x.t{number}"))
        await until_written(cache, 1)
        assert len(names(await Life(tmp_path).finds())) == 100
        assert cache.status().pending_bytes == 0


async def test_its_age_counts_from_when_the_control_plane_was_last_connected(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.begins() as (cache, _):
        cache.complete(["s/m"])
    life.clock.now += 50
    life.connected = False
    async with life.begins() as (cache, restored):
        assert restored.age == 50
        cache.put(TOOL, one("x.a"))
    life.clock.now += 10
    assert (await life.finds()).age == 60


async def test_a_scope_is_complete_when_everything_of_it_was_there_once(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.begins("s/m", "t/m") as (cache, restored):
        assert restored.complete == frozenset()
        cache.put(TOOL, one("x.a"))
    assert (await life.finds("s/m", "t/m")).complete == frozenset()
    async with life.begins("s/m", "t/m") as (cache, _):
        cache.complete(["s/m", "t/m"])
    assert (await life.finds("s/m", "u/m")).complete == {"s/m"}


async def test_what_is_kept_of_other_scopes_is_forgotten(tmp_path: Path) -> None:
    async with Life(tmp_path).begins("s/m", "t/m") as (cache, _):
        cache.put(TOOL, one("x.a"))
        cache.put(TOOL, one("x.a", scope="t/m"))
    assert names(await Life(tmp_path).finds("t/m")) == ["t/m/x.a 1"]
    assert names(await Life(tmp_path).finds("s/m", "t/m")) == ["t/m/x.a 1"]


async def test_a_scope_that_is_dropped_while_running_is_forgotten_even_what_is_not_yet_written(tmp_path: Path) -> None:
    async with Life(tmp_path).begins("s/m", "t/m") as (cache, _):
        cache.put(TOOL, one("x.a"))
        await until_written(cache, 1)
        cache.put(TOOL, one("x.b"))
        cache.put(TOOL, one("x.a", scope="t/m"))
        cache.forget("s/m")
    assert names(await Life(tmp_path).finds("s/m", "t/m")) == ["t/m/x.a 1"]


async def test_content_of_another_fleet_is_not_served_and_of_another_address_not_trusted(tmp_path: Path) -> None:
    async with Life(tmp_path).begins() as (cache, _):
        cache.put(TOOL, one("x.a"))
    assert (await Life(tmp_path).finds()).trusted
    moved = await Life(tmp_path, Origin("plane:2", "arion")).finds()
    assert (moved.trusted, names(moved)) == (False, ["s/m/x.a 1"])
    assert (await Life(tmp_path, Origin("plane:2", "other")).finds()).kept.resources == {}
    assert names(await Life(tmp_path, Origin("plane:2", "other")).finds()) == []


async def test_what_comes_from_the_disk_is_not_written_again(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.begins() as (cache, _):
        cache.put(TOOL, one("x.a"))
    async with life.begins() as (cache, restored):
        cache.put(TOOL, *restored.kept.resources[TOOL])
        assert cache.status().pending_bytes == 0


async def test_more_than_can_wait_is_left_out_and_counted_and_the_older_version_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Life(tmp_path).begins() as (cache, _):
        cache.put(TOOL, one("x.a"))
        await until_written(cache, 1)
        monkeypatch.setattr(keeping, "MAX_PENDING", 10)
        cache.put(TOOL, one("x.a", "2", payload=b"too much to wait"))
        cache.complete(["s/m"])
        assert cache.status().left_out == 1
    found = await Life(tmp_path).finds()
    assert (names(found), found.complete) == (["s/m/x.a 1"], frozenset())


async def test_a_disk_that_refuses_is_tried_again_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeping, "AGAIN", 0.05)
    async with Life(tmp_path).begins() as (cache, _):
        await until_written(cache, 1)
        cache._store.close()
        cache.put(TOOL, one("x.a"))
        cache.put(TOOL, one("x.b"))
        await until(lambda: cache.status().last_error != "")
        cache.put(TOOL, one("x.a", "2"))
        cache.remove(TOOL, one("x.b").id)
        cache._store._open()
        await until_written(cache, 2)
        assert (cache.status().last_error, cache.status().pending_bytes) == ("", 0)
    assert names(await Life(tmp_path).finds()) == ["s/m/x.a 2"]
    assert [r.message for r in caplog.records if r.levelno == logging.WARNING and "not kept on disk" in r.message]


async def test_a_damaged_file_and_a_bad_directory_are_said_and_cost_no_start(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"rubbish" * 1000)
    async with Life(tmp_path).begins() as (cache, restored):
        assert restored.complete == frozenset()
        assert "damaged-1" in cache.status().last_error
    (tmp_path / "file").write_text("")
    async with Life(tmp_path / "file").begins() as (cache, restored):
        cache.put(TOOL, one("x.a"))
        cache.remove(TOOL, one("x.a").id)
        assert restored == Restored()
        assert "nothing is kept on disk" in cache.status().last_error
