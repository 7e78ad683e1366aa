"""arion-tds: an MCP gateway whose tool catalog is pushed by a control plane over delta xDS."""

__version__ = "0.1.0"
