"""Review rules next to the code they guard."""

from __future__ import annotations
