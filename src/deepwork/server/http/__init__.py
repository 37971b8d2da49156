"""MCP over HTTP: who may call, what a request may cost, and what FastMCP serves."""
