"""A call's arguments to its HTTP request.

In: a Binding and arguments (already valid against the tool's input schema, but nothing here relies on it).
Out: an HttpRequest, or a CallFailure that names the argument. Called by calls for every call of an OpenAPI tool.
Nothing of the MCP client's own headers is ever in here.
"""

from __future__ import annotations

from collections.abc import Mapping

from arion_tds.model.http import HttpRequest
from arion_tds.model.result import CallFailure, ErrorCode
from arion_tds.openapi import forms, serialize
from arion_tds.openapi.binding import Binding, Body, Parameter
from arion_tds.openapi.serialize import Refused
from arion_tds.openapi.value import Json

_ABSENT: Json = object()


def build(binding: Binding, arguments: Mapping[str, Json]) -> HttpRequest | CallFailure:
    """The request, ready to send to the tool's cluster, or which argument cannot be sent and why."""
    if binding.defaults:
        arguments = {**dict(binding.defaults), **arguments}
    headers: list[tuple[str, str]] = [("accept", binding.accept)]
    name = ""
    try:
        target = ""
        for part in binding.path:
            if isinstance(part, str):
                target += part
            else:
                name = part.argument
                target += _place(part, arguments)
        query = [binding.query] if binding.query else []
        cookies: list[str] = []
        for parameter in binding.parameters:
            name = parameter.argument
            value = arguments.get(name, _ABSENT)
            if value is not _ABSENT:
                _add(parameter, value, query, headers, cookies)
            elif parameter.required:
                raise Refused("is required")
        if query:
            target += "?" + "&".join(query)
        if cookies:
            headers.append(("cookie", "; ".join(cookies)))
        if binding.body is None:
            return HttpRequest(binding.method, target, tuple(headers))
        name = binding.body.argument or ""
        content = _content(binding.body, arguments)
    except Refused as error:
        return CallFailure(ErrorCode.INVALID_ARGUMENTS, f"argument {name!r} {error}" if name else f"body {error}")
    if content is None:
        return HttpRequest(binding.method, target, tuple(headers))
    headers.append(("content-type", content[1]))
    return HttpRequest(binding.method, target, tuple(headers), content[0])


def _add(
    parameter: Parameter, value: Json, query: list[str], headers: list[tuple[str, str]], cookies: list[str]
) -> None:
    if parameter.location == "query":
        serialize.query(parameter, value, query)
    elif value in (None, [], {}) and not parameter.json:
        return
    elif parameter.location == "header":
        headers.append((parameter.wire, serialize.header(parameter, value)))
    else:
        cookies.extend(serialize.cookie(parameter, value))


def _place(parameter: Parameter, arguments: Mapping[str, Json]) -> str:
    value = arguments.get(parameter.argument, _ABSENT)
    if value is _ABSENT:
        raise Refused("is required")
    if value is None:
        raise Refused("is null, but stands in the path")
    return serialize.path(parameter, value)


def _content(body: Body, arguments: Mapping[str, Json]) -> tuple[bytes, str] | None:
    """The body's bytes and Content-Type, or None where the call sends none."""
    if body.argument is not None:
        value = arguments.get(body.argument, _ABSENT)
        if value is _ABSENT:
            if body.required:
                raise Refused("is required")
            return None
    else:
        value = {field.name: arguments[field.argument] for field in body.fields if field.argument in arguments}
        if not value and not body.required:
            return None
    if body.kind == "json":
        content = serialize.json_bytes(value), body.content_type
    else:
        content = forms.write(body, value, {field.name: field for field in body.fields})
    if len(content[0]) > body.max_bytes:
        raise Refused(f"makes a body of {len(content[0])} bytes (limit openapi.max_body_bytes = {body.max_bytes})")
    return content
