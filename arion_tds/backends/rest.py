"""REST tools: a call's arguments become a request to a cluster, its answer the tool's result.

In: RestBackend, the tool's output schema, arguments that its input schema accepted. Out: CallResult. Called by calls.
"""

from __future__ import annotations

from arion_tds.backends import transcode
from arion_tds.backends.clusters import Clusters
from arion_tds.backends.retry import IDEMPOTENT
from arion_tds.model.backend import RestBackend
from arion_tds.model.context import CallContext, Limits
from arion_tds.model.result import CallFailure, CallResult, failed
from arion_tds.schema import Schema


class RestCaller:
    """Calls REST backends over the given clusters. Holds nothing of a call."""

    def __init__(self, clusters: Clusters) -> None:
        """The clusters are shared, and closed by their owner."""
        self._clusters = clusters

    async def call(
        self,
        backend: RestBackend,
        output_schema: Schema | None,
        arguments: dict[str, object],
        limits: Limits,
        context: CallContext,
    ) -> CallResult:
        """The result of one call. Every failure is an `isError` result; only cancellation is raised."""
        request = transcode.build(backend, arguments)
        if isinstance(request, CallFailure):
            return failed(request)
        response = await self._clusters.send(backend.cluster, request, backend.policy, limits, context)
        if isinstance(response, CallFailure):
            return failed(response)
        return transcode.answer(output_schema, response, idempotent=backend.method in IDEMPOTENT)
