"""Generate the reference pages from the code: configuration, metrics, cli, errors. `--check` compares (`make check`)."""

# ruff: noqa: SLF001 - the Prometheus client has no public way to ask a metric for its labels

from __future__ import annotations

import argparse
import ast
import enum
import inspect
import itertools
import pathlib
import sys
import types
import typing

import pydantic
from prometheus_client import Gauge
from prometheus_client.metrics import MetricWrapperBase
from pydantic_core import PydanticUndefined

from arion_tds import reasons
from arion_tds.cli import main as cli
from arion_tds.config import values
from arion_tds.config.file import FileConfig
from arion_tds.metrics import Metrics
from arion_tds.model.result import ErrorCode
from arion_tds.server import eras, jsonrpc

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
SHARE = pydantic.fields.FieldInfo.from_annotation(values.Share).metadata
"""What marks a field that is a share."""

HEAD = """# Configuration

`arion-tds serve -c gateway.yaml`; `arion-tds check -c gateway.yaml` says every mistake at once. This page is generated from the
code (`make docs`). Durations are numbers of seconds or `15s`, `250ms`, `5m`, `1h`. Unknown keys are mistakes. Secrets are named
by file or environment variable and never stand in the config.
"""


METRICS_HEAD = """# Metrics

`GET /metrics` of the admin listener, Prometheus text. This page is generated from the code (`make docs`). Every label is bounded:
listeners, scopes, clusters and providers by the config, tools by `metrics.tools`, all others by the code. Beside these stand the
`process_*` metrics of the Prometheus client (memory, CPU, open files). With several workers one page stands for all of them: counters
and histograms are added up, gauges as the table says ([workers.md](workers.md)).

[deploy/grafana.json](../deploy/grafana.json) is a dashboard, [deploy/alerts.yaml](../deploy/alerts.yaml) holds alert rules.

```yaml
scrape_configs:
  - job_name: arion-tds
    static_configs: [{targets: ["gateway-1:9901"]}]   # admin.address; loopback unless the config says otherwise
```
"""


WORKERS = {"sum": "sum", "max": "greatest", "min": "least"}


def metrics() -> str:
    """Every metric by name with its type, labels and help."""
    found = [one for one in vars(Metrics()).values() if isinstance(one, MetricWrapperBase)]
    rows = ["| metric | type | labels | of several workers | meaning |", "|---|---|---|---|---|"]
    for one in sorted(found, key=lambda one: one._name):
        name = one._name + ("_total" if one._type == "counter" else "")
        labels = ", ".join(f"`{label}`" for label in one._labelnames) or "—"
        together = WORKERS[one._multiprocess_mode if isinstance(one, Gauge) else "sum"]
        rows.append(f"| `{name}` | {one._type} | {labels} | {together} | {one._documentation} |")
    classes = [
        "| `reason` | meaning |",
        "|---|---|",
        *(f"| `{name}` | {text} |" for name, text in reasons.CLASSES.items()),
    ]
    title = "## Reasons of rejections (`arion_tds_rejections_total`)"
    return "\n".join([METRICS_HEAD, "## All of them", "", *rows, "", title, "", *classes, ""])


CLI_HEAD = """# Command line

`arion-tds COMMAND`. This page is generated from the code (`make docs`). Status 0: all is well; 1: what was asked about is not, or
the command could not do its work; 2: the command line itself is wrong. Commands that ask a running gateway take `--admin URL` or
`$ARION_TDS_ADMIN`.
"""


def command_line() -> str:
    """Every command with its arguments."""
    parts = [CLI_HEAD]
    for found in cli.parser()._actions:
        if not isinstance(found, argparse._SubParsersAction):
            continue
        helps = {one.dest: one.help or "" for one in found._choices_actions}
        for name, parser in found.choices.items():
            rows = [f"| {argument(one)} | {meaning(one)} |" for one in parser._actions if shown(one)]
            head = ["| argument | meaning |", "|---|---|"] if rows else []
            said = helps[name]
            parts.append("\n".join([f"## `{name}`", "", f"{said[:1].upper()}{said[1:]}.", "", *head, *rows, ""]))
    return "\n".join(parts)


def shown(one: argparse.Action) -> bool:
    """Whether it is for people."""
    return one.dest != "help" and one.help is not argparse.SUPPRESS


def argument(one: argparse.Action) -> str:
    """How an argument is written."""
    shown = str(one.metavar or one.dest.upper())
    choices = f" ({', '.join(map(str, one.choices))})" if one.choices else ""
    if not one.option_strings:
        return f"`{shown}{'…' if one.nargs in {'*', '+'} else ''}`{choices}"
    value = "" if one.nargs == 0 else f" {shown}"
    return f"`{', '.join(one.option_strings)}{value}`{choices}"


def meaning(one: argparse.Action) -> str:
    """What an argument is for."""
    said = (one.help or "").replace("|", "\\|").replace("%(default)s", str(one.default)).replace("%%", "%")
    return said + (" (required)" if one.required and one.option_strings else "")


CALL_ERRORS = {
    ErrorCode.INVALID_ARGUMENTS: (
        "the arguments do not fit the tool's schema, or cannot be put into its request",
        "the caller corrects them",
    ),
    ErrorCode.INVALID_OUTPUT: (
        "the answer does not fit the tool's output schema",
        "correct the schema, or leave it out; for OpenAPI sources `openapi.output: loose`",
    ),
    ErrorCode.UPSTREAM_ERROR: (
        "the upstream answered with an error (`status`), could not be reached, or does not exist",
        "`arion-tds status`: endpoints and MCP servers in trouble",
    ),
    ErrorCode.UPSTREAM_TIMEOUT: (
        "no whole answer in time",
        "`upstream_policy.timeout` of the tool, `timeout` of the cluster, `upstream_timeout` of the gateway",
    ),
    ErrorCode.OVERFLOW: (
        "as many calls as are allowed are under way",
        "`clusters[].max_requests`, `max_concurrent_calls` of an MCP server",
    ),
    ErrorCode.RESPONSE_TOO_LARGE: (
        "the answer is larger than allowed",
        "`max_upstream_response_bytes` of the gateway",
    ),
}
RPC_ERRORS = {
    jsonrpc.PARSE_ERROR: "the body is not JSON",
    jsonrpc.INVALID_REQUEST: "the body is not a JSON-RPC request",
    jsonrpc.METHOD_NOT_FOUND: "the method is not served here",
    jsonrpc.INVALID_PARAMS: "the parameters are wrong; also: no such tool, or not for this caller",
    jsonrpc.INTERNAL_ERROR: "a fault of the gateway: its log has the request id",
    eras.HEADER_MISMATCH: "a header does not say what the body says (2026-07-28)",
    eras.MISSING_CLIENT_CAPABILITY: "the client lacks a capability that an upstream asks for (2026-07-28)",
    eras.UNSUPPORTED_PROTOCOL_VERSION: "the protocol version is not spoken; `data.supported` lists those that are",
    eras.REQUEST_CANCELLED: "the client cancelled the request",
}
ERRORS_HEAD = """# Errors

What clients of a listener are answered when something is wrong. This page is generated from the code (`make docs`). What the
control plane is answered, why a resource is refused, says the sentence in the NACK; the classes of these sentences stand in
[metrics.md](metrics.md).
"""


def errors() -> str:
    """Codes of failed calls, and of JSON-RPC."""
    missing = set(ErrorCode) - CALL_ERRORS.keys()
    if missing:
        raise SystemExit(f"scripts/gen_docs.py says nothing about {', '.join(missing)}")
    calls = [f"| `{code.value}` | {why} | {what} |" for code, (why, what) in CALL_ERRORS.items()]
    rpc = [f"| {code} | {why} |" for code, why in RPC_ERRORS.items()]
    return "\n".join(
        [
            ERRORS_HEAD,
            "## A tool's result",
            "",
            "A call that failed is a result with `isError: true` and the structured content",
            '`{"error": {"code", "message", "retryable", "status"?}}`:',
            "",
            "| `code` | meaning | what to do |",
            "|---|---|---|",
            *calls,
            "",
            "## JSON-RPC",
            "",
            "| `code` | meaning |",
            "|---|---|",
            *rpc,
            "",
            "## HTTP",
            "",
            "| status | meaning |",
            "|---|---|",
            "| 400 | not HTTP, not JSON, or headers that do not fit the message |",
            "| 401, 403 | no token or a wrong one (`WWW-Authenticate` says where to get one); a token without a scope; a Host or Origin that is not allowed |",
            "| 404 | no such page, or a session that has ended: initialize again |",
            "| 406, 415 | `Accept` or `Content-Type` is not what MCP asks for, or `Content-Encoding` not gzip or deflate |",
            "| 413 | the body is larger than `max_body_bytes`, unpacked if it is compressed |",
            "| 429, 503 | a limit of the listener (`limits`, `max_streams`): try again later |",
            "",
        ]
    )


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
    if annotation is values.Share:
        return "number from 0 to 1"
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


def meanings(model: type[pydantic.BaseModel]) -> dict[str, str]:
    """The text under each field, by name."""
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for whole in ast.walk(ast.parse(inspect.getsource(model)))
        if isinstance(whole, ast.ClassDef)
        for field, below in itertools.pairwise(whole.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def section(title: str, model: type[pydantic.BaseModel], done: list[type[pydantic.BaseModel]]) -> str:
    """One table per model, the models inside it after it."""
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    inner: list[tuple[str, type[pydantic.BaseModel]]] = []
    meant = meanings(model)
    for name, field in model.model_fields.items():
        within = nested(field.annotation)
        meaning = meant.get(name, "")
        if within is not None:
            path = f"{title}.{name}" if title else name
            if "tuple" in str(field.annotation):
                path += "[]"
            inner.append((path, within))
            meaning = f"{meaning} See `{path}`." if within not in done else f"{meaning} Keys as in `{within.__name__}`."
        written = values.Share if field.metadata == SHARE else field.annotation
        rows.append(f"| `{name}` | {kind(written)} | {default(field)} | {meaning.strip()} |")
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
        "cli.md": command_line(),
        "errors.md": errors(),
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
