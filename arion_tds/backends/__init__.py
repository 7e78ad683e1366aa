"""Where calls go: clusters, REST, MCP servers."""
