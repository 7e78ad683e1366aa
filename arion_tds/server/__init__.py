"""The MCP front of a listener: both protocol eras, sessions, notifications, search over HTTP."""
