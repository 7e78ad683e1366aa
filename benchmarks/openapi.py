"""OpenAPI expansion and request building: `python -m benchmarks.openapi [DIRECTORY]` prints one JSON line.

DIRECTORY holds documents (*.json, *.yaml, *.yml); without it one of 1,000 operations is made up. Per document: CPU from
bytes to tools, bytes of the whole tools/list, and what was skipped. Then the CPU of building one typical request, and
through the worker process the gateway's own CPU and its event loop's longest stall for the largest document.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from arion_tds.expansion import Expander
from arion_tds.model.names import Naming
from arion_tds.model.source import OpenApiSource
from arion_tds.openapi.binding import Binding
from arion_tds.openapi.expand import expand
from arion_tds.openapi.limits import Limits
from arion_tds.openapi.request import build
from arion_tds.view import entry

TYPICAL = b"""
openapi: 3.1.0
info: {title: typical, version: "1"}
servers: [{url: "https://api.example.test/v3"}]
paths:
  /orgs/{org}/repos/{repo}/issues:
    post:
      operationId: create
      parameters:
        - {name: org, in: path, required: true, schema: {type: string}}
        - {name: repo, in: path, required: true, schema: {type: string}}
        - {name: notify, in: query, schema: {type: boolean}}
        - {name: X-Version, in: header, schema: {type: string}}
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [title]
              properties:
                title: {type: string}
                body: {type: string}
                labels: {type: array, items: {type: string}}
                assignee: {type: string}
"""


def synthetic(operations: int) -> bytes:
    """A document of that many operations over shared components."""
    schemas = {
        f"S{n}": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "next": {"$ref": f"#/components/schemas/S{(n + 1) % 50}"}},
        }
        for n in range(50)
    }
    paths = {
        f"/things{n}/{{id}}": {
            "put": {
                "operationId": f"things/put-{n}",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/S{n % 50}"}}}
                },
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/S{n % 50}"}}}}
                },
            }
        }
        for n in range(operations)
    }
    return json.dumps({"openapi": "3.1.0", "info": {}, "paths": paths, "components": {"schemas": schemas}}).encode()


def one(data: bytes) -> dict[str, Any]:
    source = OpenApiSource(namespace="api", document=data, cluster="c", skip_unsupported=True)
    best = 1e9
    for _ in range(3):
        started = time.process_time()
        found = expand(source, Limits())
        best = min(best, time.process_time() - started)
    skipped = len(found.skipped) if len(found.skipped) <= 20 else 20 + int(found.skipped[-1].why.split()[1])
    return {
        "cpu_ms": round(best * 1e3, 1),
        "tools": len(found.tools),
        "skipped": skipped,
        "list_bytes": sum(len(entry(tool, Naming.QUALIFIED).modern) + 1 for tool in found.tools),
        "rejected": [str(problem)[:120] for problem in found.problems[:1]],
    }


def request_us(count: int = 20_000) -> tuple[float, float]:
    """CPU of building one typical request, and of checking its arguments."""
    tool = expand(OpenApiSource(namespace="api", document=TYPICAL, cluster="c"), Limits()).tools[0]
    binding = tool.backend.binding  # type: ignore[union-attr]
    assert isinstance(binding, Binding)
    arguments = {
        "org": "acme",
        "repo": "the repo",
        "notify": True,
        "X-Version": "7",
        "title": "T",
        "labels": ["a", "b"],
    }
    started = time.process_time()
    for _ in range(count):
        build(binding, arguments)
    built = time.process_time()
    for _ in range(count):
        tool.input_schema.matches(arguments)
    return (built - started) / count * 1e6, (time.process_time() - built) / count * 1e6


async def through_worker(data: bytes) -> dict[str, float]:
    """What the gateway's own process pays for one expansion in a warm worker."""
    expander = Expander(Limits())
    source = OpenApiSource(namespace="api", document=data, cluster="c", skip_unsupported=True)
    worst = 0.0

    async def watch() -> None:
        nonlocal worst
        while True:  # CPU, not wall time: what else the machine does is not this loop's stall
            started = time.process_time()
            await asyncio.sleep(0)
            worst = max(worst, time.process_time() - started)

    await expander.expand(source)
    cpu, wall = time.process_time(), time.perf_counter()
    await expander.expand(source)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    watching = asyncio.create_task(watch())
    await expander.expand(source)
    watching.cancel()
    await expander.close()
    return {"gateway_cpu_ms": round(cpu * 1e3, 1), "wall_ms": round(wall * 1e3), "stall_cpu_ms": round(worst * 1e3, 1)}


def main(directory: str | None) -> None:
    documents = {"synthetic-1000": synthetic(1000)}
    if directory is not None:
        paths = sorted(path for path in Path(directory).iterdir() if path.suffix in (".json", ".yaml", ".yml"))
        documents = {path.name: path.read_bytes() for path in paths}
    largest = max(documents.values(), key=len)
    build_us, validate_us = request_us()
    print(
        json.dumps(
            {
                "documents": {name: one(data) for name, data in documents.items()},
                "build_request_us": round(build_us, 2),
                "validate_arguments_us": round(validate_us, 2),
                "largest_through_worker": asyncio.run(through_worker(largest)),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
