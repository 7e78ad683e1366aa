"""What is fatal, what is unsupported, what is chosen, and that names and bytes depend on nothing else."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from arion_tds.model.policy import HttpPolicy
from arion_tds.model.rbac import Permission, Rbac
from arion_tds.model.source import OpenApiSource
from arion_tds.openapi.expand import expand
from arion_tds.openapi.limits import Limits

Open = Callable[..., Any]

HEAD = "openapi: 3.1.0\ninfo: {title: t, version: '1'}\n"
OK = "responses: {'204': {description: ok}}"


def paths(*operations: str) -> str:
    """`METHOD /path operationId [inside]` per operation."""
    text = HEAD + "paths:\n"
    for line in operations:
        method, path, name, *inside = line.split(" ", 3)
        given = f"operationId: {name}, " if name != "-" else ""
        text += f"  {path}: {{{method.lower()}: {{{given}{inside[0] + ', ' if inside else ''}{OK}}}}}\n"
    return text


@pytest.mark.parametrize(
    ("text", "where", "sentence"),
    [
        ("swagger: '2.0'\npaths: {}\n", "/swagger", "convert the document to OpenAPI 3"),
        ("info: {}\npaths: {}\n", "", "no `openapi` version"),
        ("openapi: 4.0.0\npaths: {}\n", "/openapi", "'4.0.0' is not supported"),
        ("openapi: 3.1.0\ninfo: {}\n", "", "neither paths nor components nor webhooks"),
        ("openapi: 3.1.0\npaths: []\n", "/paths", "must be an object"),
        ("openapi: 3.1.0\ncomponents: 5\n\n", "/components", "must be an object"),
        ("openapi: 3.1.0\npaths: {pets: {}}\n", "/paths/pets", "begin with /"),
        ("openapi: 3.1.0\npaths: {/pets: []}\n", "/paths/~1pets", "must be an object"),
        ("openapi: 3.1.0\npaths: {/pets: {parameters: {}}}\n", "/paths/~1pets/parameters", "must be a list"),
    ],
)
def test_a_document_that_is_wrong_as_a_whole_is_refused(opened: Open, text: str, where: str, sentence: str) -> None:
    problem = opened(text, skip_unsupported=True).expansion.problems[0]
    assert problem.where == where
    assert sentence in problem.why


@pytest.mark.parametrize("version", ["3.0.0", "3.0.4", "3.1", "3.1.1", "3.2.0", "'3.1.0-rc1'"])
def test_versions_30_to_32_are_served(opened: Open, version: str) -> None:
    assert opened(paths("GET /a a").replace("3.1.0", version, 1)).names == ["a"]


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"namespace": ""}, "namespace"),
        ({"namespace": "a b"}, "namespace"),
        ({"path_prefix": "edge"}, "path_prefix"),
        ({"path_prefix": "/a?b"}, "path_prefix"),
        ({"path_prefix": "/a/../b"}, "path_prefix"),
    ],
)
def test_a_source_that_is_wrong_beside_its_document_is_refused(
    opened: Open, settings: dict[str, Any], where: str
) -> None:
    assert opened(paths("GET /a a"), **settings).expansion.problems[0].where == where


@pytest.mark.parametrize(
    ("inside", "sentence"),
    [
        ("parameters: [{name: a, in: query}]", "neither schema nor content"),
        ("parameters: [{name: a, in: body, schema: {}}]", "Swagger 2.0"),
        ("parameters: [{name: a, in: nowhere, schema: {}}]", "must be one of"),
        ("parameters: [{name: a, in: querystring, content: {text/plain: {}}}]", "querystring"),
        ("parameters: [{name: a, in: query, style: simple, schema: {}}]", "style 'simple'"),
        ("parameters: [{name: Host, in: header, required: true, schema: {}}]", "belongs to the connection"),
        ("parameters: [{name: 'X Y', in: header, schema: {}}]", "not a header name"),
        ("parameters: [{in: query, schema: {}}]", "needs a name"),
        ("parameters: [5]", "must be an object"),
        ("parameters: {a: 1}", "must be a list"),
        ("parameters: [{$ref: '#/components/parameters/None'}]", "does not hold"),
        ("parameters: [{$ref: 'http://127.0.0.1:1/p.yaml'}]", "is not followed"),
        ("parameters: [{$ref: 'file:///etc/passwd'}]", "is not followed"),
        ("parameters: [{$ref: '../p.yaml#/x'}]", "is not followed"),
        ("parameters: [{name: a, in: query, schema: {$ref: 'other.json'}}]", "is not followed"),
        ("parameters: [{name: a, in: query, schema: {$ref: '#name'}}]", "names an anchor"),
        ("parameters: [{name: a, in: query, schema: {type: strin}}]", "not valid JSON Schema"),
        ("requestBody: {required: true}", "needs content"),
        ("requestBody: {content: {application/xml: {}}}", "no supported request media type"),
        ("requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/No'}}}}", "does not hold"),
    ],
)
def test_an_operation_that_cannot_be_served_is_refused_or_skipped(opened: Open, inside: str, sentence: str) -> None:
    text = paths("GET /good good", f"POST /bad bad {inside}")
    problem = opened(text).expansion.problems[0]
    assert problem.where.startswith("/paths/~1bad/post")
    assert sentence in problem.why
    lenient = opened(text, skip_unsupported=True)
    assert lenient.names == ["good"]
    assert lenient.skipped == (problem,)


def test_ids_and_dialects_elsewhere_are_dropped_and_never_fetched(operation: Open) -> None:
    api = operation(
        "parameters: [{name: a, in: query, schema: {$schema: 'http://127.0.0.1:1/s', $id: 'http://127.0.0.1:1/i', "
        "$anchor: here, type: object, properties: {$id: {type: string}, $ref: {type: string}}}}]"
    )
    assert b"127.0.0.1" not in api.tool("call").input_schema.text
    assert set(api.input("call")["properties"]["a"]["properties"]) == {"$id", "$ref"}


def test_all_unsupported_operations_are_listed_up_to_twenty_and_the_rest_counted(opened: Open) -> None:
    problems = opened(paths(*[f"GET /x{n}/{{y}} op{n}" for n in range(25)])).expansion.problems
    assert len(problems) == 21
    assert str(problems[-1]) == "and 5 more"


def test_an_operation_that_nobody_asked_for_is_not_judged(opened: Open) -> None:
    text = paths("GET /good good", "GET /bad/{x} bad")
    assert opened(text, include=("good",)).names == ["good"]
    assert opened(text, exclude=("bad",)).names == ["good"]


@pytest.mark.parametrize("word", ["repos/get", "repos_get", "GET /repos", "get /repos"])
def test_operations_are_chosen_by_id_tool_name_or_method_and_path(opened: Open, word: str) -> None:
    text = paths("GET /repos repos/get", "POST /repos2 make")
    assert opened(text, include=(word,)).names == ["repos_get"]
    assert opened(text, exclude=(word,)).names == ["make"]


def test_an_include_that_matches_nothing_is_refused_and_an_exclude_is_a_warning(opened: Open) -> None:
    text = paths("GET /a a")
    assert "'typo' matches no operation" in opened(text, include=("a", "typo")).problems
    assert "'typo' matches no operation" in str(opened(text, exclude=("typo",)).expansion.warnings[0])


def test_operations_with_one_operation_id_are_both_refused(opened: Open) -> None:
    text = paths("GET /a same", "GET /b same", "GET /c other")
    assert "/paths/~1a/get/operationId: 'same' is also the operationId of GET /b" in opened(text).problems
    assert opened(text, skip_unsupported=True).names == ["other"]
    assert opened(text, exclude=("GET /b",)).names == ["same", "other"]


def test_a_document_without_operations_gives_no_tools_and_a_warning(opened: Open) -> None:
    expansion = opened(HEAD + "webhooks: {}\n").expansion
    assert (expansion.tools, expansion.problems) == ((), ())
    assert "no operations" in str(expansion.warnings[0])


def test_a_document_of_which_nothing_is_left_is_refused(opened: Open) -> None:
    assert "no operation is left" in opened(paths("GET /a/{x} a"), skip_unsupported=True).problems


def test_too_many_operations_are_refused(opened: Open) -> None:
    api = opened(paths("GET /a a", "GET /b b"), limits=Limits(max_operations=1))
    assert "max_operations" in api.problems


def test_a_name_does_not_depend_on_order_or_neighbours(opened: Open) -> None:
    lines = ["GET /a foo/list", "GET /b foo.list", "GET /c bar", "GET /d -", "GET /e FOO.list"]

    def named(*chosen: str) -> dict[str, str]:
        api = opened(paths(*chosen))
        return {api.binding(name).path[0]: name for name in api.names}

    whole = named(*lines)
    assert named(*reversed(lines)) == whole
    for line in lines:
        rest = [other for other in lines if other != line]
        assert named(*rest).items() <= whole.items()


def test_of_two_operations_with_one_name_the_one_that_is_called_so_keeps_it(opened: Open) -> None:
    first = opened(paths("GET /a foo/list", "GET /b foo_list")).names
    second = opened(paths("GET /b foo_list", "GET /a foo/list")).names
    assert first[1] == second[0] == "foo_list"
    assert first[0] == second[1] != "foo_list"


def test_a_long_namespace_leaves_room_for_names(opened: Open) -> None:
    api = opened(paths("GET /a " + "x" * 90), namespace="n" * 30)
    assert len(f"{'n' * 30}__{api.names[0]}") <= 64


def test_the_same_bytes_give_the_same_expansion(opened: Open) -> None:
    for case in ("family", "media", "outputs", "styles"):
        first, second = (pickle.dumps(opened(case, skip_unsupported=True).expansion) for _ in range(2))
        assert first == second


def test_json_and_yaml_of_one_document_give_the_same_tools(opened: Open) -> None:
    text = paths("GET /a/{x} a parameters: [{name: x, in: path, required: true, schema: {type: integer}}]")
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {
            "/a/{x}": {
                "get": {
                    "operationId": "a",
                    "parameters": [{"name": "x", "in": "path", "required": True, "schema": {"type": "integer"}}],
                    "responses": {"204": {"description": "ok"}},
                }
            }
        },
    }
    source = OpenApiSource(namespace="t", document=json.dumps(document).encode(), cluster="upstream")
    assert expand(source, Limits()).tools == opened(text).expansion.tools


def test_tools_carry_what_the_source_says(opened: Open) -> None:
    rbac = Rbac(deny=False, permissions=(Permission("role", "admin"),))
    tool = opened(paths("GET /a a"), rbac=rbac, eager=True, policy=HttpPolicy(timeout=3)).tool("a")
    assert (tool.rbac, tool.eager, tool.backend.cluster, tool.backend.policy.timeout) == (rbac, True, "upstream", 3)


@pytest.mark.parametrize(
    ("method", "hints"),
    [
        ("GET", {"readOnlyHint": True}),
        ("HEAD", {"readOnlyHint": True}),
        ("PUT", {"idempotentHint": True}),
        ("DELETE", {"destructiveHint": True, "idempotentHint": True}),
        ("POST", None),
        ("PATCH", None),
    ],
)
def test_the_method_says_what_a_call_does(opened: Open, method: str, hints: dict[str, bool] | None) -> None:
    extra = opened(paths(f"{method} /a a")).tool("a").extra
    assert (json.loads(b"{" + extra[1:] + b"}")["annotations"] if extra else None) == hints


def test_a_description_is_the_summary_or_the_description_and_holds_nothing_invisible(opened: Open) -> None:
    def described(inside: str) -> str:
        return opened(paths(f"GET /a a {inside}")).tool("a").description

    assert described("summary: Short, description: Long") == "Short"
    assert described('description: "Bell \\a and \\u202e reversed \\u200b"') == "Bell  and  reversed"
    assert described("deprecated: true, summary: Old") == "Deprecated. Old"
    assert described("tags: [a]") == "GET /a"
    assert len(described(f"description: '{'word ' * 900}'")) <= 1024


@pytest.mark.parametrize(
    ("path", "target"),
    [("/a b/ü", "/a%20b/%C3%BC"), ("/a#x", "/a"), ("/a?fixed=1", "/a?fixed=1"), ("/a%2Fb", "/a%2Fb")],
)
def test_literal_paths_go_out_as_given_and_encoded_once(operation: Open, path: str, target: str) -> None:
    assert operation(OK, path=f'"{path}"').send("call").target == target


def test_a_fixed_query_comes_before_the_arguments(operation: Open) -> None:
    api = operation("parameters: [{name: q, in: query, schema: {type: string}}]", path='"/a?fixed=1"', method="get")
    assert api.send("call", q="x").target == "/a?fixed=1&q=x"


@pytest.mark.parametrize("path", ["/a/../b", "/a/%2e%2e/b", "/a/{x", "/a/./b"])
def test_literal_paths_that_climb_or_do_not_close_are_unsupported(operation: Open, path: str) -> None:
    assert operation(OK, path=f'"{path}"').expansion.problems != ()


def test_compound_segments_are_filled_in_place(operation: Open) -> None:
    api = operation(
        "parameters: [{name: a, in: path, schema: {type: string}}, {name: b, in: path, schema: {type: string}}]",
        path='"/x/{a}...{b}.zip"',
    )
    assert api.send("call", a="1/2", b="3").target == "/x/1%2F2...3.zip"


def test_local_path_items_and_media_types_are_followed(opened: Open) -> None:
    text = (
        "openapi: 3.2.0\ninfo: {title: t, version: '1'}\n"
        "paths: {/a: {$ref: '#/components/pathItems/A'}, /b: {query: {operationId: b, requestBody: {content: "
        "{application/json: {$ref: '#/components/mediaTypes/M'}}}}}}\n"
        "components: {pathItems: {A: {get: {operationId: a}}}, "
        "mediaTypes: {M: {schema: {type: object, properties: {q: {type: string}}}}}}\n"
    )
    api = opened(text)
    assert api.names == ["a", "b"]
    request = api.send("b", q="x")
    assert (request.method, request.body) == ("QUERY", b'{"q":"x"}')


def test_methods_beyond_the_usual_are_skipped_and_can_be_excluded(opened: Open) -> None:
    text = HEAD.replace("3.1.0", "3.2.0") + (
        "paths: {/a: {get: {operationId: a}, trace: {}, additionalOperations: {COPY: {operationId: copy}}}}\n"
    )
    assert "/paths/~1a/additionalOperations/COPY: method 'COPY' is not supported" in opened(text).problems
    assert opened(text, skip_unsupported=True).names == ["a"]
    assert opened(text, exclude=("copy", "TRACE /a")).names == ["a"]
