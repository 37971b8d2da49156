"""MCP over stdin and stdout."""
