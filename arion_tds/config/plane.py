"""The control plane's part of gateway.yaml as the value that the xDS client takes. Called by app."""

from __future__ import annotations

from collections.abc import Callable

import grpc

from arion_tds.config.file import ControlPlaneConfig, NodeConfig
from arion_tds.xds.wire import AdsSettings


def ads(
    settings: ControlPlaneConfig,
    node: NodeConfig,
    credentials: Callable[[], grpc.ChannelCredentials] | None,
    worker: int | None = None,
) -> AdsSettings:
    """`credentials` are asked for at each connection; None: plain text. `worker`: which one of several we are."""
    return AdsSettings(
        address=settings.address,
        node_id=node.id,
        node_cluster=node.cluster,
        subscription=settings.subscription,
        initial_fetch_timeout=settings.initial_fetch_timeout,
        connect_timeout=settings.connect_timeout,
        keepalive_time=settings.keepalive_time,
        keepalive_timeout=settings.keepalive_timeout,
        max_message_bytes=settings.max_message_bytes,
        backoff_base=settings.backoff_base,
        backoff_max=settings.backoff_max,
        max_unanswered=settings.max_unanswered,
        clusters=settings.clusters,
        server_name=None if settings.tls is None else settings.tls.server_name,
        credentials=credentials,
        worker=worker,
    )
