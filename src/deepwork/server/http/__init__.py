"""MCP over HTTP, behind a guard and limits of our own."""
