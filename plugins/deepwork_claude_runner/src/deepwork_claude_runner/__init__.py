"""Claude Code as a reviewer of DeepWork steps."""

from __future__ import annotations

__version__ = "1.0.0.dev0"
