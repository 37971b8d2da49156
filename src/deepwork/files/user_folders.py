"""The user's own folders, outside of every project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def user_config_dir(environment: Mapping[str, str]) -> Path:
    """Say where programs keep the user's configuration."""
    return Path(environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))


def user_state_dir(environment: Mapping[str, str]) -> Path:
    """Say where decisions and reports of the user are kept."""
    home = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home) / "deepwork"
