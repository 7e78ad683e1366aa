"""From an OpenAPI document to tools, and from a call to its HTTP request. Pure."""
