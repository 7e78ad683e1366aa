"""What models send as code, and what becomes of it."""

from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arion_tds.codemode import scan, wrap


def first(code: str) -> str:
    return wrap.program(code).candidates[0].body


def starts(code: str) -> list[str]:
    found = scan.statements(code)
    assert found is not None
    return [code[one.at :].partition("\n")[0] for one in found]


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("1 + 1", "return 1 + 1"),
        ("const a = 1\na * 2", "const a = 1\nreturn a * 2"),
        ("const a = 1; a", "const a = 1; return a"),
        ("await tools.a.b({})", "return await tools.a.b({})"),
        ("async () => { return 5 }", "return async () => { return 5 }"),
        ("async function main() { return 5 }", "return async function main() { return 5 }"),
        ("(async () => { return 5 })()", "return (async () => { return 5 })()"),
        ("(async () => 5)();\n", "return (async () => 5)();\n"),
        ("function help() {}\n\n(async () => help())()", "function help() {}\n\nreturn (async () => help())()"),
        ("async function main() {}\nmain()", "async function main() {}\nreturn main()"),
        ("({a: 1})", "return ({a: 1})"),
        ("{a: 1, b: 2}", "return {a: 1, b: 2}"),
        ("[1, 2].map(x => x)", "return [1, 2].map(x => x)"),
        ("a\n  .b()\n  .c()", "return a\n  .b()\n  .c()"),
        ("x // the end", "return x // the end"),
        ("for (const a of b) c(a)\nd", "for (const a of b) c(a)\nreturn d"),
        ("if (a) { b() }\nc", "if (a) { b() }\nreturn c"),
        ("const f = async () => {\n  return 1\n}\nf()", "const f = async () => {\n  return 1\n}\nreturn f()"),
        ('const r = /[/"]/g\nr', 'const r = /[/"]/g\nreturn r'),
        ("const t = `a ${ `b ${1}` } c;`\nt", "const t = `a ${ `b ${1}` } c;`\nreturn t"),
        ("type A = {a: string}\nlet x = 1 as any as A\nx", "type A = {a: string}\nlet x = 1 as any as A\nreturn x"),
        ("interface A { a: string }\ny", "interface A { a: string }\nreturn y"),
        ("let x = a!\nx", "let x = a!\nreturn x"),
        ("typed", "return typed"),
    ],
)
def test_the_last_expression_is_returned(code: str, body: str) -> None:
    assert first(code) == body


@pytest.mark.parametrize(
    "code",
    [
        "return 1",
        "const a = 1",
        "if (a) b()\nelse c()",
        "if (a) { b } else { c }",
        "for (const a of b) { c }",
        "try { a } catch (e) { b } finally { c }",
        "while (a) b()",
        "do { a } while (b)",
        "throw new Error()",
        "a()\nfunction helper() { return 1 }",
        "class A {}",
        "again: for (;;) break again",
        "switch (a) { case 1: b }",
        "",
        "// nothing",
        ";;",
    ],
)
def test_what_has_no_value_is_left_as_it_is(code: str) -> None:
    assert first(code) == code


@pytest.mark.parametrize("code", ["a(", "a)", "`a", "{", "]", "${"])
def test_what_does_not_match_is_left_to_the_parser(code: str) -> None:
    assert [one.body for one in wrap.program(code).candidates] == [code]


def test_a_fence_is_taken_off_and_lines_stay_where_they_are() -> None:
    assert first("```ts\nconst a = 1\nreturn a\n```") == "\nconst a = 1\nreturn a"
    assert first("\n```typescript\n  a\n```  \n") == "\n\n  return a"
    assert first("```\na") == "\nreturn a"


def test_a_fence_inside_of_the_program_stays() -> None:
    code = "const text = `\n\\`\\`\\`js\nx\n\\`\\`\\`\n`"
    assert first(code) == code


def test_exports_become_what_they_export() -> None:
    assert first("export default async () => 5") == "return         async () => 5"
    assert first("export default async function main() {\n}") == "return         async function main() {\n}"
    assert first("export const a = 1\na") == "       const a = 1\nreturn a"
    assert first("export function f() {}\nf()") == "       function f() {}\nreturn f()"


def test_places_are_those_of_the_code_as_it_was_sent() -> None:
    made, plain = wrap.program("const a = 1; a.b.c\n").candidates
    head = "export default async function execute(){"
    text = base64.b64decode(made.url.rpartition(",")[2]).decode()
    assert text == head + "const a = 1; return a.b.c\n\n}"
    at = text.index("a.b.c") + 1
    assert made.locate(1, at) == (1, 14)
    assert made.locate(1, at + 2) == (1, 16)
    assert plain.locate(1, len(head) + 14) == (1, 14)
    assert made.locate(1, len(head) + 7) == (1, 7)


def test_a_place_behind_the_end_is_the_end() -> None:
    (only,) = wrap.program("foo(\n  1,").candidates
    assert only.locate(3, 2) == (2, 5)


def test_code_that_is_no_text_is_still_a_module() -> None:
    assert wrap.program("'\ud800'").candidates[0].url.startswith("data:")


_PIECES = [
    *("a", "1", "'x'", "`t${", "`", "}", "{", "(", ")", "[", "]", ";", "\n", " ", "//c\n", "/*c*/", "/", "=>", "if"),
    *("return", "+", "!", ".", "async", "function", "const", "=", "export", "default"),
]


@given(st.lists(st.sampled_from(_PIECES), max_size=40).map("".join))
def test_any_code_gives_candidates_that_differ_in_a_return_alone(code: str) -> None:
    candidates = wrap.program(code).candidates
    plain = candidates[-1].body
    assert len(plain) == len(code)
    for one in candidates[:-1]:
        assert one.body.replace("return", "", 1).split() != plain.split() or "return" in one.body
        assert one.body.count("\n") == plain.count("\n")
        assert one.body.startswith(plain[: len(plain) and one.body.find("return")])


def test_long_code_is_read_in_time_that_grows_with_its_length() -> None:
    line = "const {0} = await tools.a.b({{x: `v ${{1}}`, y: [1, 'two', /3/]}});\n"
    code = "".join(line.format(f"v{number}") for number in range(3000)) + "v1"
    assert wrap.program(code).candidates[0].body.endswith("\nreturn v1")


def test_brackets_without_end_are_given_up() -> None:
    assert scan.statements("[" * 5000) is None
    pieces = [random.Random(7).choice("([{`$") for _ in range(10_000)]
    assert scan.statements("".join(pieces)) is None


def test_statements_are_told_apart_where_javascript_would() -> None:
    assert starts("a\nb") == ["a", "b"]
    assert starts("a\n(b)") == ["a"]
    assert starts("a +\nb") == ["a +"]
    assert starts("a\n+ b") == ["a"]
    assert starts("const a = 1, b = 2; c") == ["const a = 1, b = 2; c", "c"]
    assert starts("for await (const x of y) z\nw") == ["for await (const x of y) z", "w"]
    assert starts("x as\nstring") == ["x as"]
    assert starts("a.default\nb") == ["a.default", "b"]
