"""One operation of a document to one tool.

In: the operation, its path item and its name. Out: a Tool and its size, or Unusable with the reason. Called by expand.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import msgspec

from arion_tds import schema as json_schema
from arion_tds.model.backend import OperationBackend
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.openapi import body as bodies
from arion_tds.openapi import naming, output
from arion_tds.openapi.binding import Binding, Body, Parameter
from arion_tds.openapi.limits import Limits
from arion_tds.openapi.parameters import Argument, Reader
from arion_tds.openapi.refs import Document, Key, Unusable, escape
from arion_tds.openapi.schemas import Converter, TooLarge
from arion_tds.openapi.text import clean
from arion_tds.openapi.value import Json
from arion_tds.schema import EMPTY_OBJECT, Schema

_encode = msgspec.json.Encoder().encode
_PLACE = re.compile(r"\{([^{}/]*)\}")
_LITERAL_SAFE: Final = "!$&'()*+,;=:@%~/"
_QUERY_SAFE: Final = "!$&'()*+,;=:@%~/?"
METHODS: Final = ("GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "QUERY")
"""Methods that are served. TRACE, CONNECT and what 3.2's additionalOperations may name are not."""

_HINTS: Final = {
    "GET": b'{"readOnlyHint":true}',
    "HEAD": b'{"readOnlyHint":true}',
    "OPTIONS": b'{"readOnlyHint":true}',
    "QUERY": b'{"readOnlyHint":true}',
    "PUT": b'{"idempotentHint":true}',
    "DELETE": b'{"destructiveHint":true,"idempotentHint":true}',
}


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """One operation as found. `where` is its JSON Pointer, `item` its path item (resolved) and where that stands."""

    method: str
    path: str
    node: Json
    item: dict[str, Json]
    item_at: str
    where: str

    @property
    def id(self) -> str | None:
        """The operationId, where there is a usable one."""
        value = self.node.get("operationId") if isinstance(self.node, dict) else None
        return value if isinstance(value, str) and value else None

    @property
    def label(self) -> str:
        """`METHOD /path`."""
        return f"{self.method} {self.path}"


class Builder:
    """Makes the tools of one source. One expansion."""

    def __init__(self, document: Document, source: OpenApiSource, limits: Limits, wanted: str) -> None:
        """`wanted` is what becomes of response schemas: loose, strict or off."""
        self.requests = Converter(document, limits, response=False)
        self._bare = Converter(document, limits, response=False, bare=True)
        self.responses = tuple(
            Converter(document, limits, response=True, loose=wanted == "loose", bare=bare)
            for bare in ((False, True) if wanted != "off" else ())
        )
        self._document = document
        self._source = source
        self._limits = limits
        self._reader = Reader(document, self.requests)
        self._shared: dict[Parameter, Parameter] = {}

    def tool(self, operation: Operation, name: str) -> Tool:
        """The tool. Raises Unusable with the reason why the operation cannot be served."""
        node = _usable(operation)
        arguments = self._reader.read(
            [
                (operation.item.get("parameters"), f"{operation.item_at}/parameters"),
                (node.get("parameters"), f"{operation.where}/parameters"),
            ]
        )
        arguments = [one for one in arguments if self._has_place(one, operation)]
        plan = self._body(operation, node)
        inputs = _Inputs(arguments, plan, operation.where)
        schema = self._input_schema(inputs, operation.where)
        output_schema, accept = output.read(self._document, self.responses, node, operation.where)
        if operation.method == "HEAD":
            output_schema = None
        binding = self._binding(operation, inputs, accept)
        hints = _HINTS.get(operation.method)
        return Tool(
            namespace=self._source.namespace,
            name=name,
            description=self._description(operation, node),
            input_schema=schema,
            output_schema=output_schema,
            backend=OperationBackend(binding, self._source.cluster, self._source.policy),
            rbac=self._source.rbac,
            eager=self._source.eager,
            extra=b',"annotations":' + hints if hints else b"",
        )

    def _has_place(self, argument: Argument, operation: Operation) -> bool:
        """A path parameter that its path does not mention cannot be sent: it is no argument."""
        if argument.location != "path" or f"{{{argument.name}}}" in operation.path:
            return True
        self.requests.warn(argument.where, f"path parameter {argument.name!r} has no place in {operation.path}")
        return False

    def _body(self, operation: Operation, node: dict[str, Json]) -> bodies.Plan | None:
        if "requestBody" not in node:
            return None
        where = f"{operation.where}/requestBody"
        if operation.method in ("GET", "HEAD") and self._document.is_30:
            # OpenAPI 3.0, Operation Object: the body "SHALL be ignored" where HTTP gives it no meaning.
            return None
        return bodies.plan(self._document, self.requests, node["requestBody"], where)

    def _description(self, operation: Operation, node: dict[str, Json]) -> str:
        limit = self._limits.max_description_chars
        text = ""
        for value in (node.get("summary"), node.get("description"), operation.item.get("summary")):
            text = text or clean(value, limit)
        text = text or operation.label[:limit]
        return f"Deprecated. {text}" if node.get("deprecated") is True else text

    def _input_schema(self, inputs: _Inputs, where: str) -> Schema:
        if not inputs.properties:
            return EMPTY_OBJECT
        limit = self._limits.max_input_schema_bytes
        root: dict[str, Json] = {"type": "object", "properties": inputs.properties}
        if inputs.required:
            root["required"] = inputs.required
        root["additionalProperties"] = False
        try:
            text = _encode(self._with_defs(root, self.requests, inputs, where))
        except TooLarge:
            text = b""
        if (not text or len(text) > self._limits.warn_input_schema_bytes) and inputs.refs:
            text = _encode(self._with_defs(root, self._bare, inputs, where))
            why = f"input schema is large: descriptions in its $defs are left out, {len(text)} bytes remain"
            self.requests.warn(where, why)
        if len(text) > limit:
            raise Unusable(
                where,
                f"input schema of {len(text)} bytes is too large {self._limits.named('max_input_schema_bytes')}",
            )
        problem = json_schema.check(root)
        if problem is not None:
            raise Unusable(where, f"input schema is {problem}")
        return Schema(text)

    def _with_defs(self, root: dict[str, Json], converter: Converter, inputs: _Inputs, where: str) -> dict[str, Json]:
        """`root` with the `$defs` that its references need, in place of those it has."""
        root.pop("$defs", None)
        defs = converter.closure(inputs.refs, where, "max_input_schema_bytes")
        if defs:
            root["$defs"] = defs
        return root

    def _binding(self, operation: Operation, inputs: _Inputs, accept: str) -> Binding:
        path, _, _ = operation.path.partition("#")
        path, _, literal_query = path.partition("?")
        parameters = [self._shared.setdefault(parameter, parameter) for parameter in inputs.parameters]
        places = {parameter.wire: parameter for parameter in parameters if parameter.location == "path"}
        if any(unquote(segment) in (".", "..") for segment in path.split("/")):
            raise Unusable(operation.where, "path has a dot segment")
        base = self._base(operation)
        parts: list[str | Parameter] = []
        at = 0
        for found in _PLACE.finditer(path):
            place = places.get(quote(found.group(1), safe=""))
            if place is None:
                raise Unusable(operation.where, f"path has {{{found.group(1)}}}, but no path parameter of that name")
            parts.extend((path[at : found.start()], place))
            at = found.end()
        parts.append(path[at:])
        parts[0] = base + str(parts[0])
        return Binding(
            method=operation.method,
            path=tuple(
                _literal(part, operation.where) if isinstance(part, str) else part for part in parts if part != ""
            ),
            accept=accept,
            query=quote(literal_query, safe=_QUERY_SAFE),
            parameters=tuple(parameter for parameter in parameters if parameter.location != "path"),
            body=inputs.body,
            defaults=tuple(inputs.defaults),
        )

    def _base(self, operation: Operation) -> str:
        """What stands before the path: the source's path_prefix, else the first server's path. No trailing slash."""
        if self._source.path_prefix is not None:
            prefix = self._source.path_prefix.strip("/")
            return f"/{prefix}" if prefix else ""
        holders = (
            (operation.node, f"{operation.where}/servers"),
            (operation.item, f"{operation.item_at}/servers"),
            (self._document.root, "/servers"),
        )
        for holder, where in holders:
            servers = holder.get("servers")
            if isinstance(servers, list) and servers:
                if holder is not self._document.root and "//" in str(servers[0]):
                    self.requests.warn(
                        where, f"only the path of this server counts: calls go to {self._source.cluster!r}"
                    )
                return server_path(servers[0], f"{where}/0")
        return ""


class _Inputs:
    """The arguments of one operation under their final names: schema properties and what sends them."""

    def __init__(self, arguments: list[Argument], plan: bodies.Plan | None, where: str) -> None:
        self.properties: dict[str, Json] = {}
        self.required: list[str] = []
        self.refs: dict[Key, None] = {}
        self.parameters: list[Parameter] = []
        self.defaults: list[tuple[str, object]] = []
        self.body: Body | None = None
        in_body = plan.properties if plan is not None else {}
        self._taken = {argument.name for argument in arguments} | set(in_body)
        names: dict[str, int] = {}
        for argument in arguments:
            names[argument.name] = names.get(argument.name, 0) + 1
        for argument in arguments:
            shared = names[argument.name] > 1 or argument.name in in_body
            name = self._add(argument.name, argument.schema, f"__{argument.location}" if shared else "", where)
            self.refs.update(dict.fromkeys(argument.refs))
            required = argument.required and not self._filled(name, argument.schema)
            if required:
                self.required.append(name)
            self.parameters.append(_parameter(argument, name, required=required))
        if plan is not None:
            self._add_body(plan, where)

    def _add(self, name: str, schema: Json, suffix: str, where: str) -> str:
        final = naming.argument(name)[: 64 - len(suffix)] + suffix
        if final != name and not suffix and (final in self._taken or final in self.properties):
            final = naming.hashed(final, name, 64)
        if final in self.properties:
            raise Unusable(where, f"two arguments would be called {final!r}")
        if final != name and not suffix and isinstance(schema, dict) and "description" not in schema:
            schema = {**schema, "title": name}
        self.properties[final] = schema
        return final

    def _filled(self, name: str, schema: Json) -> bool:
        """A required argument with a default is optional: the default is filled in before sending."""
        if isinstance(schema, dict) and schema.get("default") is not None:
            self.defaults.append((name, schema["default"]))
            return True
        return False

    def _add_body(self, plan: bodies.Plan, where: str) -> None:
        final = {name: self._add(name, schema, "", where) for name, schema in plan.properties.items()}
        self.refs.update(dict.fromkeys(plan.refs))
        for name in plan.required:
            if plan.body.argument is not None or not self._filled(final[name], plan.properties[name]):
                self.required.append(final[name])
        self.body = dataclasses.replace(
            plan.body,
            argument=final["body"] if plan.body.argument is not None else None,
            fields=tuple(
                dataclasses.replace(field, argument=final.get(field.name, field.name)) for field in plan.body.fields
            ),
        )


def _parameter(argument: Argument, name: str, *, required: bool) -> Parameter:
    return Parameter(
        argument=name,
        wire=argument.wire,
        location=argument.location,
        style=argument.style,
        explode=argument.explode,
        reserved=argument.reserved,
        json=argument.json,
        required=required,
    )


def _usable(operation: Operation) -> dict[str, Json]:
    node = operation.node
    if not isinstance(node, dict):
        raise Unusable(operation.where, "an operation must be an object")
    if "$ref" in node:
        raise Unusable(
            operation.where, f"operation is a reference to {str(node['$ref'])[:200]!r}: write it into the document"
        )
    if operation.method not in METHODS:
        raise Unusable(operation.where, f"method {operation.method[:20]!r} is not supported")
    return node


def _literal(text: str, where: str) -> str:
    """A path part as the document gives it, with what may not stand in a URL encoded once."""
    if "{" in text or "}" in text:
        raise Unusable(where, f"path has an unbalanced brace near {text[:60]!r}")
    return quote(text, safe=_LITERAL_SAFE)


def server_path(server: Json, where: str) -> str:
    """The path of a server's URL with its variables' defaults, without trailing slash. Its host is never used."""
    url = server.get("url") if isinstance(server, dict) else None
    if not isinstance(url, str):
        raise Unusable(where, "a server needs a url")
    variables = server.get("variables")
    known = variables if isinstance(variables, dict) else {}

    def default(found: re.Match[str]) -> str:
        variable = known.get(found.group(1))
        value = variable.get("default") if isinstance(variable, dict) else None
        return str(value) if value is not None else found.group(0)

    try:
        path = urlsplit(_PLACE.sub(default, url)).path
    except ValueError as error:
        raise Unusable(f"{where}/url", f"server URL {url[:100]!r} cannot be read: {error}") from error
    missing = _PLACE.search(path)
    if missing is not None:
        raise Unusable(f"{where}/variables", f"server variable {escape(missing.group(1))!r} has no default")
    if any(unquote(segment) in (".", "..") for segment in path.split("/")):
        raise Unusable(f"{where}/url", f"server path {path[:60]!r} has a dot segment")
    path = path.strip("/")
    return f"/{path}" if path else ""
