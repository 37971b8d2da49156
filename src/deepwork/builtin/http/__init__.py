"""The feature `http`: MCP over HTTP and SSE, and the pages of plugins."""
