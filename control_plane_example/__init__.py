"""An example control plane: a real delta xDS server for TDS, and a scriptable mock of one for other people's tests.

In: documents of a folder or of HTTP `PUT`s. Out: the four TDS resource types over
`envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources`.

    python -m control_plane_example DIR --address 127.0.0.1:50051 --http 127.0.0.1:50052

It is the second implementation of the wire on purpose: discovery messages are built and read with `envoy_data_plane`
(betterproto2), and of the gateway it knows nothing but the generated resource messages (`arion_tds.pb`).
"""
