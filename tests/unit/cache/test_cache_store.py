"""The file: what goes in comes out, and what is damaged is set aside."""

from __future__ import annotations

import dataclasses
import sqlite3
from pathlib import Path

import pytest

from arion_tds.cache.kept import Batch, Kept
from arion_tds.cache.store import FILE, MAX_DAMAGED, Store
from arion_tds.model.delivery import CATALOG, Delivered, Kind, ResourceId

BOUND = 1 << 20


def one(name: str, version: str = "1", payload: bytes = b"\n\x03abc", scope: str = "s/m") -> Delivered:
    return Delivered(ResourceId(scope, name), version, payload)


def batch(*resources: Delivered, kind: Kind = Kind.TOOL) -> Batch:
    return Batch({(kind, found.id): found for found in resources})


def written(directory: Path, *batches: Batch) -> None:
    """A process that keeps the batches and ends."""
    store = Store(directory, BOUND)
    store.open()
    for each in batches:
        store.write(each)
    store.close()


def reread(directory: Path) -> Kept:
    """What the next process finds."""
    store = Store(directory, BOUND)
    try:
        return store.open()
    finally:
        store.close()


def names(kept: Kept, kind: Kind = Kind.TOOL) -> list[tuple[str, str]]:
    return sorted((found.id.name, found.version) for found in kept.resources[kind])


def test_every_type_comes_back_with_id_version_and_payload(tmp_path: Path) -> None:
    for kind in CATALOG:
        written(tmp_path, batch(one("x.a/b", "", bytes(range(256))), one("x.é", "v-2", b"", scope="t/m"), kind=kind))
    kept = reread(tmp_path)
    for kind in CATALOG:
        assert [dataclasses.replace(found, kept=False) for found in kept.resources[kind]] == [
            one("x.a/b", "", bytes(range(256))),
            one("x.é", "v-2", b"", scope="t/m"),
        ]
        assert all(found.kept for found in kept.resources[kind])
    assert kept.damage == ""


def test_the_newest_version_stands_and_what_is_gone_is_gone(tmp_path: Path) -> None:
    gone = ResourceId("s/m", "x.b")
    written(tmp_path, batch(one("x.a"), one("x.b")), batch(one("x.a", "2")), Batch({(Kind.TOOL, gone): None}))
    assert names(reread(tmp_path)) == [("x.a", "2")]


def test_a_scope_goes_as_a_whole_and_what_comes_after_it_stays(tmp_path: Path) -> None:
    written(tmp_path, batch(one("x.a"), one("x.b", scope="t/m")))
    written(tmp_path, Batch({(Kind.TOOL, one("x.c").id): one("x.c")}, scopes_gone={"s/m"}))
    assert names(reread(tmp_path)) == [("x.b", "1"), ("x.c", "1")]


def test_tool_lists_of_servers_come_back_as_they_were_written(tmp_path: Path) -> None:
    written(
        tmp_path, Batch(listings={"http://a/mcp": (b'{"name":"x"}', b""), "http://b/mcp": ()}, about={"fleet": "f"})
    )
    written(tmp_path, Batch(listings={"http://b/mcp": None}))
    kept = reread(tmp_path)
    assert kept.listings == {"http://a/mcp": (b'{"name":"x"}', b"")}
    assert kept.about == {"fleet": "f"}


def test_the_file_and_its_directory_are_for_their_owner_alone(tmp_path: Path) -> None:
    written(tmp_path / "new" / "cache", batch(one("x.a")))
    assert (tmp_path / "new" / "cache").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / "cache" / FILE).stat().st_mode & 0o777 == 0o600


def test_in_a_directory_that_is_open_to_all_only_a_file_of_our_own_is_trusted(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    written(tmp_path, batch(one("x.a")))
    assert names(reread(tmp_path)) == [("x.a", "1")]
    (tmp_path / FILE).chmod(0o666)
    assert "others own it or can write to it" in reread(tmp_path).damage
    assert names(reread(tmp_path)) == []
    written(tmp_path, batch(one("x.a")))
    (tmp_path / FILE).rename(tmp_path / "elsewhere")
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    assert "others own it or can write to it" in reread(tmp_path).damage
    assert names(reread(tmp_path)) == []


def test_a_journal_that_others_can_write_to_is_not_rolled_into_the_file(tmp_path: Path) -> None:
    written(tmp_path, batch(one("x.a")))
    journal = tmp_path / f"{FILE}-journal"
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\xff" * 1000)
    journal.chmod(0o666)
    kept = reread(tmp_path)
    assert (names(kept), kept.damage) == ([("x.a", "1")], "")
    assert not journal.exists()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_file_that_is_cut_off_or_overwritten_is_set_aside_and_never_lies(tmp_path: Path, share: float) -> None:
    whole = [one(f"x.t{number:03}", f"v{number}", b"%03d" % number * 300) for number in range(200)]
    written(tmp_path, batch(*whole))
    path = tmp_path / FILE
    good = path.read_bytes()
    at = int(len(good) * share)
    for number, bad in enumerate((good[:at] or b"?", good[:at] + b"\xa5" * 4096 + good[at + 4096 :]), 1):
        path.write_bytes(bad)
        kept = reread(tmp_path)
        assert f"{FILE}.damaged-{number}" in kept.damage
        assert (tmp_path / f"{FILE}.damaged-{number}").read_bytes() == bad
        told = {found.id.name: found for found in whole}
        for found in kept.resources[Kind.TOOL]:
            assert dataclasses.replace(found, kept=False) == told[found.id.name]
        again = reread(tmp_path)
        assert again.damage == ""
        assert names(again) == names(kept)


def test_one_damaged_entry_costs_no_other(tmp_path: Path) -> None:
    written(tmp_path, batch(one("x.a"), one("x.b", payload=b"to be damaged"), one("x.c")))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes().replace(b"to be damaged", b"to be DAMAGED"))
    kept = reread(tmp_path)
    assert "1 of its entries" in kept.damage
    assert names(kept) == [("x.a", "1"), ("x.c", "1")]


def test_a_file_of_another_format_or_program_is_set_aside(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / FILE)
    other.execute("PRAGMA user_version = 9")
    other.execute("CREATE TABLE resource (whatever TEXT)")
    other.commit()
    other.close()
    assert "format 0/9" in reread(tmp_path).damage
    (tmp_path / FILE).write_text("not a database at all, but long enough to look like one " * 40)
    assert "damaged" in reread(tmp_path).damage
    assert names(reread(tmp_path)) == []


def test_damaged_files_do_not_pile_up(tmp_path: Path) -> None:
    for _ in range(MAX_DAMAGED + 3):
        (tmp_path / FILE).write_bytes(b"rubbish" * 500)
        assert reread(tmp_path).damage
    assert len(list(tmp_path.glob("*.damaged-*"))) == MAX_DAMAGED


def test_a_process_that_ends_in_the_middle_of_a_write_leaves_the_batch_before(tmp_path: Path) -> None:
    written(tmp_path, batch(one("x.a")))
    dying = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    dying.execute("PRAGMA cache_size = 1")  # so that it writes into the file before it is done
    dying.execute("BEGIN")
    dying.execute("DELETE FROM resource")
    dying.executemany(
        "INSERT INTO resource VALUES ('Tool', 's/m', ?, '2', ?, 0)", [(str(n), b"x" * 3000) for n in range(100)]
    )
    for name in (FILE, f"{FILE}-journal"):  # what a machine without power has on its disk
        (tmp_path / "dead").mkdir(mode=0o700, exist_ok=True)
        (tmp_path / "dead" / name).write_bytes((tmp_path / name).read_bytes())
    dying.close()
    kept = reread(tmp_path / "dead")
    assert kept.damage == ""
    assert names(kept) == [("x.a", "1")]


def test_a_file_that_would_grow_beyond_its_bound_is_an_error_and_keeps_what_it_has(tmp_path: Path) -> None:
    store = Store(tmp_path, 128 << 10)
    store.open()
    store.write(batch(one("x.a")))
    with pytest.raises(OSError, match="full"):
        store.write(batch(*[one(f"x.b{number}", payload=b"x" * 4096) for number in range(100)]))
    store.write(batch(one("x.a", "2")))
    store.close()
    assert names(reread(tmp_path)) == [("x.a", "2")]


def test_two_processes_may_have_the_file_open(tmp_path: Path) -> None:
    first, second = Store(tmp_path, BOUND), Store(tmp_path, BOUND)
    first.open()
    second.open()
    first.write(batch(one("x.a")))
    second.write(batch(one("x.b")))
    first.close()
    second.close()
    assert names(reread(tmp_path)) == [("x.a", "1"), ("x.b", "1")]
