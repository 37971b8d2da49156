"""That an agent has no message, remembered for as long as nothing can have brought one.

A hook runs after each call of an agent, and loading the plugins and a database to find no message takes far longer than
everything else that it does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from deepwork.cli.command_cache import installation
from deepwork.files.folder import Folder
from deepwork.files.user_folders import user_state_dir

_FILE = "quiet-mail.json"
# Agents that are remembered; a session of a client is one.
MAX_AGENTS = 50

Stamps = Mapping[str, list[int] | None]


def stamps_of(files: Iterable[str | Path]) -> Stamps:
    """Give what differs after every change of a file; None for one that does not exist."""
    return {str(file): _stamp(file) for file in files}


def is_quiet(root: Path, agent_id: str) -> bool:
    """Say whether there was no message when the files were as they are now."""
    known = _read().get(_key(root, agent_id))
    return isinstance(known, dict) and bool(known) and known == stamps_of(known)


def remember(root: Path, agent_id: str, stamps: Stamps) -> None:
    """Note that there was no message when the files had these stamps."""
    folder = user_state_dir(os.environ)
    with suppress(OSError):
        key = _key(root, agent_id)
        others = [(name, value) for name, value in _read().items() if name != key]
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with Folder.open(folder, inside=folder) as opened:
            content = json.dumps(dict([*others[1 - MAX_AGENTS :], (key, stamps)]))
            opened.replace(_FILE, content.encode(), synced=False)


def _key(root: Path, agent_id: str) -> str:
    """Tell agents, and what is installed and configured, from all others."""
    variables = sorted(item for item in os.environ.items() if item[0].startswith("DEEPWORK_"))
    return sha256(json.dumps([installation(root), str(root), agent_id, variables]).encode()).hexdigest()


def _read() -> dict[str, object]:
    folder = user_state_dir(os.environ)
    with suppress(OSError, ValueError, TypeError), Folder.open(folder, inside=folder) as opened:
        return dict(json.loads(opened.read(_FILE) or b"{}"))
    return {}


def _stamp(file: str | Path) -> list[int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns]
