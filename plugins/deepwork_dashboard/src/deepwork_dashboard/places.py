"""Where the pages are, where one shows an item of the inbox, and which of them the host serves to everybody."""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"
# They hold no data, and logging in needs them.
PUBLIC = ("", "static/")
# The page of an item of the inbox, below the mount.
ITEM = "#/inbox/{id}"
