"""Bytes to values: encodings, YAML 1.2, and everything that must not get past the door."""

from __future__ import annotations

import codecs
import json

import pytest

from arion_tds.model.problem import Problem
from arion_tds.openapi.document import Decoded, decode
from arion_tds.openapi.limits import Limits

LIMITS = Limits()
TEXT = '{"openapi":"3.1.0","info":{"title":"ü","version":"1"},"paths":{}}'


def read(data: bytes | str, limits: Limits = LIMITS) -> object:
    found = decode(data.encode() if isinstance(data, str) else data, limits)
    assert isinstance(found, Decoded), found
    return found.root


def why(data: bytes | str, limits: Limits = LIMITS) -> str:
    found = decode(data.encode() if isinstance(data, str) else data, limits)
    assert isinstance(found, Problem), found
    return found.why


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"),
        TEXT.encode("utf-16-le"),
        TEXT.encode("utf-16-be"),
        TEXT.replace(",", ",\r\n").encode(),
        ("  \n" + TEXT).encode(),
    ],
)
def test_one_document_in_any_encoding_is_the_same_document(data: bytes) -> None:
    assert read(data) == json.loads(TEXT)


def test_yaml_scalars_are_those_of_json() -> None:
    assert read("{a: [no, on, y, 010, 0o17, 0x1F, 1e3, +1, .5, ~, Null, True, 2024-01-02, 12:30, .inf, 1_0]}") == {
        "a": ["no", "on", "y", 10, 15, 31, 1000.0, 1, 0.5, None, None, True, "2024-01-02", "12:30", ".inf", "1_0"]
    }
    assert read("a: !!str 5\nb: '5'\nc: \"true\"\nd: ! 7\n") == {"a": "5", "b": "5", "c": "true", "d": "7"}


def test_keys_are_text_whatever_they_look_like() -> None:
    assert read("200: a\nyes: b\n~: c\n1.0: d\n") == {"200": "a", "yes": "b", "~": "c", "1.0": "d"}


def test_the_version_is_text_even_without_quotes() -> None:
    assert read("openapi: 3.10\ninfo: {v: 3.10}\n") == {"openapi": "3.10", "info": {"v": 3.1}}
    assert read('{"openapi": 3.1}') == {"openapi": "3.1"}


def test_anchors_and_merge_keys_are_followed() -> None:
    assert read("base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\nmany: {<<: [*b, {z: 4}]}\n") == {
        "base": {"x": 1, "y": 2},
        "one": {"x": 1, "y": 3},
        "many": {"x": 1, "y": 2, "z": 4},
    }


def test_a_key_that_stands_twice_is_a_warning() -> None:
    found = decode(b"a: 1\nb: 2\na: 3\n", LIMITS)
    assert isinstance(found, Decoded)
    assert found.root["a"] == 3
    assert "'a' at line 3" in found.warnings[0].why


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "empty"),
        (b"  \n ", "empty"),
        (b"[1, 2]", "a list"),
        (b"hello", "text"),
        (b'{"a": ', "not valid JSON"),
        (b"a: b: c", "not valid YAML"),
        (b"a: \xff\xff", "not valid utf-8"),
        (b"\xff\xfea", "not valid utf-16"),
        (b"a: !!python/object/apply:os.system [ls]", "tag"),
        (b"a: 1\n---\nb: 2\n", "second YAML document at line 2"),
        (b"? [a, b]\n: 1\n", "key at line 1"),
        (b"? {a: b}\n: 1\n", "key at line 1"),
        (b"a: *nobody", "refers to no anchor"),
        (b"a: &a {x: *a}", "refers to what it stands in"),
        (b"a: &a [*a]", "refers to what it stands in"),
        (b"<<: 5\n", "merge key"),
        (b'{"a": "\\ud800"}', "not valid"),
    ],
)
def test_what_is_no_document_says_why(data: bytes, sentence: str) -> None:
    assert sentence in why(data)


def test_an_alias_bomb_is_counted_with_every_use() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "max_nodes" in why("\n".join(lines))


def test_aliases_cannot_nest_deeper_than_the_limit() -> None:
    lines = ["a0: &a0 " + "[" * 30 + "]" * 30]
    lines += [f"a{n}: &a{n} {'[' * 30}*a{n - 1}{']' * 30}" for n in range(1, 5)]
    assert "max_depth" in why("\n".join(lines))


@pytest.mark.parametrize("text", ["[" * 150 + "]" * 150, '{"a":' * 150 + "1" + "}" * 150, "- " * 150 + "a"])
def test_deep_nesting_is_refused(text: str) -> None:
    assert "max_depth" in why(text)


def test_nesting_beyond_the_stack_is_refused_too() -> None:
    assert "max_depth" in why('{"a":' + "[" * 200_000 + "]" * 200_000 + "}")


def test_each_size_limit_names_itself() -> None:
    assert "max_json_bytes" in why(b"x" * 101, Limits(max_json_bytes=100))
    assert "max_yaml_bytes" in why("a: " + "x" * 101, Limits(max_yaml_bytes=100))
    assert "max_nodes" in why('{"a": [1, 2, 3, 4, 5]}', Limits(max_nodes=5))
    assert "max_nodes" in why("a: [1, 2, 3, 4, 5]", Limits(max_nodes=5))
