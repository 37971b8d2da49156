"""Which client sessions of a project have changed the same file within ten minutes."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from deepwork.builtin.clients.listeners import ClientSession, Note, notes_folder
from deepwork.paths.folder import Folder
from deepwork.text import visible

SECONDS = 600.0
# The tools of Claude Code, of Codex and of the Gemini CLI that change files.
CHANGING = re.compile(r"Edit|MultiEdit|Write|NotebookEdit|apply_patch|replace|write_file")
_PATH_KEYS = ("file_path", "notebook_path", "absolute_path", "path")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete|Move to)(?: File)?: (.+)$", re.MULTILINE)


def changed_paths(paths: Iterable[str], arguments: Mapping[str, Any], root: str) -> list[str]:
    """Return the real paths of the files that a tool has changed, as far as its call names them."""
    named = [*paths, *(arguments[key] for key in _PATH_KEYS if isinstance(arguments.get(key), str))]
    patches = [value for value in arguments.values() if isinstance(value, str) and "*** " in value]
    named += [path.strip() for patch in patches for path in _PATCHED.findall(patch)]
    return [*dict.fromkeys(os.path.realpath(os.path.join(root, path)) for path in named if path)]


def note_changes(session: ClientSession, agent: str, who: str, paths: Iterable[str], root: str) -> None:
    """Note that files were changed, and tell both sides of each that another client session has changed. It blocks.

    Args:
        session: The client session.
        agent: The id of the sub-agent in it; empty for its main agent.
        who: How others are told of it.
        paths: The files.
        root: The folder of the project.
    """
    parent, now = notes_folder(), time.time()
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = f"changes-{sha256(root.encode()).hexdigest()[:32]}"
    with (
        Folder.open(parent, inside=parent) as folder,
        folder.locked(f"{name}.lock", subject="changed files", seconds=1),
    ):
        files = _recent(folder.read(f"{name}.json"), now)
        for path in paths:
            changes = files.setdefault(path, {})
            mine = changes.setdefault(session.key, {"since": now})
            mine |= {"at": now, "agent": agent, "who": who}
            for key, other in changes.items():
                if key != session.key:
                    _tell(session.key, mine, other, path)
                    _tell(key, other, mine, path)
        folder.replace(f"{name}.json", json.dumps(files).encode(), synced=False)


def _tell(key: str, listener: Mapping[str, Any], other: Mapping[str, Any], path: str) -> None:
    since = datetime.fromtimestamp(other["since"], UTC).strftime("%H:%M:%S UTC")
    text = (
        f"{visible(path)} was changed by {other['who']}, too, since {since}. Nothing was refused: read the file again "
        "before you go on with it."
    )
    # The same for as long as both go on changing it, so that each is told once.
    text_id = f"file-{sha256(json.dumps([path, key, other['since']]).encode()).hexdigest()[:12]}"

    def told(note: Note) -> Note:
        # A sub-agent that has joined nothing hears pauses alone; then the main agent of its client session is told.
        agent = listener["agent"] if note.listener(listener["agent"]).has_joined else ""
        known = note.listener(agent)
        return note if text_id in known.told else note.with_listener(agent, known.with_queued(text_id, text))

    ClientSession(key).change(told)


def _recent(content: bytes | None, now: float) -> dict[str, dict[str, Any]]:
    """Return the changes of the last ten minutes, by file and client session."""
    try:
        files = json.loads(content or b"{}")
        recent = {
            path: {key: change for key, change in changes.items() if now - SECONDS < change["at"] <= now}
            for path, changes in files.items()
        }
        return {path: changes for path, changes in recent.items() if changes}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
