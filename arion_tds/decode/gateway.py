"""The `mcp_gateway` block of a listener (McpGateway in proto JSON, either spelling) to a Gateway.

In: the parsed block, rules for its DataSources, and its path in the config. Out: the gateway or every mistake with its
path, and warnings. Static resources go through the same decoders as delivered ones. Called by config.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TypeVar

from arion_tds.decode import policy, protojson
from arion_tds.decode.case import Case
from arion_tds.decode.rules import DataRules
from arion_tds.decode.server import server
from arion_tds.decode.source import source
from arion_tds.decode.tool import tool
from arion_tds.decode.toolkit import toolkit
from arion_tds.model.gateway import CodeMode, Embeddings, Gateway, Search
from arion_tds.model.policy import DEFAULT_RESPONSE_BYTES, DEFAULT_TIMEOUT
from arion_tds.model.problem import Problem
from arion_tds.model.tool import Tool
from arion_tds.pb import mcp_gateway_pb2 as pb

_Message = TypeVar("_Message")
_Value = TypeVar("_Value")

_USUAL = Embeddings(cluster="", model_id="", dimensions=0)  # holds the defaults of the others


def gateway(block: object, rules: DataRules, where: str) -> tuple[Gateway | None, list[Problem], list[str]]:
    """The gateway, or None with every problem, and warnings. All their paths go on from `where`, the block's own.

    `rules.dimensions` is of no account: the block's own embeddings decide.
    """
    message = pb.McpGateway()
    problems: list[Problem] = []
    protojson.fill(block, message, where, problems)
    case = Case(rules)
    made = _gateway(message, case)
    unread = tuple(problem.where for problem in problems)
    found = [_below(where, problem) for problem in case.problems]
    problems += [problem for problem in found if not _follows(problem.where, unread)]
    return None if problems else made, problems, [str(_below(where, found)) for found in case.warnings]


def _follows(path: str, unread: tuple[str, ...]) -> bool:
    """Whether the finding only says that a field, which could not be read, is empty."""
    return any(path == other or path.startswith((f"{other}.", f"{other}[")) for other in unread)


def _below(where: str, found: Problem) -> Problem:
    return Problem(".".join(part for part in (where, found.where) if part), found.why)


def _gateway(message: pb.McpGateway, case: Case) -> Gateway:
    search = _search(message.search, case) if message.HasField("search") else None
    dimensions = search.embeddings.dimensions if search is not None and search.embeddings is not None else None
    rules = dataclasses.replace(case.rules, dimensions=dimensions)
    _owners(message, case)
    return Gateway(
        name=case.required("server_info.name", message.server_info.name),
        version=case.required("server_info.version", message.server_info.version),
        scope=_scope(message, case),
        code_mode=_mode(message, case),
        search=search,
        upstream_timeout=_timeout(message, case),
        max_response_bytes=_limit(message, case),
        tools=_each("tools", message.tools, _static_tool, case, rules),
        sources=_each(
            "open_api_tool_sources",
            message.open_api_tool_sources,
            lambda one, its: source(one, one.namespace, its),
            case,
            rules,
        ),
        servers=_each(
            "dynamic_mcp_servers",
            message.dynamic_mcp_servers,
            lambda one, its: server(one, one.namespace, its),
            case,
            rules,
        ),
        toolkits=_each(
            "code_mode.toolkits", message.code_mode.toolkits, lambda one, its: toolkit(one, one.name, its), case, rules
        ),
    )


def _each(
    field: str,
    messages: Iterable[_Message],
    decode: Callable[[_Message, Case], _Value | None],
    case: Case,
    rules: DataRules,
) -> tuple[_Value, ...]:
    """The values of a repeated field; each element is judged on its own and its findings join the gateway's."""
    values: list[_Value] = []
    for at, message in enumerate(messages):
        its = Case(rules)
        value = decode(message, its)
        case.problems += [_below(f"{field}[{at}]", found) for found in its.problems]
        case.warnings += [_below(f"{field}[{at}]", found) for found in its.warnings]
        if value is not None:
            values.append(value)
    return tuple(values)


def _static_tool(message: pb.Tool, case: Case) -> Tool | None:
    case.required("namespace", message.namespace)
    case.required("name", message.name)
    return tool(message, message.namespace, message.name, f"{message.namespace}.{message.name}", case)


def _scope(message: pb.McpGateway, case: Case) -> str | None:
    if not message.HasField("tds"):
        return None
    name, config = message.server_info.name, message.tds.config_name
    case.required("tds.config_name", config)
    for field, part in (("server_info.name", name), ("tds.config_name", config)):
        if "/" in part:
            case.refuse(field, f"is {part!r}: with tds it is a part of resource IDs and cannot hold '/'")
    return f"{name}/{config}"


def _timeout(message: pb.McpGateway, case: Case) -> float:
    if not message.HasField("upstream_timeout"):
        return DEFAULT_TIMEOUT
    return policy.seconds(message.upstream_timeout, "upstream_timeout", case) or DEFAULT_TIMEOUT


def _limit(message: pb.McpGateway, case: Case) -> int:
    if not message.HasField("max_upstream_response_bytes"):
        return DEFAULT_RESPONSE_BYTES
    return _at_least_one(message.max_upstream_response_bytes, "max_upstream_response_bytes", case)


def _at_least_one(value: int, field: str, case: Case) -> int:
    if value < 1:
        case.refuse(field, "is 0 or missing: it must be at least 1")
    return value


def _mode(message: pb.McpGateway, case: Case) -> CodeMode | None:
    """What code mode says, zero being the default; None in tools mode."""
    if message.WhichOneof("mode") is None:
        case.refuse("", "needs a mode: write `tools_mode: {}` or `code_mode: {}`")
    if not message.HasField("code_mode"):
        return None
    block, default = message.code_mode, CodeMode()
    if block.HasField("engine_artifact_path"):
        case.warn("code_mode.engine_artifact_path", "is not used by this gateway: ignored")
    timeout: float | None = None
    if block.HasField("execution_timeout"):
        timeout = policy.seconds(block.execution_timeout, "code_mode.execution_timeout", case)
    return CodeMode(
        execution_timeout=timeout or default.execution_timeout,
        max_host_calls=block.max_host_calls or default.max_host_calls,
        max_concurrent_executions=block.max_concurrent_executions or default.max_concurrent_executions,
        max_output_bytes=block.max_output_bytes or default.max_output_bytes,
        memory_limit_bytes=block.memory_limit_bytes or default.memory_limit_bytes,
        max_concurrent_tool_calls=block.max_concurrent_tool_calls or default.max_concurrent_tool_calls,
    )


def _search(message: pb.ToolSearch, case: Case) -> Search:
    limit: int | None = None
    if message.HasField("max_allowable_results"):
        limit = _at_least_one(message.max_allowable_results, "search.max_allowable_results", case)
    return Search(
        max_allowable_results=limit,
        embeddings=_embeddings(message.embeddings, case) if message.HasField("embeddings") else None,
    )


def _embeddings(message: pb.RemoteEmbeddings, case: Case) -> Embeddings:
    field = "search.embeddings"
    timeout: float | None = None
    if message.HasField("timeout"):
        timeout = policy.seconds(message.timeout, f"{field}.timeout", case)
    path = message.path or _USUAL.path
    if not path.startswith("/"):
        case.refuse(f"{field}.path", f"is {path!r}: it must start with '/'")
    batch = message.max_batch_size if message.HasField("max_batch_size") else _USUAL.max_batch_size
    return Embeddings(
        cluster=case.required(f"{field}.cluster", message.cluster),
        model_id=case.required(f"{field}.model_id", message.model_id),
        dimensions=_at_least_one(message.dimensions, f"{field}.dimensions", case),
        path=path,
        timeout=timeout or _USUAL.timeout,
        max_batch_size=_at_least_one(batch, f"{field}.max_batch_size", case),
    )


def _owners(message: pb.McpGateway, case: Case) -> None:
    """Refuse what two static resources claim: a tool's name, a toolkit's name, a namespace."""
    claimed: dict[str, str] = {}
    namespaces: dict[str, str] = {}
    for at, one in enumerate(message.tools):
        _claim(claimed, f"{one.namespace}.{one.name}", f"tools[{at}].name", case)
        namespaces.setdefault(one.namespace, f"tools[{at}].namespace")
    for field, several in (
        ("open_api_tool_sources", [one.namespace for one in message.open_api_tool_sources]),
        ("dynamic_mcp_servers", [one.namespace for one in message.dynamic_mcp_servers]),
    ):
        for at, namespace in enumerate(several):
            _claim(namespaces, namespace, f"{field}[{at}].namespace", case)
    toolkits: dict[str, str] = {}
    for at, kit in enumerate(message.code_mode.toolkits):
        _claim(toolkits, kit.name, f"code_mode.toolkits[{at}].name", case)


def _claim(claimed: dict[str, str], name: str, field: str, case: Case) -> None:
    other = claimed.setdefault(name, field)
    if other != field and name:
        case.refuse(field, f"is {name!r}, which {other} has already taken")
