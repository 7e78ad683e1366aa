"""An OpenAPI source to tools: the whole way, pure.

In: a source (document bytes and settings), limits, and what becomes of response schemas. Out: an `Expansion`. Called by
worker, in a process of its own: a big document costs a second of CPU.

Order: decode, judge the document, select operations (include, exclude), name all of them, then build the selected ones.
An operation that nobody asked for is never judged. The same bytes give the same Expansion, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from arion_tds.model.problem import Problem
from arion_tds.model.source import OpenApiSource
from arion_tds.model.tool import Tool
from arion_tds.openapi import check, naming
from arion_tds.openapi import document as documents
from arion_tds.openapi.job import Expansion
from arion_tds.openapi.limits import Limits, Output
from arion_tds.openapi.operations import Builder, Operation
from arion_tds.openapi.refs import Document, Unusable, escape

MAX_LISTED: Final = 20
"""Problems or warnings that are listed; what is beyond is counted."""

MAX_SKIPPED: Final = 200
"""Skipped operations that are listed; what is beyond is counted."""

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")


def expand(source: OpenApiSource, limits: Limits, output: Output = "loose") -> Expansion:
    """The source's tools in the document's order, or every reason why it is rejected."""
    decoded = documents.decode(source.document, limits)
    problems = check.source(source)
    if isinstance(decoded, Problem):
        return Expansion(problems=listed([*problems, decoded]))
    version = check.version(decoded.root)
    if isinstance(version, Problem):
        return Expansion(problems=listed([*problems, version]))
    problems += check.document(decoded.root)
    if problems:
        return Expansion(problems=listed(problems))
    return _Expanding(Document(decoded.root, version), source, limits, output, list(decoded.warnings)).run()


def listed(problems: Iterable[Problem], limit: int = MAX_LISTED) -> tuple[Problem, ...]:
    """The first ones, each once, and how many more there are."""
    found = list(dict.fromkeys(problems))
    if len(found) <= limit:
        return tuple(found)
    return (*found[:limit], Problem("", f"and {len(found) - limit} more"))


class _Expanding:
    """One expansion under way."""

    def __init__(
        self, document: Document, source: OpenApiSource, limits: Limits, output: Output, warnings: list[Problem]
    ) -> None:
        self._document = document
        self._source = source
        self._limits = limits
        self._output: Output = output
        self._warnings = warnings
        self._problems: list[Problem] = []
        self._unsupported: list[Problem] = []

    def run(self) -> Expansion:
        operations = self._operations()
        limit = naming.name_limit(self._source.namespace, self._limits.max_name_chars)
        names = naming.assign([(one.id, one.method, one.path) for one in operations], limit)
        selected = self._select(operations, names)
        tools = self._build(self._without_duplicates(selected))
        if self._unsupported and not self._source.skip_unsupported:
            self._problems.extend(self._unsupported)
        if not self._problems and not tools:
            if operations:
                self._problems.append(Problem("/paths", "no operation is left to make a tool of"))
                self._problems.extend(self._unsupported)
            else:
                self._warnings.append(Problem("/paths", "the document has no operations: the source has no tools"))
        if self._problems:
            return Expansion(warnings=listed(self._warnings), problems=listed(self._problems))
        return Expansion(tools=tools, skipped=listed(self._unsupported, MAX_SKIPPED), warnings=listed(self._warnings))

    def _operations(self) -> list[Operation]:
        """Every operation in document order, those that cannot be served included."""
        found: list[Operation] = []
        for path, raw in self._document.section("paths").items():
            if path.startswith("x-"):
                continue
            where = f"/paths/{escape(path)}"
            try:
                at, item = self._document.follow(raw, where)
            except Unusable as error:
                self._unsupported.append(error.problem)
                continue
            if not isinstance(item, dict):
                self._unsupported.append(Problem(where, "a path item must be an object"))
                continue
            if item is not raw:
                item = {**item, **{key: value for key, value in raw.items() if key != "$ref"}}
            found.extend(
                Operation(method.upper(), path, item[method], item, at, f"{where}/{method}")
                for method in item
                if method in _METHODS
            )
            more = item.get("additionalOperations")
            found.extend(
                Operation(method, path, node, item, at, f"{where}/additionalOperations/{escape(method)}")
                for method, node in (more.items() if isinstance(more, dict) else ())
            )
        if len(found) > self._limits.max_operations:
            self._problems.append(
                Problem("/paths", f"{len(found)} operations are too many {self._limits.named('max_operations')}")
            )
            return []
        return found

    def _select(self, operations: list[Operation], names: list[str]) -> list[tuple[Operation, str]]:
        """The operations to serve, by operationId, tool name or `METHOD /path`."""
        known: dict[str, list[int]] = {}
        for index, operation in enumerate(operations):
            for word in {operation.id, names[index], operation.label}:
                if word is not None:
                    known.setdefault(word, []).append(index)
        chosen = set(range(len(operations)))
        if self._source.include:
            chosen = set(self._matched(known, self._source.include, "include_operations", self._problems))
            self._unsupported.clear()  # path items that could not be read: nobody asked for those
        if self._source.exclude:
            chosen -= set(self._matched(known, self._source.exclude, "exclude_operations", self._warnings))
        return [(operations[index], names[index]) for index in sorted(chosen)]

    def _matched(
        self, known: dict[str, list[int]], words: tuple[str, ...], field: str, missing: list[Problem]
    ) -> list[int]:
        found: list[int] = []
        for word in words:
            method, _, rest = word.partition(" ")
            indices = known.get(word) or (known.get(f"{method.upper()} {rest}") if rest else None)
            if indices is None:
                why = f"{word[:100]!r} matches no operation (an operationId, a tool name or METHOD /path is expected)"
                missing.append(Problem(field, why))
            else:
                found.extend(indices)
        return found

    def _without_duplicates(self, selected: list[tuple[Operation, str]]) -> list[tuple[Operation, str]]:
        """Operations that share an operationId: all of them are refused, since no rule could tell them apart."""
        by_name: dict[str, list[Operation]] = {}
        for operation, name in selected:
            by_name.setdefault(name, []).append(operation)
        kept: list[tuple[Operation, str]] = []
        for operation, name in selected:
            same = by_name[name]
            if len(same) == 1:
                kept.append((operation, name))
                continue
            others = ", ".join(other.label for other in same if other is not operation)
            self._unsupported.append(
                Problem(
                    f"{operation.where}/operationId", f"{operation.id or name!r} is also the operationId of {others}"
                )
            )
        return kept

    def _build(self, selected: list[tuple[Operation, str]]) -> tuple[Tool, ...]:
        builder = Builder(self._document, self._source, self._limits, self._output)
        tools: list[Tool] = []
        size = 0
        for operation, name in selected:
            try:
                tool = builder.tool(operation, name)
            except Unusable as error:
                self._unsupported.append(self._located(error.problem, operation))
                continue
            size += len(tool.input_schema.text) + len(tool.output_schema.text if tool.output_schema else b"")
            if size > self._limits.max_table_bytes:
                why = f"the tools' schemas are too large together {self._limits.named('max_table_bytes')}"
                self._problems.append(Problem("/paths", why))
                return ()
            tools.append(tool)
        for converter in (builder.requests, *builder.responses):
            self._warnings.extend(converter.warnings)
        return tuple(tools)

    def _located(self, problem: Problem, operation: Operation) -> Problem:
        """A problem that stands elsewhere in the document also says which operation it costs."""
        if problem.where.startswith(operation.where):
            return problem
        return Problem(operation.where, f"{problem.why} (at {problem.where or '/'})")
