"""Generate docs/configuration.md and docs/metrics.md from the code. `--check` compares instead of writing (`make check`)."""

# ruff: noqa: SLF001 - the Prometheus client has no public way to ask a metric for its labels

from __future__ import annotations

import enum
import pathlib
import sys
import types
import typing

import pydantic
from prometheus_client.metrics import MetricWrapperBase
from pydantic_core import PydanticUndefined

from arion_tds import reasons
from arion_tds.config.file import FileConfig
from arion_tds.metrics import Metrics

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
HEAD = """# Configuration

`arion-tds serve -c gateway.yaml`; `arion-tds check -c gateway.yaml` says every mistake at once. This page is generated from the
code (`make docs`). Durations are numbers of seconds or `15s`, `250ms`, `5m`, `1h`. Unknown keys are mistakes. Secrets are named
by file or environment variable and never stand in the config.
"""


METRICS_HEAD = """# Metrics

`GET /metrics` of the admin listener, Prometheus text. This page is generated from the code (`make docs`). Every label is bounded:
listeners, scopes, clusters and providers by the config, tools by `metrics.tools`, all others by the code. Beside these stand the
`process_*` metrics of the Prometheus client (memory, CPU, open files).

[deploy/grafana.json](../deploy/grafana.json) is a dashboard, [deploy/alerts.yaml](../deploy/alerts.yaml) holds alert rules.

```yaml
scrape_configs:
  - job_name: arion-tds
    static_configs: [{targets: ["gateway-1:9901"]}]   # admin.address; loopback unless the config says otherwise
```
"""


def metrics() -> str:
    """Every metric by name with its type, labels and help."""
    found = [one for one in vars(Metrics()).values() if isinstance(one, MetricWrapperBase)]
    rows = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    for one in sorted(found, key=lambda one: one._name):
        name = one._name + ("_total" if one._type == "counter" else "")
        labels = ", ".join(f"`{label}`" for label in one._labelnames) or "—"
        rows.append(f"| `{name}` | {one._type} | {labels} | {one._documentation} |")
    classes = [
        "| `reason` | meaning |",
        "|---|---|",
        *(f"| `{name}` | {text} |" for name, text in reasons.CLASSES.items()),
    ]
    title = "## Reasons of rejections (`arion_tds_rejections_total`)"
    return "\n".join([METRICS_HEAD, "## All of them", "", *rows, "", title, "", *classes, ""])


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
    if isinstance(value, tuple):
        if isinstance(value[0], enum.Enum) and set(value) == set(type(value[0])):
            return "all"
        if isinstance(value[0], pydantic.BaseModel):
            return "its own defaults"
        return ", ".join(f"`{one.value if isinstance(one, enum.Enum) else one}`" for one in value)
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
    """Write the pages, or with `--check` compare them."""
    pages = {
        "configuration.md": HEAD + "\n" + section("", FileConfig, []).rstrip() + "\n",
        "metrics.md": metrics(),
    }
    stale = [name for name, page in pages.items() if not (DOCS / name).exists() or (DOCS / name).read_text() != page]
    if "--check" not in sys.argv:
        for name in stale:
            (DOCS / name).write_text(pages[name])
        return 0
    for name in stale:
        print(f"docs/{name} is stale: run `make docs`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
