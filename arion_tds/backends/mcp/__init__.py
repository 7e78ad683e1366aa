"""MCP servers as backends: list their tools, call them, watch their lists. Both protocol eras, over HTTP and stdio."""
