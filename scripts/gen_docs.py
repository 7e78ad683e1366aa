"""Generate docs/configuration.md from the config models. `--check` compares instead of writing (`make check`)."""

from __future__ import annotations

import enum
import pathlib
import sys
import types
import typing

import pydantic
from pydantic_core import PydanticUndefined

from arion_tds.config.file import FileConfig

TARGET = pathlib.Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
HEAD = """# Configuration

`arion-tds serve -c gateway.yaml`; `arion-tds check -c gateway.yaml` says every mistake at once. This page is generated from the
code (`make docs`). Durations are numbers of seconds or `15s`, `250ms`, `5m`, `1h`. Unknown keys are mistakes. Secrets are named
by file or environment variable and never stand in the config.
"""


def nested(annotation: object) -> type[pydantic.BaseModel] | None:
    """The model inside an annotation such as `Model | None` or `tuple[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return annotation
    for part in typing.get_args(annotation):
        found = nested(part)
        if found is not None:
            return found
    return None


def kind(annotation: object) -> str:
    """The annotation in a reader's words."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(kind(part) for part in parts if part is not type(None))
    if origin is tuple:
        return f"list of {kind(parts[0])}"
    if origin is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return " or ".join(f"`{one.value}`" for one in annotation)
    names = {str: "text", int: "number", float: "seconds", bool: "true or false"}
    return names.get(annotation, "mapping") if isinstance(annotation, type) else "text"


def default(field: pydantic.fields.FieldInfo) -> str:
    """The default in a reader's words."""
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined or value is None or value in ((), {}):
        return "—"
    if isinstance(value, enum.Enum):
        return f"`{value.value}`"
    if isinstance(value, pydantic.BaseModel):
        return "its own defaults"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def section(title: str, model: type[pydantic.BaseModel], done: list[type[pydantic.BaseModel]]) -> str:
    """One table per model, the models inside it after it."""
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    inner: list[tuple[str, type[pydantic.BaseModel]]] = []
    for name, field in model.model_fields.items():
        within = nested(field.annotation)
        meaning = field.description or ""
        if within is not None:
            path = f"{title}.{name}" if title else name
            if "tuple" in str(field.annotation):
                path += "[]"
            inner.append((path, within))
            meaning = f"{meaning} See `{path}`." if within not in done else f"{meaning} Keys as in `{within.__name__}`."
        rows.append(f"| `{name}` | {kind(field.annotation)} | {default(field)} | {meaning.strip()} |")
    intro = " ".join((model.__doc__ or "").split())
    text = [f"## `{title}` ({model.__name__})" if title else "## The file", "", intro, "", *rows, ""]
    done.append(model)
    for path, within in inner:
        if within not in done:
            text.append(section(path, within, done))
    return "\n".join(text)


def main() -> int:
    """Write the page, or with `--check` compare it."""
    page = HEAD + "\n" + section("", FileConfig, []).rstrip() + "\n"
    if "--check" not in sys.argv:
        TARGET.write_text(page)
        return 0
    if TARGET.read_text() != page:
        print("docs/configuration.md is stale: run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
