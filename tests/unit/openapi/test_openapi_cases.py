"""Fifteen documents that broke other gateways: what each becomes, and what goes out on the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

Open = Callable[..., Any]


def test_a_body_property_keeps_its_name_and_colliding_parameters_say_where_they_go(opened: Open) -> None:
    api = opened("collision")
    schema = api.input("replaceShelf")
    assert {name: sub["type"] for name, sub in schema["properties"].items()} == {
        "slot__path": "integer",
        "slot__query": "string",
        "slot": "integer",
        "label": "string",
    }
    assert sorted(schema["required"]) == ["label", "slot", "slot__path"]
    assert schema["additionalProperties"] is False
    request = api.send("replaceShelf", slot__path=7, slot__query="trace", slot=8, label="Ann")
    assert (request.method, request.target) == ("PUT", "/shelves/7?slot=trace")
    assert ("content-type", "application/json") in request.headers
    assert request.body == b'{"slot":8,"label":"Ann"}'


def test_a_path_value_stays_one_segment(opened: Open) -> None:
    api = opened("traversal")
    request = api.send("getReport", name="../../admin/delete?x=1#y")
    assert request.target == "/api/v1/reports/..%2F..%2Fadmin%2Fdelete%3Fx%3D1%23y/pdf"
    assert api.send("getReport", name="%2e%2e").target == "/api/v1/reports/%252e%252e/pdf"


@pytest.mark.parametrize("value", ["..", ".", "", "a\r\nX-Evil: 1", "\x00"])
def test_a_path_value_that_is_no_segment_is_refused(opened: Open, value: str) -> None:
    assert "argument 'name'" in opened("traversal").refused("getReport", name=value)


def test_explode_defaults_to_true_for_form_only(opened: Open) -> None:
    request = opened("styles").send(
        "find", a=["x", "y"], b=["x", "y"], c=["x", "y"], d=["x", "y"], e=["x y", "z|1"], **{"X-Ids": [1, 2]}
    )
    assert request.target == "/find?a=x&a=y&b=x,y&c=x%7Cy&d=x%20y&e=x%20y%7Cz%7C1"
    assert ("X-Ids", "1,2") in request.headers


def test_every_other_style_goes_out_as_rfc_6570_says(opened: Open) -> None:
    request = opened("styles").send(
        "all",
        simple={"a": 1, "b c": "d,e"},
        label=["x", "y"],
        matrix=["1", "2"],
        deep={"k": "v", "many": [1, 2], "in": {"j": True}},
        flat={"a": 1, "b": 2},
        spread={"p": "q", "r": ["s", "t"]},
        raw="a/b&c#d?e",
        filter={"a": [1]},
        seen=[1, 2],
    )
    path, _, query = request.target.partition("?")
    assert path == "/all/a=1,b%20c=d%2Ce/.x.y/;matrix=1,2"
    assert query.split("&") == [
        *("deep%5Bk%5D=v", "deep%5Bmany%5D=1", "deep%5Bmany%5D=2", "deep%5Bin%5D%5Bj%5D=true"),
        *("flat=a,1,b,2", "p=q", "r=s", "r=t"),
        *("raw%5B%5D=a/b%26c%23d?e", "filter=%7B%22a%22%3A%5B1%5D%7D"),
    ]
    assert ("cookie", "seen=1; seen=2") in request.headers


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("price", [1, None], [0, -1]),
        ("state", [None, "on"], ["x"]),
        ("owner", [None, {"n": "a"}], [5]),
        ("title", ["a"], [None]),
        ("any", [None, 1, "a"], []),
    ],
)
def test_nullable_becomes_a_null_type(opened: Open, name: str, good: list[Any], bad: list[Any]) -> None:
    api = opened("nullable")
    assert all(api.accepts("save", {name: value}) for value in good)
    assert not any(api.accepts("save", {name: value}) for value in bad)
    text = api.tool("save").input_schema.text
    assert b"nullable" not in text
    assert b'"exclusiveMinimum":true' not in text


@pytest.mark.parametrize("output", ["loose", "strict"])
def test_a_schema_brings_what_it_refers_to_and_nothing_else(opened: Open, output: str) -> None:
    api = opened("transitive", output=output)
    schema = api.output("getPerson")
    names = set(schema["$defs"])
    assert {"Person", "Name", "Job", "Company"} <= names
    assert "Unused" not in names
    assert len(names) == 6
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names)
    answer = {
        "Name": {"First": "A"},
        "Job": {"Company": {"x": 1}, "boss": {"Name": {"First": "B"}}},
        "odd": "s",
        "st": "new",
    }
    assert api.tool("getPerson").output_schema.mismatch(answer) is None


def test_a_discriminated_parent_is_any_of_its_children(opened: Open) -> None:
    api = opened("family")
    assert api.accepts("createPet", {"pet": {"petType": "cat", "meow": 3}})
    assert not api.accepts("createPet", {"pet": {"petType": "cat", "meow": "loud"}})
    assert not api.accepts("createPet", {"pet": {"meow": 3}})
    assert not api.accepts("createPet", {"pet": {"petType": "cow"}})
    assert api.send("createPet", pet={"petType": "cat", "meow": 3}).body == b'{"pet":{"petType":"cat","meow":3}}'
    assert b"packSize" in api.tool("createPet").input_schema.text


def test_the_tag_of_a_union_is_required_and_tells_its_branches_apart(opened: Open) -> None:
    api = opened("family")
    assert api.accepts("createShape", {"body": {"kind": "circle", "size": 1}})
    assert not api.accepts("createShape", {"body": {"size": 1}})
    assert "oneOf" in api.input("createShape")["$defs"]["Shape"]


def test_yaml_words_stay_words(opened: Open) -> None:
    api = opened("scalars")
    assert api.names == ["on"]
    properties = api.input("on")["properties"]
    assert properties["country"]["enum"] == ["GB", "NO", "on", "2024-01-02", "1e3x"]
    assert properties["since"]["default"] == "2015-02-22T20:00:45.000Z"
    assert properties["zip"]["default"] == 10
    assert "y" in api.output("on")["properties"]
    assert api.send("on", country="NO").target == "/x?country=NO"


def test_names_are_legal_distinct_and_belong_to_their_operation(opened: Open) -> None:
    names = opened("names").names
    assert len(set(names)) == 7
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", f"t.{name}") for name in names)
    assert names[:2] == ["foo_list", "foo.list"]
    assert re.fullmatch(r"foo_list_[0-9a-f]{6}", names[2])
    assert names[3] == "get_d_id"
    assert names[4][:-7] == names[5][:-7]


def test_recursive_schemas_use_references(opened: Open) -> None:
    api = opened("recursion", skip_unsupported=True)
    assert api.names == ["search"]
    assert api.accepts("search", {"filter": {"and": [{"not": {"field": "a"}}], "m": {"k": {"field": "b"}}}})
    assert not api.accepts("search", {"filter": {"and": [{"not": {"field": 1}}]}})
    assert {problem.where.split("/post")[0] for problem in api.skipped} == {"/paths/~1loop", "/paths/~1spiral"}
    assert all("circle" in problem.why for problem in api.skipped)


def test_schemas_that_are_only_a_circle_are_refused(opened: Open) -> None:
    assert "/paths/~1loop/post" in opened("recursion").problems


def test_only_answers_that_are_always_the_same_json_are_promised(opened: Open) -> None:
    api = opened("outputs")
    assert api.output("list")["type"] == ["array", "null"]
    assert api.output("one")["type"] == "object"
    assert api.output("make")["type"] == "object"
    assert [api.output(name) for name in ("mixed", "only", "text", "gone")] == [None] * 4


def test_the_path_of_the_nearest_server_comes_first_and_its_host_never_counts(opened: Open) -> None:
    api = opened("servers")
    assert api.send("health").target == "/base/v2/health"
    assert api.send("up").target == "/up/health2"
    assert api.send("rel").target == "/rel/"
    assert "169.254" not in repr(api.expansion)


@pytest.mark.parametrize(("prefix", "target"), [("/edge", "/edge/health"), ("/edge/", "/edge/health"), ("", "/health")])
def test_a_path_prefix_replaces_the_servers_path(opened: Open, prefix: str, target: str) -> None:
    assert opened("servers", path_prefix=prefix).send("health").target == target


def test_protocol_headers_and_credentials_are_no_arguments(opened: Open) -> None:
    api = opened("headers")
    assert set(api.input("get")["properties"]) == {"X-Tenant", "sid", "limit"}
    request = api.send("get", **{"X-Tenant": "a b"}, sid="s=1; admin=true", limit=True)
    assert ("X-Tenant", "a b") in request.headers
    assert ("cookie", "sid=s%3D1%3B%20admin%3Dtrue") in request.headers
    assert request.target == "/get?limit=true"
    assert {name for name, _ in request.headers} == {"accept", "X-Tenant", "cookie"}


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\x00", "é", "日本", "\ud800"])
def test_a_header_value_that_cannot_be_one_is_refused(opened: Open, value: str) -> None:
    assert "argument 'X-Tenant'" in opened("headers").refused("get", **{"X-Tenant": value})


def test_forms_uploads_and_bytes(opened: Open) -> None:
    api = opened("media", skip_unsupported=True)
    form = api.send("token", grant_type="a&b", scope=["r", "w"], meta={"k": 1})
    assert form.body == b"grant_type=a%26b&scope=r&scope=w&meta=%7B%22k%22%3A1%7D"
    assert ("content-type", "application/x-www-form-urlencoded") in form.headers
    assert api.send("deep", grant_type="x y", meta={"k": 1}).body == b"grant_type=x+y&meta%5Bk%5D=1"
    assert api.send("raw", body="AAEC").body == b"\x00\x01\x02"
    assert api.input("raw")["properties"]["body"]["contentEncoding"] == "base64"
    assert "base64" in api.refused("raw", body="not base64!")
    note = api.send("note", body="grüß")
    assert (note.body, dict(note.headers)["content-type"]) == ("grüß".encode(), "text/plain; charset=utf-8")
    assert api.send("note").body is None


def test_a_file_is_given_as_base64_and_sent_as_bytes_with_its_own_type(opened: Open) -> None:
    api = opened("media", skip_unsupported=True)
    assert api.input("upload")["properties"]["file"]["contentEncoding"] == "base64"
    request = api.send("upload", file="iVBORw==", title="T", tags=["a", "b"])
    kind, _, boundary = dict(request.headers)["content-type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    parts = (request.body or b"").split(b"--" + boundary.encode())
    assert parts[-1] == b"--\r\n"
    assert parts[1] == (
        b'\r\nContent-Disposition: form-data; name="file"; filename="file.png"\r\n'
        b"Content-Type: image/png\r\n\r\n\x89PNG\r\n"
    )
    assert [part.rsplit(b"\r\n", 2)[1] for part in parts[2:5]] == [b"T", b"a", b"b"]
    again = api.send("upload", file="iVBORw==", title="T", tags=["a", "b"])
    assert again == request, "nothing random is in a request"


def test_a_body_that_cannot_be_sent_costs_its_operation(opened: Open) -> None:
    assert "POST /xml" not in opened("media", skip_unsupported=True).names
    assert "/paths/~1xml/post" in opened("media").problems
    assert "application/xml" in opened("media").problems


def test_composition_goes_through_unchanged(opened: Open) -> None:
    api = opened("composition")
    assert "type" not in api.input("post")["properties"]["u"]
    for good in ({"u": {"a": 1}}, {"u": "s"}, {"u": None}, {"n": 3}, {"n": None}, {"list": [{"q": 1}]}):
        assert api.accepts("post", good), good
    for bad in ({"u": 5}, {"list": [{"q": "x"}]}, {"b": {"x": 1}}, {"b": {"y": 1}}):
        assert not api.accepts("post", bad), bad
    request = api.send("post", u={"a": 1}, list=[{"q": 1}], b={"x": 1, "y": 2})
    assert json.loads(request.body or b"") == {"u": {"a": 1}, "list": [{"q": 1}], "b": {"x": 1, "y": 2}}


def test_path_parameters_are_inherited_overridden_and_required(opened: Open) -> None:
    api = opened("inherited", skip_unsupported=True)
    assert api.names == ["read", "drop"]
    read, drop = api.input("read"), api.input("drop")
    assert read["properties"]["verbose"]["type"] == "boolean"
    assert drop["properties"]["verbose"]["type"] == "integer"
    assert read["required"] == drop["required"] == ["org", "id"]
    request = api.send("read", org="o 1", id=5, verbose=True)
    assert (request.method, request.target) == ("GET", "/orgs/o%201/docs/5?verbose=true")
    assert [problem.where for problem in api.skipped] == ["/paths/~1broken~1{missing}/get"]
