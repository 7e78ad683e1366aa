"""Templates: which variables stand where, and whether a body stays JSON whatever the arguments hold."""

from __future__ import annotations

import pytest

from arion_tds.model import template
from arion_tds.model.template import Template, Variable


def body(text: str) -> Template:
    made = template.parse_body(text)
    assert isinstance(made, Template), made
    return made


def quoted(text: str) -> list[bool]:
    return [variable.quoted for variable in body(text).variables()]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ('{"a":"{{x}}"}', [True]),
        ('{"a":{{x}}}', [False]),
        ('{"a":{"b":{"c":"{{x}}"}}}', [True]),
        ('{"a":{"b":{{x}}}}', [False]),
        ('[{{x}}, "{{y}} and {{z}}"]', [False, True, True]),
        ('{"{{key}}":{{value}}}', [True, False]),
        ('{"a":"\\"{{x}}"}', [True]),
        ('{"a":"\\\\{{x}}"}', [True]),
        ('{"a":"\\\\","b":{{x}}}', [False]),
        ("{{x}}", [False]),
        ('"{{x}}{{y}}"', [True, True]),
        ('{"a":1}', []),
    ],
)
def test_a_json_body_knows_which_of_its_variables_are_inside_quotes(text: str, marks: list[bool]) -> None:
    assert body(text).json
    assert quoted(text) == marks


@pytest.mark.parametrize(
    "text",
    [
        "name={{x}}&age={{y}}",
        "hello",
        "<a>{{x}}</a>",
        '{"a":1{{x}}}',
        '{"a":{{x}}{{y}}}',
        '{"a":"\\{{x}}"}',
        '{"a":"\\u00{{x}}"}',
        "{ {{x}}: 1}",
        "{'a': {{x}}}",
        '{"a": {{x}},}',
        "-{{x}}",
    ],
)
def test_a_body_that_is_not_json_around_its_variables_is_text(text: str) -> None:
    made = body(text)
    assert not made.json
    assert not any(variable.quoted for variable in made.variables())


def test_closing_braces_of_a_body_are_text() -> None:
    assert body("{{x}} }}").parts == (Variable(("x",)), " }}")


@pytest.mark.parametrize("text", ["{{x", "a {{", "{{x}} {{y", "{{}}", "{{ }}", "{{a b}}", "{{.a}}", "{{{x}}}"])
def test_a_body_with_an_unfinished_or_odd_variable_does_not_compile(text: str) -> None:
    assert isinstance(template.parse_body(text), str)


@pytest.mark.parametrize("text", ["/a/{{x", "/a}}", "/{{x}}}}"])
def test_braces_of_a_path_must_balance(text: str) -> None:
    made = template.parse(text)
    assert isinstance(made, str)
    assert made.startswith("unbalanced braces near ")


def test_blanks_around_a_dot_path_are_ignored() -> None:
    assert template.parse("/{{ a.b }}/c") == Template(("/", Variable(("a", "b")), "/c"))


def test_the_reason_quotes_only_the_beginning_of_a_long_text() -> None:
    made = template.parse("/{{" + "x y" * 10_000 + "}}")
    assert isinstance(made, str)
    assert len(made) < 100
