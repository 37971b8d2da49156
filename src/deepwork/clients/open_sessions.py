"""The open sessions of a project, as hooks and the status line show them.

A hook runs after each call of ours and a status line after each message, so files of the store `json` are read without
models. Only short lines of them are shown: a repository may have brought them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from deepwork.errors import DeepWorkError
from deepwork.files.folder import Folder
from deepwork.files.user_folders import user_config_dir
from deepwork.files.workspace import Workspace
from deepwork.text.shorten import one_line

_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_FILE = re.compile(rf"session_({_ID.pattern})\.json")
_ACTIVE = b'"status": "active"'
_HEAD_BYTES = 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# A line of a configuration that can choose another store, or another number of attempts; comments cannot.
_STORE = re.compile(rb"^[^#\n]*\bstore\b", re.MULTILINE)
_ATTEMPTS = re.compile(rb"^[^#\n]*\bmax_attempts[\"']?\s*:\s*(\d{1,9})\b", re.MULTILINE)
_DEFAULT_ATTEMPTS = 3
_MAX_FAILURES = 3
_BEGINNINGS = ("attempt", "step_begun", "review_handed_back")


@dataclass(frozen=True)
class OpenSession:
    """An active session, in short lines.

    Attributes:
        state: What differs once the session has moved on.
        position: How far it is, as `step 2 of 3`.
        waits_for_person: Whether only a person can say how its step goes on.
    """

    session_id: str
    workflow: str
    step_id: str
    goal: str
    updated_at: str
    position: str
    waits_for_person: bool

    @property
    def state(self) -> str:
        return f"{self.step_id} {self.updated_at}"


class OpenSessions(Protocol):
    """Where open sessions are read."""

    def named(self, session_id: str) -> OpenSession | None:
        """Read one session; None if it is not open."""

    def all(self) -> list[OpenSession]:
        """Read all open sessions, the last changed first."""


class JsonSessions:
    """The sessions of the store `json`."""

    def __init__(self, root: Path, max_attempts: int = _DEFAULT_ATTEMPTS) -> None:
        self._workspace = Workspace(root)
        self._max_attempts = max_attempts

    def named(self, session_id: str) -> OpenSession | None:
        """Read one session; None if it is not open, or cannot be read."""
        with suppress(OSError, DeepWorkError), self._open() as folder:
            return self._read(folder, session_id)
        return None

    def all(self) -> list[OpenSession]:
        """Read all open sessions, the last changed first."""
        sessions: list[OpenSession | None] = []
        with suppress(OSError, DeepWorkError), self._open() as folder:
            ids = [match[1] for match in map(_FILE.fullmatch, folder.names()) if match]
            sessions = [self._read(folder, session_id) for session_id in ids if _may_be_active(folder, session_id)]
        return sorted(filter(None, sessions), key=lambda session: session.updated_at, reverse=True)

    def _open(self) -> Folder:
        return Folder.open(self._workspace.state_dir, inside=self._workspace.root)

    def _read(self, folder: Folder, session_id: str) -> OpenSession | None:
        if not _ID.fullmatch(session_id):
            return None
        try:
            return open_session(json.loads(folder.read(f"session_{session_id}.json") or b"{}"), self._max_attempts)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            return None


def uses_json_store(root: Path, environment: Mapping[str, str]) -> bool:
    """Say whether sessions are surely in the store `json`, without reading the configuration as YAML."""
    if environment.get("DEEPWORK_STATE_STORE", "json") != "json":
        return False
    return not any(_STORE.search(content) for content in configurations(root, environment))


def max_attempts(root: Path, environment: Mapping[str, str]) -> int:
    """Give the number of failed reviews after which a step waits for a person."""
    value = environment.get("DEEPWORK_QUALITY_GATE_MAX_ATTEMPTS", "")
    if value.isdecimal() and len(value) < 10:
        return int(value)
    numbers = [int(match[1]) for content in configurations(root, environment) for match in _ATTEMPTS.finditer(content)]
    return numbers[-1] if numbers else _DEFAULT_ATTEMPTS


def open_session(data: Mapping[str, Any], attempts: int = _DEFAULT_ATTEMPTS) -> OpenSession | None:
    """Make a short description of stored JSON; None if the session is not active.

    Raises:
        TypeError, KeyError, AttributeError, ValueError, OverflowError: It is not the JSON of a session.
    """
    if data.get("status") != "active":
        return None
    step_id = data["current_step_id"]
    steps = ((data.get("definition") or {}).get("workflow") or {}).get("steps") or []
    return OpenSession(
        session_id=one_line(data["session_id"]),
        workflow=one_line(f"{data['job_name']}/{data['workflow_name']}"),
        step_id=one_line(step_id),
        goal=one_line(data["goal"]),
        updated_at=one_line(data.get("updated_at") or data["started_at"]),
        position=f"step {int(data.get('current_entry_index', 0)) + 1} of {len(steps)}" if steps else "",
        waits_for_person=_waits_for_person(data, step_id, attempts),
    )


def _waits_for_person(data: Mapping[str, Any], step_id: str, attempts: int) -> bool:
    """Say whether only a person can say how a step goes on, as `sessions.waiting` does on models.

    That is so when too many reviews have failed or have given no verdict, when only the user can have one given, and
    when the agent has asked a strict gate for an override.
    """
    progress = (data.get("step_progress") or {}).get(step_id) or {}
    if progress.get("completed_at") or _is_permitted(data, step_id):
        return False
    latest = _latest(data, step_id)
    if latest and latest[-1].get("kind") == "override_asked":
        return True
    verdicts = [_detail(entry) for entry in latest if entry.get("kind") == "verdict"]
    if any(detail.get("changed") for detail in verdicts):
        return False
    if not all(detail.get("passed") for detail in verdicts):
        return bool(progress.get("quality_attempts", 0) >= attempts)
    errors = [_detail(entry).get("kind") for entry in latest if entry.get("kind") == "infrastructure"]
    only_user_can_help = set(errors) == {"RunnerUnavailable"}
    return bool(errors) and (only_user_can_help or progress.get("runner_failures", 0) >= _MAX_FAILURES)


def _latest(data: Mapping[str, Any], step_id: str) -> list[Mapping[str, Any]]:
    """Give what came of the last report of a step; nothing while it is reviewed."""
    latest: list[Mapping[str, Any]] = []
    for entry in reversed(data.get("history") or ()):
        if entry.get("kind") == "reopened":
            break
        if entry.get("step_id") == step_id:
            if entry.get("kind") in _BEGINNINGS:
                break
            latest.insert(0, entry)
    return latest


def _detail(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return entry.get("detail") or {}


def _is_permitted(data: Mapping[str, Any], step_id: str) -> bool:
    """Say whether a person has let a step pass, and the agent has only to report it."""
    for entry in reversed(data.get("history") or ()):
        kind, is_of_step = entry.get("kind"), entry.get("step_id") == step_id
        if kind == "reopened" or (is_of_step and kind in ("step_begun", "step_completed")):
            return False
        if is_of_step and kind == "override" and _detail(entry).get("by") == "person":
            return True
    return False


def _may_be_active(folder: Folder, session_id: str) -> bool:
    """Look at the beginning of a file: in most of them the session is over. There may be thousands."""
    with suppress(OSError):
        descriptor = os.open(f"session_{session_id}.json", _READ, dir_fd=folder.descriptor)
        try:
            head = os.read(descriptor, _HEAD_BYTES)
        finally:
            os.close(descriptor)
        return _ACTIVE in head or b'"status": "' not in head
    return False


def configurations(root: Path, environment: Mapping[str, str]) -> list[bytes]:
    """Read both files of the configuration, the project's last."""
    contents = []
    for folder, name in (
        (user_config_dir(environment) / "deepwork", "config.yml"),
        (Workspace(root).home, "config.yml"),
    ):
        with suppress(OSError, DeepWorkError), Folder.open(folder, inside=folder) as opened:
            contents.append(opened.read(name) or b"")
    return contents
