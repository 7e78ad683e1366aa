"""What the OpenAPI tests share: a case file or inline document to its tools, a call to its request."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arion_tds.model.backend import OperationBackend
from arion_tds.model.http import HttpRequest, HttpResponse
from arion_tds.model.problem import Problem
from arion_tds.model.result import CallFailure, CallResult
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.openapi.binding import Binding
from arion_tds.openapi.expand import Expansion, expand
from arion_tds.openapi.limits import Limits, Output
from arion_tds.openapi.request import build
from arion_tds.openapi.respond import respond

CASES = Path(__file__).parent / "cases"


@dataclasses.dataclass(frozen=True)
class Opened:
    """An expansion, with the questions that tests ask of it."""

    expansion: Expansion

    @property
    def names(self) -> list[str]:
        assert self.expansion.problems == ()
        return [tool.name for tool in self.expansion.tools]

    @property
    def problems(self) -> str:
        return "\n".join(map(str, self.expansion.problems))

    @property
    def skipped(self) -> tuple[Problem, ...]:
        return self.expansion.skipped

    def tool(self, name: str) -> Tool:
        assert self.expansion.problems == ()
        return next(tool for tool in self.expansion.tools if tool.name == name)

    def input(self, name: str) -> Any:
        return self.tool(name).input_schema.value()

    def output(self, name: str) -> Any:
        schema = self.tool(name).output_schema
        return None if schema is None else schema.value()

    def accepts(self, name: str, arguments: Any) -> bool:
        return self.tool(name).input_schema.matches(arguments)

    def binding(self, name: str) -> Binding:
        backend = self.tool(name).backend
        assert isinstance(backend, OperationBackend)
        assert isinstance(backend.binding, Binding)
        return backend.binding

    def send(self, name: str, /, **arguments: Any) -> HttpRequest:
        """The request of a call that the input schema accepts."""
        assert self.tool(name).input_schema.mismatch(arguments) is None
        made = build(self.binding(name), arguments)
        assert isinstance(made, HttpRequest), made
        return made

    def refused(self, name: str, /, **arguments: Any) -> str:
        """Why a call is not sent."""
        made = build(self.binding(name), arguments)
        assert isinstance(made, CallFailure), made
        assert made.code == "invalid_arguments"
        return made.message

    def answer(self, name: str, status: int, body: bytes, content_type: str = "application/json") -> CallResult:
        response = HttpResponse(status, (("content-type", content_type),) if content_type else (), body)
        return respond(self.binding(name), self.tool(name).output_schema, response)


Open = Callable[..., Opened]


@pytest.fixture
def opened() -> Open:
    """`opened("case")` or `opened(text)`, with settings of the source and the expansion."""

    def opening(
        document: str, *, output: Output = "loose", limits: Limits | None = None, namespace: str = "t", **settings: Any
    ) -> Opened:
        content = document.encode() if "\n" in document else (CASES / f"{document}.yaml").read_bytes()
        source = OpenApiSource(namespace=namespace, document=content, cluster="upstream", **settings)
        return Opened(expand(source, limits or Limits(), output))

    return opening


@pytest.fixture
def operation(opened: Open) -> Callable[..., Opened]:
    """One operation `call`, `POST /call` unless told otherwise, from the inside of its object as YAML flow text."""

    def one(inside: str, *, version: str = "3.1.0", path: str = "/call", method: str = "post", **rest: Any) -> Opened:
        components = rest.pop("components", "{}")
        text = (
            f"openapi: {version}\ninfo: {{title: t, version: '1'}}\npaths:\n"
            f"  {path}:\n    {method}: {{operationId: call, {inside}}}\ncomponents: {components}\n"
        )
        return opened(text, **rest)

    return one
