"""The official MCP conformance suite against a real gateway: `make conformance`. Each failure has its reason."""
