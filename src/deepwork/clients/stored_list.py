"""The newest sessions of the store `json`, for a list, without models.

Importing those takes longer than to look into some thousand files. What is not as this release writes it is left to the
store: then there is no list here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepwork.clients.open_sessions import configurations, uses_json_store
from deepwork.errors import DeepWorkError
from deepwork.files.folder import Folder
from deepwork.files.workspace import Workspace
from deepwork.text.shorten import one_line

MAX_FILES = 10_000
DAMAGED = ".corrupt"

_FILE = re.compile(r"session_[0-9A-Za-z_-]{1,64}\.json")
_HEAD_BYTES = 1024
# Keys of the session itself, at the beginnings of lines: no text in JSON contains a line end.
_STATUS = re.compile(rb'^  "status": "(\w+)",$', re.MULTILINE)
_UPDATED = re.compile(rb'^  "updated_at": "([^"\\]+)",$', re.MULTILINE)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_COMMENTS = re.compile(rb"(?:\s*(?:#.*)?\n?)*")
_TEXTS = ("session_id", "job_name", "workflow_name", "current_step_id", "goal", "status", "started_at", "updated_at")


@dataclass(frozen=True)
class ListedSession:
    """A session in short lines; the fields that a listing of the store has, and how far it is."""

    session_id: str
    job_name: str
    workflow_name: str
    step_id: str
    goal: str
    status: str
    started_at: str
    updated_at: str
    principal: str
    position: str | None


def newest_sessions(
    root: Path, environment: Mapping[str, str], *, status: str | None, limit: int
) -> list[ListedSession] | None:
    """List the sessions that were changed last; None if only the store itself can say."""
    if not root.is_dir() or not uses_json_store(root, environment) or _is_configured(root, environment):
        return None
    workspace = Workspace(root)
    unreadable = (OSError, DeepWorkError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
    with suppress(*unreadable), Folder.open(workspace.state_dir, inside=workspace.root) as folder:
        names = os.listdir(folder.descriptor)
        if len(names) > MAX_FILES or any(name.endswith(DAMAGED) for name in names):
            return None
        moments = [(_moment(folder, name, status), name) for name in names if _FILE.fullmatch(name)]
        newest = sorted((moment, name) for moment, name in moments if moment)[::-1][:limit]
        return [_listed(json.loads(folder.read(name) or b"")) for _, name in newest]
    return None


def _is_configured(root: Path, environment: Mapping[str, str]) -> bool:
    """Say whether a configuration says anything: only what reads it whole can tell what is wrong with it."""
    has_variables = any(name.startswith("DEEPWORK_") and name != "DEEPWORK_PROJECT" for name in environment)
    return has_variables or not all(_COMMENTS.fullmatch(content) for content in configurations(root, environment))


def _moment(folder: Folder, name: str, status: str | None) -> bytes:
    """Give when a session was last changed; nothing if it has another status.

    Raises:
        ValueError: The file does not begin as this release writes it.
    """
    descriptor = os.open(name, _READ, dir_fd=folder.descriptor)
    try:
        head = os.read(descriptor, _HEAD_BYTES)
    finally:
        os.close(descriptor)
    found, updated = _STATUS.search(head), _UPDATED.search(head)
    if not (found and updated):
        raise ValueError(name)
    return updated[1] if status is None or found[1] == status.encode() else b""


def _listed(data: Mapping[str, Any]) -> ListedSession:
    """Make a line of stored JSON.

    Raises:
        TypeError, KeyError, AttributeError: It is not the JSON of a session.
    """
    texts = {name: one_line(data[name]) for name in _TEXTS}
    steps = ((data.get("definition") or {}).get("workflow") or {}).get("steps") or []
    return ListedSession(
        step_id=texts.pop("current_step_id"),
        principal=one_line(data.get("principal", "local")),
        position=f"step {int(data['current_entry_index']) + 1} of {len(steps)}" if steps else None,
        **texts,
    )
