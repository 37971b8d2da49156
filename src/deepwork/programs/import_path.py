"""From where Python imports modules: never from a project."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from deepwork.errors import ConfigError


def check_import_path(root: Path) -> None:
    """Refuse a project that is on `sys.path` before the modules of this server.

    Raises:
        ConfigError: The project, or a folder in it, is on `sys.path`; the environment that runs us may lie in it.
    """
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    resolved = [os.path.realpath(entry) for entry in sys.path]
    ahead = resolved[: resolved.index(own)] if own in resolved else resolved
    environments = (Path(os.path.realpath(sys.prefix)), Path(os.path.realpath(sys.base_prefix)))
    for entry in map(Path, ahead):
        if entry.is_relative_to(root) and not any(map(entry.is_relative_to, environments)):
            raise ConfigError(
                f"Python would import modules from {str(entry)!r}, which lies in the project {str(root)!r}",
                hint="Take it out of PYTHONPATH, and start `deepwork` or `python -P -m deepwork`.",
            )
