"""The text of `execute` is short whatever is in the catalog."""

from __future__ import annotations

from arion_tds.codemode import guide, limits
from arion_tds.model.gateway import CodeMode
from arion_tds.model.toolkit import Toolkit

LIMITS = limits.of(CodeMode())


def kit(name: str, instructions: str = "Do this.") -> Toolkit:
    return Toolkit(name=name, description="For trips", instructions=instructions, tools=("a.b", "a.c"))


def test_the_text_says_how_what_and_how_much() -> None:
    text = guide.description(LIMITS, {"weather": 4, "geo": 1}, {})
    assert len(text.splitlines()) == 9
    assert text.endswith("Namespaces (tools): geo (1), weather (4)")
    assert "Limits: 30 s, 100 host calls (8 at a time), 1 MiB of output, 128 MiB of memory." in text
    assert "{{" not in text


def test_toolkits_come_with_their_instructions() -> None:
    text = guide.description(LIMITS, {}, {"trip": kit("trip")})
    assert text.endswith("\n- trip: For trips Do this.")
    assert "none yet" in text


def test_long_lists_are_cut_and_say_where_the_rest_is() -> None:
    spaces = {f"namespace{number:04}": 1 for number in range(5000)}
    kits = {f"kit{number:03}": kit(f"kit{number:03}", "Much to say. " * 500) for number in range(200)}
    text = guide.description(LIMITS, spaces, kits)
    assert len(text) < 2000 + guide.NAMESPACES + guide.TOOLKITS
    assert "more: see catalog.namespaces()" in text
    assert "more: see catalog.toolkits.list()" in text


def test_a_name_cannot_write_lines_of_its_own() -> None:
    text = guide.description(LIMITS, {'a" (9)\n- new': 1}, {"k": kit("k", "one\n- fake: line")})
    assert '"a\\" (9)\\n- new" (1)' in text
    assert "\n- fake" not in text
