"""RestBackend and MCP upstream addresses to values: templates compiled, method, paths and URL checked.

Called by tool (both) and server (transport and URL).
"""

from __future__ import annotations

import re
import sys
from typing import Final
from urllib.parse import urlsplit

from arion_tds.decode import datasource, policy
from arion_tds.decode.case import Case
from arion_tds.model import template
from arion_tds.model.backend import JsonBody, QueryParam, RestBackend
from arion_tds.model.policy import DEFAULT_POLICY
from arion_tds.model.template import Template
from arion_tds.pb import mcp_gateway_pb2 as pb

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_DOT_PATH = re.compile(r"[^\s.{}]+(?:\.[^\s.{}]+)*\Z")
_NOT_IN_PATH = re.compile(r"[^\x21-\x7e]|#")
_SINGLE_BRACES = re.compile(r"\{[^{}]*\}")
_VISIBLE = re.compile(r"[\x21-\x7e]+\Z")


def rest(message: pb.RestBackend, field: str, case: Case) -> RestBackend | None:
    """The backend, or None with reasons in the Case."""
    method = sys.intern(case.required(f"{field}.method", message.method))
    if method and method not in METHODS:
        case.refuse(f"{field}.method", f"is {method!r}: not one of {', '.join(sorted(METHODS))}")
    cluster = sys.intern(case.required(f"{field}.cluster", message.cluster))
    path = _path(message.path, f"{field}.path", case)
    query = tuple(_query(param, at, field, case) for at, param in enumerate(message.query_params))
    body = _body(message, field, case)
    chosen = DEFAULT_POLICY
    if message.HasField("upstream_policy"):
        chosen = policy.http_policy(message.upstream_policy, f"{field}.upstream_policy", case)
    if path is None:
        return None
    return RestBackend(method, path, cluster, query, body, chosen)


def _path(text: str, field: str, case: Case) -> Template | None:
    if not case.required(field, text):
        return None
    if not text.startswith("/"):
        case.refuse(field, f"is {text!r}: it must start with '/'")
        return None
    made = template.parse(text)
    if isinstance(made, str):
        case.refuse(field, f"does not compile: {made}")
        return None
    for part in made.parts:
        if not isinstance(part, str):
            continue
        bad = _NOT_IN_PATH.search(part)
        if bad is not None:
            case.refuse(field, f"holds {bad.group()!r}: write it percent-encoded")
            return None
        braces = _SINGLE_BRACES.search(part)
        if braces is not None:
            case.warn(field, f"holds {braces.group()} as literal text: a variable is written in double braces")
    return made


def _query(message: pb.QueryParam, at: int, field: str, case: Case) -> QueryParam:
    name, source = message.name, message.source
    if not name or not _DOT_PATH.match(source):  # the paths are only put together when something is wrong
        case.required(f"{field}.query_params[{at}].name", name)
        _dot_path(source, f"{field}.query_params[{at}].source", case)
    return QueryParam(name, tuple(source.split(".")))


def _dot_path(text: str, field: str, case: Case) -> tuple[str, ...]:
    if case.required(field, text) and not _DOT_PATH.match(text):
        case.refuse(field, f"is {text!r}: not a dot path of an argument, such as 'user.id'")
    return tuple(text.split("."))


def _body(message: pb.RestBackend, field: str, case: Case) -> Template | JsonBody | None:
    which = message.WhichOneof("body")
    if which is None:
        return None
    if which == "body_json":
        return JsonBody(_dot_path(message.body_json, f"{field}.body_json", case))
    where = f"{field}.body_template"
    text = datasource.text(message.body_template, where, case)
    if text is None:
        return None
    made = template.parse_body(text)
    if isinstance(made, str):
        case.refuse(where, f"does not compile: {made}")
        return None
    if not made.json:
        case.warn(where, "is not JSON: values go into it as they are, without any escaping")
    return made


def transport(value: int, field: str, case: Case) -> None:
    """Refuse every MCP transport but streamable HTTP."""
    if value == pb.McpServerBackend.StreamableHttp:
        return
    if value == pb.McpServerBackend.Sse:
        case.refuse(field, "is Sse (the default when unset): only StreamableHttp is served")
    else:
        case.refuse(field, f"is {value}: only StreamableHttp (1) is served")


def url(text: str, field: str, case: Case) -> str:
    """The text as it is; anything but an absolute http(s) URL without user info and fragment is refused."""
    if case.required(field, text):
        wrong = _url_problem(text)
        if wrong is not None:
            case.refuse(field, wrong)
    return text


def _url_problem(text: str) -> str | None:
    if not _VISIBLE.match(text):
        return f"is {text!r}: a URL holds no blank, control or non-ASCII character"
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port  # the port is parsed, and refused, on access
    except ValueError as error:
        return f"is {text!r}: {error}"
    if parts.scheme not in {"http", "https"} or not host:
        return f"is {text!r}: not an absolute http or https URL with a host"
    if "@" in parts.netloc:
        return "holds user information: credentials do not belong into a URL"
    if "#" in text:
        return f"is {text!r}: a fragment is never sent"
    return None
