"""Goes on with a session until it is done, with any agent and after any interruption."""

from __future__ import annotations

__version__ = "1.0.0.dev0"
