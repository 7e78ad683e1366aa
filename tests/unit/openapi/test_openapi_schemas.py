"""Schema Objects of every version to JSON Schema 2020-12, in both directions, loosened and not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from arion_tds.openapi.limits import Limits

Operation = Callable[..., Any]


def parameter(schema: str) -> str:
    return f"parameters: [{{name: a, in: query, schema: {schema}}}]"


def body(schema: str, required: str = "true") -> str:
    return f"requestBody: {{required: {required}, content: {{application/json: {{schema: {schema}}}}}}}"


def answer(schema: str) -> str:
    return f"responses: {{'200': {{description: ok, content: {{application/json: {{schema: {schema}}}}}}}}}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("{type: integer, minimum: 1, exclusiveMinimum: true}", {"type": "integer", "exclusiveMinimum": 1}),
        ("{type: integer, maximum: 1, exclusiveMaximum: false}", {"type": "integer", "maximum": 1}),
        ("{type: integer, exclusiveMinimum: true}", {"type": "integer"}),
        ("{type: array}", {"type": "array", "items": {}}),
        (
            "{type: array, items: [{type: string}, {type: integer}]}",
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        ),
        ("{type: string, format: byte}", {"type": "string", "contentEncoding": "base64"}),
        ("{type: string, enum: [a, b, a]}", {"type": "string", "enum": ["a", "b"]}),
        ("{enum: [1, 1.0, true]}", {"enum": [1, 1.0, True]}),
        ("{const: a, nullable: true}", {"enum": ["a", None]}),
        ("{type: [string, integer], nullable: true}", {"type": ["string", "integer", "null"]}),
        (
            "{oneOf: [{type: string}], nullable: true, description: D}",
            {"anyOf": [{"oneOf": [{"type": "string"}]}, {"type": "null"}], "description": "D"},
        ),
        ("{type: object, required: [b, a, b, 5]}", {"type": "object", "required": ["b", "a"]}),
        ("{type: string, required: true}", {"type": "string"}),
        (
            "{type: string, example: x, xml: {}, externalDocs: {}, x-y: 1, $comment: c, examples: [x]}",
            {"type": "string"},
        ),
        ("{title: T, description: D}", {"description": "D"}),
        ("{type: string, deprecated: true}", {"type": "string", "deprecated": True}),
        ("true", True),
    ],
)
def test_a_keyword_becomes_what_2020_12_calls_it(operation: Operation, given: str, expected: Any) -> None:
    assert operation(parameter(given)).input("call")["properties"]["a"] == expected


def test_keywords_are_keywords_only_where_schemas_stand(operation: Operation) -> None:
    api = operation(
        body("{type: object, properties: {nullable: {type: string}, example: {}, required: {type: string}}}")
    )
    assert set(api.input("call")["properties"]) == {"nullable", "example", "required"}


def test_a_pattern_that_does_not_compile_is_left_out_with_a_warning(operation: Operation) -> None:
    api = operation(parameter("{type: string, pattern: '(['}"))
    assert api.input("call")["properties"]["a"] == {"type": "string"}
    assert "does not compile" in str(api.expansion.warnings[0])


def test_an_enum_of_too_many_values_is_left_out(operation: Operation) -> None:
    api = operation(parameter(f"{{type: integer, enum: {list(range(30))}}}"), limits=Limits(max_enum_values=20))
    assert api.input("call")["properties"]["a"] == {"type": "integer"}


def test_siblings_of_a_reference_count_from_31_on(operation: Operation) -> None:
    components = "{schemas: {S: {type: string}}}"
    text = parameter('{$ref: "#/components/schemas/S", maxLength: 3, description: D}')
    assert not operation(text, components=components).accepts("call", {"a": "long"})
    old = operation(text, components=components, version="3.0.3")
    assert old.accepts("call", {"a": "long"})
    assert old.input("call")["properties"]["a"]["description"] == "D"


def test_read_only_properties_are_not_asked_for_and_write_only_ones_not_shown(operation: Operation) -> None:
    components = (
        "{schemas: {S: {type: object, required: [id, name, secret], properties: {id: {type: string, readOnly: true}, "
        "name: {type: string}, secret: {type: string, writeOnly: true}}}}}"
    )
    ref = '{$ref: "#/components/schemas/S"}'
    api = operation(f"{body(ref)}, {answer(ref)}", components=components, output="strict")
    assert set(api.input("call")["properties"]) == {"name", "secret"}
    assert sorted(api.input("call")["required"]) == ["name", "secret"]
    assert set(api.output("call")["properties"]) == {"id", "name"}
    assert api.output("call")["required"] == ["id", "name"]


def test_a_loosened_schema_keeps_names_types_and_descriptions_only(operation: Operation) -> None:
    schema = (
        "{type: object, required: [a], additionalProperties: false, properties: {a: {type: string, minLength: 3, "
        "enum: [xxx], description: D}, b: {oneOf: [{type: integer}, {type: number}]}, c: {const: 5}}}"
    )
    api = operation(answer(schema))
    assert api.output("call") == {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "description": "D", "examples": ["xxx"]},
            "b": {"anyOf": [{"type": ["integer", "null"]}, {"type": ["number", "null"]}, {"type": "null"}]},
            "c": {"examples": [5]},
        },
    }


def test_strict_output_is_what_the_document_says_and_off_is_nothing(operation: Operation) -> None:
    text = answer("{type: object, required: [a], properties: {a: {type: string}}}")
    assert operation(text, output="strict").output("call")["required"] == ["a"]
    assert operation(text, output="off").output("call") is None


@pytest.mark.parametrize("output", ["loose", "strict"])
@pytest.mark.parametrize(
    "schema",
    ['{$ref: "#/components/schemas/No"}', '{$ref: "http://127.0.0.1:1/x"}', "[]", '{$ref: "#/components/schemas/A"}'],
)
def test_trouble_in_an_answer_costs_only_the_output_schema(operation: Operation, output: str, schema: str) -> None:
    api = operation(answer(schema), output=output, components='{schemas: {A: {$ref: "#/components/schemas/A"}}}')
    assert api.output("call") is None
    assert api.expansion.warnings != ()


def test_an_output_schema_over_its_limit_is_dropped(operation: Operation) -> None:
    api = operation(
        answer("{type: object, properties: {a: {type: string}}}"), limits=Limits(max_output_schema_bytes=40)
    )
    assert api.output("call") is None
    assert "max_output_schema_bytes = 40" in str(api.expansion.warnings[0])


def test_an_input_schema_over_its_limit_costs_the_operation(operation: Operation) -> None:
    api = operation(parameter("{type: string, description: 'long enough'}"), limits=Limits(max_input_schema_bytes=60))
    assert "max_input_schema_bytes" in api.problems


def test_a_schema_too_deep_costs_the_operation(operation: Operation) -> None:
    nested = "{type: string}"
    for _ in range(70):
        nested = f"{{items: {nested}}}"
    assert "max_schema_depth" in operation(parameter(nested), limits=Limits(max_depth=1000)).problems


def test_children_that_inherit_without_a_mapping_are_found(operation: Operation) -> None:
    components = (
        "{schemas: {P: {type: object, properties: {kind: {type: string}}, discriminator: {propertyName: kind}}, "
        'C: {allOf: [{$ref: "#/components/schemas/P"}, {type: object, required: [x], '
        "properties: {x: {type: integer}}}]}}}"
    )
    api = operation(body('{$ref: "#/components/schemas/P"}'), components=components)
    assert api.accepts("call", {"body": {"kind": "C", "x": 1}})
    assert not api.accepts("call", {"body": {"kind": "C", "x": "no"}})
    assert not api.accepts("call", {"body": {"x": 1}})


def test_grandchildren_by_the_same_tag_are_branches_of_their_own(operation: Operation) -> None:
    def heir(parent: str, name: str) -> str:
        own = f"{{type: object, properties: {{{name}: {{type: integer}}}}}}"
        return f'allOf: [{{$ref: "#/components/schemas/{parent}"}}, {own}]'

    components = (
        "{schemas: {P: {type: object, required: [kind], properties: {kind: {type: string}}, discriminator: "
        "{propertyName: kind, mapping: {b: B, c: C}}}, "
        f"B: {{{heir('P', 'x')}, discriminator: {{propertyName: kind, mapping: {{c: C}}}}}}, "
        f"C: {{{heir('B', 'y')}}}}}}}"
    )
    api = operation(body('{$ref: "#/components/schemas/P"}'), components=components)
    assert api.accepts("call", {"body": {"kind": "b", "x": 1}})
    assert api.accepts("call", {"body": {"kind": "c", "x": 1, "y": 2}})
    assert not api.accepts("call", {"body": {"kind": "c", "y": "no"}})
    assert not api.accepts("call", {"body": {"kind": "c", "x": "no"}})


def test_a_parent_whose_union_lists_children_that_inherit_from_it_is_no_circle(operation: Operation) -> None:
    components = (
        '{schemas: {P: {type: object, properties: {kind: {type: string}}, oneOf: [{$ref: "#/components/schemas/C"}], '
        'discriminator: {propertyName: kind}}, C: {allOf: [{$ref: "#/components/schemas/P"}, {type: object, '
        "properties: {x: {type: integer}}}]}}}"
    )
    api = operation(body('{$ref: "#/components/schemas/P"}'), components=components)
    assert api.accepts("call", {"body": {"kind": "C", "x": 1}})


def test_a_recursive_reference_means_the_component_it_stands_in(operation: Operation) -> None:
    components = "{schemas: {N: {type: object, properties: {kids: {type: array, items: {$recursiveRef: '#'}}}}}}"
    api = operation(body('{$ref: "#/components/schemas/N"}'), components=components)
    assert api.accepts("call", {"kids": [{"kids": []}]})
    assert not api.accepts("call", {"kids": [{"kids": 5}]})


@pytest.mark.parametrize(
    "schema",
    [
        "{type: object, properties: {a: {}}, allOf: [{}]}",
        "{type: object, properties: {a: {}}, additionalProperties: true}",
        "{type: object, properties: {a: {}}, minProperties: 1}",
        "{type: [object, 'null'], properties: {a: {}}}",
        "{type: object, properties: {a: {}}, discriminator: {propertyName: a}}",
        "{type: object}",
        "{type: array, items: {}}",
        "{type: object, properties: {}, required: [a]}",
    ],
)
def test_a_body_that_is_not_a_plain_object_is_one_argument(operation: Operation, schema: str) -> None:
    api = operation(body(schema))
    assert set(api.input("call")["properties"]) == {"body"}
    assert api.input("call")["required"] == ["body"]


def test_an_optional_body_with_required_properties_is_one_argument(operation: Operation) -> None:
    api = operation(body("{type: object, required: [a], properties: {a: {type: string}}}", required="false"))
    assert set(api.input("call")["properties"]) == {"body"}
    assert api.send("call").body is None
    assert api.send("call", body={"a": "x"}).body == b'{"a":"x"}'


def test_a_required_body_without_arguments_is_an_empty_object(operation: Operation) -> None:
    text = "{type: object, additionalProperties: false, properties: {a: {type: string}}}"
    assert operation(body(text)).send("call").body == b"{}"
    assert operation(body(text, required="false")).send("call").body is None


def test_a_required_argument_with_a_default_is_optional_and_filled_in(operation: Operation) -> None:
    api = operation(
        "parameters: [{name: v, in: path, schema: {type: string, default: v1}}, "
        "{name: page, in: query, schema: {type: integer, default: 1}}], "
        + body("{type: object, required: [a, b], properties: {a: {type: integer, default: 5}, b: {type: integer}}}"),
        path="'/{v}/x'",
    )
    assert api.input("call")["required"] == ["b"]
    request = api.send("call", b=1)
    assert (request.target, request.body) == ("/v1/x", b'{"a":5,"b":1}')


def test_argument_names_are_what_every_model_api_takes(operation: Operation) -> None:
    api = operation(
        "parameters: [{name: 'include[]', in: query, schema: {type: array, items: {type: string}}}, "
        "{name: 名前, in: query, schema: {type: string, description: Name}}, "
        "{name: include, in: query, schema: {type: string}}]"
    )
    names = list(api.input("call")["properties"])
    assert names[2] == "include"
    assert names[0].startswith("include_")
    assert all(name.isascii() and len(name) <= 64 for name in names)
    request = api.send("call", **{names[0]: ["a"], names[1]: "b", names[2]: "c"})
    assert request.target == "/call?include%5B%5D=a&%E5%90%8D%E5%89%8D=b&include=c"


def test_a_get_body_is_ignored_in_30_and_sent_from_31_on(operation: Operation) -> None:
    text = body("{type: object, properties: {a: {type: string}}}", required="false")
    assert "properties" not in operation(text, method="get", version="3.0.3").input("call")
    assert operation(text, method="get").send("call", a="x").body == b'{"a":"x"}'


def test_a_large_input_schema_loses_the_descriptions_in_its_defs_first(operation: Operation) -> None:
    components = (
        f"{{schemas: {{S: {{type: object, description: '{'d' * 500}', properties: {{a: {{type: string}}}}}}}}}}"
    )
    text = parameter('{$ref: "#/components/schemas/S"}')
    whole = operation(text, components=components)
    assert b"ddd" in whole.tool("call").input_schema.text
    for limits in (Limits(warn_input_schema_bytes=400), Limits(max_input_schema_bytes=400)):
        bare = operation(text, components=components, limits=limits)
        assert b"ddd" not in bare.tool("call").input_schema.text
        assert not bare.accepts("call", {"a": {"a": 1}})
        assert "descriptions in its $defs are left out" in str(bare.expansion.warnings)


def test_a_part_without_a_type_but_with_a_binary_media_type_is_bytes(operation: Operation) -> None:
    api = operation(
        "requestBody: {required: true, content: {multipart/form-data: {schema: {type: object, properties: "
        "{file: {}, pic: {contentMediaType: image/png}, note: {}}}, encoding: {file: {contentType: application/pdf}}}}}"
    )
    assert api.input("call")["properties"]["file"] == {"type": "string", "contentEncoding": "base64"}
    body = api.send("call", file="AAEC", pic="AAEC", note={"a": 1}).body or b""
    assert b'filename="file.pdf"\r\nContent-Type: application/pdf\r\n\r\n\x00\x01\x02\r\n' in body
    assert body.count(b"\x00\x01\x02") == 2
    assert b'name="note"\r\nContent-Type: application/json\r\n\r\n{"a":1}' in body


def test_the_patch_that_takes_any_object_is_preferred(operation: Operation) -> None:
    media = ", ".join(
        f"application/{kind}: {{schema: {{type: object}}}}" for kind in ("json-patch+json", "merge-patch+json")
    )
    request = operation(f"requestBody: {{content: {{{media}}}}}", method="patch").send("call", body={"a": 1})
    assert dict(request.headers)["content-type"] == "application/merge-patch+json"
