"""The first sentences of the commands of plugins, remembered until other distributions are installed.

The root's help would otherwise import every plugin, with its own imports.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from deepwork import __version__
from deepwork.paths.folder import Folder
from deepwork.paths.user_folders import user_config_dir, user_state_dir

_FILE = "commands.json"
_METADATA = (".dist-info", ".egg-info", ".egg-link", ".pth")
_VARIABLES = ("DEEPWORK_NO_PLUGINS", "DEEPWORK_STRICT_PLUGINS")


class _Complaints(logging.Filter):
    """Counts what is logged: while a plugin is broken, every run says so."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Let everything pass."""
        self.count += record.levelno >= logging.WARNING
        return True


def plugin_summaries(load: Callable[[], Mapping[str, click.Command]]) -> dict[str, str]:
    """Return the first sentence of every command of a plugin, by name."""
    key = installation(Path(os.environ.get("DEEPWORK_PROJECT", ".")))
    folder = user_state_dir(os.environ)
    summaries = _remembered(folder, key)
    if summaries is not None:
        return summaries
    complaints = _Complaints()
    handler = logging.lastResort  # commands set up no other
    if handler:
        handler.addFilter(complaints)
    commands = load()
    summaries = {name: _first_paragraph(command) for name, command in commands.items() if not command.hidden}
    if not complaints.count:
        _remember(folder, {"key": key, "modules": _stamps(_module_folders()), "summaries": summaries})
    return summaries


def installation(project: Path) -> str:
    """Return a key that differs for other installed distributions or another configuration."""
    parts: list[Any] = [__version__, sys.version, [os.environ.get(name) for name in _VARIABLES]]
    for folder in map(Path, dict.fromkeys(path or "." for path in sys.path)):
        with suppress(OSError), os.scandir(folder) as entries:
            parts.append(
                [
                    str(folder),
                    sorted((entry.name, _mtime(entry)) for entry in entries if entry.name.endswith(_METADATA)),
                ]
            )
    for file in (user_config_dir(os.environ) / "deepwork" / "config.yml", project / ".deepwork" / "config.yml"):
        with suppress(OSError):
            status = file.stat()
            parts.append([str(file.absolute()), status.st_mtime_ns, status.st_size])
    return sha256(json.dumps(parts).encode()).hexdigest()


def _mtime(entry: os.DirEntry[str]) -> int:
    return entry.stat(follow_symlinks=False).st_mtime_ns


def _module_folders() -> list[str]:
    """Return the folders of the plugins' modules: an editable install changes without a trace elsewhere."""
    import importlib_metadata

    points = importlib_metadata.entry_points(group="deepwork")
    files = [getattr(sys.modules.get(point.module), "__file__", None) for point in points]
    return sorted({os.path.dirname(file) for file in files if file})


def _stamps(folders: Iterable[str]) -> dict[str, int]:
    """Return the time of the last change of each folder's modules."""
    stamps = {}
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            stamps[folder] = max((_mtime(entry) for entry in entries if entry.name.endswith(".py")), default=0)
    return stamps


def _remembered(folder: Path, key: str) -> dict[str, str] | None:
    try:
        with Folder.open(folder, inside=folder) as opened:
            data = json.loads(opened.read(_FILE) or b"{}")
        if data["key"] == key and data["modules"] == _stamps(data["modules"]):
            return {str(name): str(text) for name, text in data["summaries"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def _remember(folder: Path, data: dict[str, Any]) -> None:
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with Folder.open(folder, inside=folder) as opened:
            opened.replace(_FILE, json.dumps(data).encode(), synced=False)


def _first_paragraph(command: click.Command) -> str:
    text = command.short_help or (command.help or "").strip().split("\n\n")[0]
    return " ".join(text.split())
