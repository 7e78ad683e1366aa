"""JSON Schema: judged once, never fetched, validated with a place in the answer."""

import pickle

import pytest

from arion_tds import schema
from arion_tds.schema import Schema


def parsed(text: str) -> Schema:
    found = schema.parse(text)
    assert isinstance(found, Schema), found
    return found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ("true", "must be a JSON object"),
        ('{"type":"int"}', "/type"),
        ('{"properties":{"n":{"minimum":"x"}}}', "/properties/n/minimum"),
        ('{"pattern":"["}', "/pattern"),
        ('{"$ref":"http://127.0.0.1/s"}', "not followed"),
        ('{"$ref":"file:///etc/passwd"}', "not followed"),
        ('{"$id":"http://127.0.0.1/a","$ref":"b"}', "not followed"),
        ('{"$schema":"http://127.0.0.1/meta"}', "127.0.0.1"),
        ('{"$ref":"#/$defs/none"}', "does not exist"),
        ('{"not":' * 5000 + "{}" + "}" * 5000, "recursion"),
    ],
)
def test_what_cannot_be_used_says_why_and_where(text: str, why: str) -> None:
    found = schema.parse(text)
    assert isinstance(found, str)
    assert why in found


def test_a_mismatch_names_the_place() -> None:
    made = parsed('{"type":"object","properties":{"a":{"items":{"type":"integer"}}},"required":["a"]}')
    assert made.mismatch({"a": [1, 2]}) is None
    assert (made.mismatch({"a": [1, "x"]}) or "").startswith("/a/1:")
    assert "required" in (made.mismatch({}) or "")
    assert made.matches({"a": []})
    assert not made.matches({})


def test_integers_beyond_64_bits_survive() -> None:
    big = 123456789012345678901234567890
    assert parsed(f'{{"enum":[{big}]}}').text == f'{{"enum":[{big}]}}'.encode()


def test_it_is_its_text_when_compared_and_when_it_crosses_a_process() -> None:
    made = parsed('{ "type" : "object" }')
    assert made.text == b'{"type":"object"}'
    assert pickle.loads(pickle.dumps(made)) == made == Schema(b'{"type":"object"}')
    assert len({made, Schema(b'{"type":"object"}')}) == 1


def test_it_is_the_same_when_its_text_is_read_out_of_a_definition() -> None:
    made = parsed('{"type":"object","properties":{"city":{"type":"string","description":"Where it rains"}}}')
    text, twin = made.text, Schema(made.text)
    assert not made.matches({"city": 1})
    for begin, end in ((b'{"inputSchema":', b"}"), (b'{"name":"a.b","inputSchema":', b',"title":"B"}')):
        made.read_from(begin + text + end, len(begin))
        assert made.text == text
        assert made == twin
        assert hash(made) == hash(twin)
        assert pickle.loads(pickle.dumps(made)) == twin
        assert made.matches({"city": "Lima"})


def test_a_constant_is_not_bound_to_one_of_the_tools_that_share_it() -> None:
    made = Schema(b'{"type":"object"}')
    made.read_from(b"not where it is", 3)
    assert made.text == b'{"type":"object"}'


def test_compiled_validators_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "MAX_COMPILED", 3)
    Schema._compiled.clear()
    for number in range(10):
        parsed(f'{{"const":{number}}}').matches(number)
    assert len(Schema._compiled) == 3


def test_a_pattern_that_backtracks_elsewhere_ends_at_once() -> None:
    made = parsed('{"type":"string","pattern":"^(a+)+$"}')
    assert not made.matches("a" * 5000 + "b")
