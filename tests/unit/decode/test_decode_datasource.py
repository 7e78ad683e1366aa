"""DataSources: inline always; files and environment variables only where the rules allow them."""

from __future__ import annotations

import pytest
from decode_samples import a_source, a_tool, deliver, rest, source, why
from envoy.config.core.v3.base_pb2 import DataSource

from arion_tds.decode.rules import INLINE_ONLY, DataRules
from arion_tds.decode.table import Decoded

SCHEMA = b'{"type":"object"}'
FILES = {"/etc/tds/a.json": SCHEMA, "/etc/tds/sub/b.json": SCHEMA, "/srv/one.json": SCHEMA, "/etc/tds/empty": b""}
FILES["/etc/tds/latin"] = b'{"type":"object","title":"\xe9"}'


def read_file(path: str) -> bytes:
    if "\0" in path:
        msg = "embedded null byte"
        raise ValueError(msg)
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


ALLOWED = DataRules(
    files=("/etc/tds/", "/srv/one.json"),
    environment=frozenset({"SCHEMA", "UNSET", "LATIN"}),
    read_file=read_file,
    read_environment={"SCHEMA": SCHEMA.decode(), "LATIN": "\udce9", "SECRET": "s"}.get,
)
ANYTHING = DataRules(any_file=True, any_environment=True, read_file=read_file, read_environment={"SECRET": "{}"}.get)


def given(content: DataSource, rules: DataRules) -> Decoded:
    return rest(lambda tool: tool.input_schema.CopyFrom(content), rules)


@pytest.mark.parametrize(
    "content",
    [
        DataSource(inline_string=SCHEMA.decode()),
        DataSource(inline_bytes=SCHEMA),
        DataSource(filename="/etc/tds/a.json"),
        DataSource(filename="/etc/tds/sub/b.json"),
        DataSource(filename="/etc/tds/sub/../a.json"),
        DataSource(filename="/srv/one.json"),
        DataSource(environment_variable="SCHEMA"),
    ],
)
def test_what_is_inline_or_allowed_is_read(content: DataSource) -> None:
    assert a_tool(given(content, ALLOWED)).input_schema.text == SCHEMA


@pytest.mark.parametrize(
    "content",
    [
        DataSource(filename="/etc/tds/a.json"),
        DataSource(filename="/etc/passwd"),
        DataSource(environment_variable="SCHEMA"),
    ],
)
def test_a_delivered_resource_may_read_nothing_by_default(content: DataSource) -> None:
    assert "the gateway's config does not allow it to be read" in why(given(content, INLINE_ONLY))


@pytest.mark.parametrize(
    "content",
    [
        DataSource(filename="/etc/passwd"),
        DataSource(filename="/etc/tds/../passwd"),
        DataSource(filename="/etc/tds"),
        DataSource(filename="/etc/tdsx"),
        DataSource(filename="//etc/tds/a.json"),
        DataSource(filename="etc/tds/a.json"),
        DataSource(filename="../etc/tds/a.json"),
        DataSource(filename="/srv/one.json/x"),
        DataSource(filename=""),
        DataSource(environment_variable="SECRET"),
        DataSource(environment_variable="schema"),
        DataSource(environment_variable=""),
    ],
)
def test_what_is_not_allowed_is_refused_although_other_things_are_allowed(content: DataSource) -> None:
    assert "the gateway's config does not allow it to be read" in why(given(content, ALLOWED))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (DataSource(), "input_schema is empty"),
        (DataSource(inline_string=""), "input_schema is empty"),
        (DataSource(inline_bytes=b""), "input_schema is empty"),
        (DataSource(filename="/etc/tds/empty"), "input_schema is empty"),
        (DataSource(inline_bytes=b'{"a":"\xff"}'), "input_schema is not UTF-8"),
        (DataSource(filename="/etc/tds/latin"), "input_schema is not UTF-8"),
        (DataSource(environment_variable="LATIN"), "input_schema is not UTF-8"),
        (DataSource(filename="/etc/tds/gone"), "which cannot be read: [Errno 2] No such file"),
        (DataSource(filename="/etc/tds/a\0b"), "which cannot be read: embedded null byte"),
        (DataSource(environment_variable="UNSET"), "'UNSET', which is not set"),
    ],
)
def test_what_is_empty_unreadable_or_not_utf8_is_refused(content: DataSource, reason: str) -> None:
    assert reason in why(given(content, ALLOWED))


def test_static_rules_allow_every_file_and_variable() -> None:
    assert a_tool(given(DataSource(filename="/srv/one.json"), ANYTHING)).input_schema.text == SCHEMA
    assert a_tool(given(DataSource(environment_variable="SECRET"), ANYTHING)).input_schema.text == SCHEMA


@pytest.mark.parametrize(
    ("content", "document"),
    [
        (DataSource(inline_string="openapi: 3.1.0\n"), b"openapi: 3.1.0\n"),
        (DataSource(inline_bytes="é".encode()), "é".encode()),
        (DataSource(filename="/srv/one.json"), SCHEMA),
        (DataSource(environment_variable="SECRET"), b"{}"),
    ],
)
def test_a_document_is_kept_as_the_bytes_that_came(content: DataSource, document: bytes) -> None:
    message = source()
    message.spec.CopyFrom(content)
    assert a_source(deliver(message, "pets", ANYTHING)).document == document


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (DataSource(), "spec is empty"),
        (DataSource(inline_bytes=b"\xff"), "spec is not UTF-8"),
        (DataSource(filename="/etc/passwd"), "does not allow it to be read"),
    ],
)
def test_a_document_that_is_empty_not_utf8_or_not_allowed_is_refused(content: DataSource, reason: str) -> None:
    message = source()
    message.spec.CopyFrom(content)
    assert reason in why(deliver(message, "pets"))


def given_document(content: DataSource) -> Decoded:
    pets = source()
    pets.spec.CopyFrom(content)
    return deliver(pets, "pets")


def test_a_document_arrives_byte_for_byte_as_text_or_as_bytes() -> None:
    document = ('{"title": "' + "grüße \U0001f642 " * 20_000 + '"}').encode()
    for content in (DataSource(inline_string=document.decode()), DataSource(inline_bytes=document)):
        assert a_source(given_document(content)).document == document


@pytest.mark.parametrize(("at", "bad"), [(65_535, b"\xc3("), (65_535, b"\xff"), (70_000, b"\xe2\x82")])
def test_what_is_not_utf8_is_found_wherever_it_stands(at: int, bad: bytes) -> None:
    refused = why(given_document(DataSource(inline_bytes=b" " * at + bad)))
    assert "is not UTF-8" in refused
    assert f"at byte {at}" in refused
