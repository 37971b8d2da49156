"""What `deepwork doctor` asks of this plugin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from deepwork.api import Finding, Level


def check(project_root: Path) -> Iterator[Finding]:
    """Yield what works, and what does not and how to cure it."""
    if (project_root / ".deepwork").is_dir():
        yield Finding(Level.OK, "this project is prepared")
    else:
        yield Finding(Level.INFO, "this project is not prepared", cure="deepwork init")
