"""Other gateways in front of the same services: `python -m benchmarks.peers` compares them with ours."""
