"""Where the pages are, and which of them the host serves to everybody."""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"
# They hold no data, and logging in needs them.
PUBLIC = ("", "static/")
