"""The folder: what a look brings, and what bad or half-written files leave alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from control_plane_example.documents import TYPE_URLS
from control_plane_example.files import Folder, Scan
from control_plane_example.snapshot import Held, Key

TOOL = TYPE_URLS["McpTool"]


def tool(name: str, description: str = "d", fleet: str = "arion") -> str:
    return json.dumps(
        {
            "apiVersion": "ctl.arion.io/v1alpha1",
            "kind": "McpTool",
            "metadata": {"name": f"s/c/{name}", "fleet": fleet},
            "spec": {"description": description},
        }
    )


class Followed:
    """A folder and what its looks add up to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = Folder(path)
        self.served: dict[Key, Held] = {}

    def write(self, file: str, *tools: str) -> None:
        (self.path / file).write_text("\n---\n".join(tools), encoding="utf-8")

    def look(self) -> Scan:
        scan = self.folder.scan()
        for key in scan.removals:
            del self.served[key]
        self.served.update(scan.updates)
        return scan

    def settle(self) -> Scan:
        """Two looks: a change counts when two agree."""
        self.look()
        return self.look()

    @property
    def names(self) -> list[str]:
        return sorted(key.name.removeprefix("s/c/") for key in self.served)


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def test_the_first_look_takes_what_is_there_at_once(followed: Followed) -> None:
    followed.write("a.yaml", tool("x"), tool("y"))
    followed.write("b.json", f"[{tool('z')}]")
    followed.write("notes.txt", "not ours")
    followed.write(".hidden.yaml", "not ours")
    assert followed.look().faults == {}
    assert followed.names == ["x", "y", "z"]


def test_a_change_costs_what_changed(followed: Followed) -> None:
    followed.write("a.yaml", tool("x"), tool("y"), tool("gone"))
    followed.write("b.yaml", tool("z"))
    followed.look()
    followed.write("a.yaml", tool("x"), tool("y", "other"), tool("new"))
    scan = followed.settle()
    assert sorted(key.name for key, _ in scan.updates) == ["s/c/new", "s/c/y"]
    assert [key.name for key in scan.removals] == ["s/c/gone"]
    assert followed.settle() == Scan()


def test_a_removed_file_takes_its_resources_along(followed: Followed) -> None:
    followed.write("a.yaml", tool("x"))
    followed.write("b.yaml", tool("y"))
    followed.look()
    (followed.path / "a.yaml").unlink()
    followed.settle()
    assert followed.names == ["y"]


def test_a_file_that_is_gone_for_one_look_only_is_not_gone(followed: Followed) -> None:
    followed.write("a.yaml", tool("x"))
    followed.look()
    (followed.path / "a.yaml").unlink()
    assert followed.look() == Scan()
    followed.write("a.yaml", tool("x", "new"))
    followed.settle()
    assert followed.names == ["x"]


def test_a_file_that_is_being_written_is_not_read(followed: Followed) -> None:
    followed.write("a.yaml", tool("x"), tool("y"))
    followed.look()
    followed.write("a.yaml", tool("x"))
    assert followed.look() == Scan()  # changed since the look before
    followed.write("a.yaml", tool("x"), tool("y"), tool("z"))
    followed.settle()
    assert followed.names == ["x", "y", "z"]


@pytest.mark.parametrize("bad", ["", "kind: [", tool("x") + "\n---\nkind: McpTool\n", "\x00", tool("x")[:-5]])
def test_a_bad_file_leaves_what_it_served_and_is_reported(followed: Followed, bad: str) -> None:
    followed.write("a.yaml", tool("x"), tool("y"))
    followed.write("b.yaml", tool("z"))
    followed.look()
    followed.write("a.yaml", bad)
    assert list(followed.settle().faults) == ["a.yaml"]
    assert followed.names == ["x", "y", "z"]
    followed.write("a.yaml", tool("x"))
    assert followed.settle().faults == {}
    assert followed.names == ["x", "z"]


def test_bytes_that_are_not_utf8_are_reported(followed: Followed) -> None:
    (followed.path / "a.yaml").write_bytes(b"kind: \xff\xfe")
    assert "not UTF-8" in followed.look().faults["a.yaml"]


def test_an_empty_list_says_that_the_file_holds_nothing(followed: Followed) -> None:
    followed.write("a.yaml", tool("x"))
    followed.look()
    followed.write("a.yaml", "[]")
    assert followed.settle().faults == {}
    assert followed.names == []


def test_a_name_in_two_files_is_refused_in_the_later_one_whole(followed: Followed) -> None:
    followed.write("a.yaml", tool("x"))
    followed.write("b.yaml", tool("x"), tool("y"))
    scan = followed.look()
    assert scan.faults == {"b.yaml": "McpTool s/c/x (fleet arion) stands in a.yaml too: keep one of them"}
    assert followed.names == ["x"]
    (followed.path / "a.yaml").unlink()
    assert followed.settle().faults == {}
    assert followed.names == ["x", "y"]


def test_a_changed_file_does_not_take_a_name_from_one_that_has_it(followed: Followed) -> None:
    followed.write("b.yaml", tool("x"))
    followed.look()
    followed.write("a.yaml", tool("x", "mine"))
    assert list(followed.settle().faults) == ["a.yaml"]


def test_a_resource_may_move_between_files_in_one_step(followed: Followed) -> None:
    followed.write("a.yaml", tool("x"), tool("y"))
    followed.write("b.yaml", tool("z"))
    followed.look()
    followed.write("a.yaml", tool("x"))
    followed.write("b.yaml", tool("z"), tool("y"))
    assert followed.settle() == Scan(news=True)
    assert followed.names == ["x", "y", "z"]


def test_a_refused_file_that_keeps_its_old_names_may_refuse_another(followed: Followed) -> None:
    followed.write("a.yaml", tool("x"))
    followed.write("b.yaml", tool("y"))
    followed.write("c.yaml", tool("z"))
    followed.look()
    followed.write("b.yaml", tool("x"))  # refused: a has it; so b keeps y
    followed.write("c.yaml", tool("y"))  # refused: b still has it
    assert list(followed.settle().faults) == ["b.yaml", "c.yaml"]
    assert followed.names == ["x", "y", "z"]
    followed.write("a.yaml", tool("w"))
    assert followed.settle().faults == {}
    assert followed.names == ["w", "x", "y"]


def test_a_folder_that_vanishes_leaves_everything(followed: Followed) -> None:
    followed.write("a.yaml", tool("x"))
    followed.look()
    shutil.rmtree(followed.path)
    scan = followed.settle()
    assert "cannot be read" in scan.faults["."]
    assert followed.names == ["x"]
    followed.path.mkdir()
    followed.write("a.yaml", tool("y"))
    assert followed.settle().faults == {}
    assert followed.names == ["y"]


def test_the_same_name_in_two_fleets_is_two_resources(followed: Followed) -> None:
    followed.write("a.yaml", tool("x"))
    followed.write("b.yaml", tool("x", fleet="edge"))
    assert followed.look().faults == {}
    assert set(followed.served) == {Key("arion", TOOL, "s/c/x"), Key("edge", TOOL, "s/c/x")}
