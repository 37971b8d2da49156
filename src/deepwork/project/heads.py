"""The heads of a project's sessions, from files where its store is `json`, else from the store itself.

Hooks, status lines and lists run often, so models are imported only for what no head says: sessions of earlier
releases, and other stores.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepwork.errors import DeepWorkError
from deepwork.models.standing import MAX_HEAD, Head, read_head
from deepwork.paths.folder import Folder
from deepwork.paths.user_folders import user_config_dir
from deepwork.paths.workspace import Workspace

if TYPE_CHECKING:
    from deepwork.ports.state_store import StateStore
    from deepwork.project.access import Project

MAX_FILES = 10_000
DAMAGED = ".corrupt"
ACTIVE = "active"

_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_FILE = re.compile(rf"session_({_ID.pattern})\.json")
_FILE_END = b"\n}\n"
_MAX_SESSION = 32 * 1024 * 1024


def heads_of(root: Path, project: Project) -> FileHeads | StoreHeads:
    """Return the reader that needs the least."""
    return FileHeads(root) if uses_json_store(root, os.environ) else StoreHeads(project)


def newest_heads(root: Path, environment: Mapping[str, str], *, status: str | None, limit: int) -> list[Head] | None:
    """Return the sessions that were changed last; None if only the store can say.

    Only the store sets damaged files aside, and only what reads a configuration whole can tell what is wrong with it.
    """
    if not root.is_dir() or _is_configured(root, environment):
        return None
    with suppress(OSError, DeepWorkError):
        return FileHeads(root).newest(status, limit)
    return None


class FileHeads:
    """The heads of the files of the store `json`."""

    def __init__(self, root: Path) -> None:
        self._workspace = Workspace(root)

    def named(self, session_id: str, status: str = ACTIVE) -> Head | None:
        """Return one session; None if it has another status, or cannot be read."""
        with suppress(OSError, DeepWorkError), self._folder() as folder:
            head = _head(folder, session_id) if _ID.fullmatch(session_id) else None
            return _standing(folder, head) if head and head.status == status else None
        return None

    def document(self, session_id: str, status: str = ACTIVE) -> Mapping[str, Any] | None:
        """Return the JSON of one session; None if it has another status, or its file does not say everything."""
        with suppress(OSError, DeepWorkError, ValueError), self._folder() as folder:
            head = _head(folder, session_id, strict=True)
            if head and head.standing and head.status == status:
                content = folder.read(f"session_{session_id}.json", limit=_MAX_SESSION)
                document = json.loads(content or b"")
                return document if isinstance(document, dict) else None
        return None

    def history(self, session_id: str, status: str = ACTIVE) -> Sequence[Mapping[str, Any]]:
        """Return what has happened in a session of this status, as it is stored; nothing if it cannot be read."""
        if document := self.document(session_id, status):
            history = document.get("history")
            return history if isinstance(history, list) else []
        return []

    def open(self) -> list[Head]:
        """Return all open sessions, the last changed first."""
        heads: list[Head] = []
        with suppress(OSError, DeepWorkError), self._folder() as folder:
            ids = [match[1] for match in map(_FILE.fullmatch, folder.names()) if match]
            active = [head for head in (_head(folder, session_id) for session_id in ids) if _is_active(head)]
            heads = [standing for head in active if head and (standing := _standing(folder, head))]
        return sorted(heads, key=lambda head: head.updated_at, reverse=True)

    def newest(self, status: str | None, limit: int) -> list[Head] | None:
        """Return the sessions that were changed last; None if one of them is not as this release writes it.

        Raises:
            OSError, DeepWorkError: The folder cannot be read.
        """
        with self._folder() as folder:
            names = os.listdir(folder.descriptor)
            if len(names) > MAX_FILES or any(name.endswith(DAMAGED) for name in names):
                return None
            heads = [_head(folder, match[1], strict=True) for match in map(_FILE.fullmatch, names) if match]
            known = [head for head in heads if head]
            if len(known) < len(heads):
                return None
            chosen = [head for head in known if status in (None, head.status)]
            chosen.sort(key=lambda head: (head.updated_at, head.session_id), reverse=True)
            standing = [_standing(folder, head) for head in chosen[:limit]]
            return None if None in standing else [head for head in standing if head]

    def _folder(self) -> Folder:
        return Folder.open(self._workspace.state_dir, inside=self._workspace.root)


class StoreHeads:
    """The heads of the sessions of any store."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def named(self, session_id: str, status: str = ACTIVE) -> Head | None:
        """Return one session; None if it has another status."""
        from deepwork.sessions.standing import head_of

        session = self._project.with_store(lambda store: store.load(session_id))
        return head_of(session) if session and session.status == status else None

    def history(self, session_id: str, _status: str = ACTIVE) -> Sequence[Mapping[str, Any]]:
        """Return what has happened in a session, as it is stored."""
        session = self._project.with_store(lambda store: store.load(session_id))
        return [entry.model_dump(mode="json") for entry in session.history] if session else []

    def open(self) -> list[Head]:
        """Return all open sessions, the last changed first."""
        from deepwork.models.sessions import SessionStatus
        from deepwork.sessions.manager import standing_in

        async def read(store: StateStore) -> list[Head]:
            return [
                Head(**summary.model_dump(mode="json"), standing=standing)
                for summary in await store.find(status=SessionStatus.ACTIVE, limit=sys.maxsize)
                if (standing := await standing_in(store, summary))
            ]

        return self._project.with_store(read)


def resume_text(root: Path, session_id: str) -> str | None:
    """Return what an agent needs to go on with a session, if its file alone says everything."""
    with suppress(LookupError, TypeError, AttributeError):
        if document := _plain_session(root, session_id):
            from deepwork.engine.resume import resume_text_of

            return resume_text_of(document, Workspace(root))
    return None


def _plain_session(root: Path, session_id: str) -> Mapping[str, Any] | None:
    """Return the JSON of an open session of the store `json`; None if more than its file says what it means.

    Its file was written by another release, or a configuration names further folders for outputs.
    """
    documents = _configurations(root, os.environ) or []
    roots = any(isinstance(document, dict) and "allowed_output_roots" in document for document in documents)
    if roots or "DEEPWORK_ALLOWED_OUTPUT_ROOTS" in os.environ or not uses_json_store(root, os.environ):
        return None
    return FileHeads(root).document(session_id)


def uses_json_store(root: Path, environment: Mapping[str, str]) -> bool:
    """True if sessions are surely in the store `json`."""
    if environment.get("DEEPWORK_STATE_STORE", "json") != "json":
        return False
    documents = _configurations(root, environment)
    return documents is not None and all(_chosen_store(document) == "json" for document in documents)


def _chosen_store(document: Any) -> Any:
    """Return the store that a configuration names; None if the configuration is malformed."""
    if document is None:
        return "json"
    state = document.get("state", {}) if isinstance(document, dict) else None
    return state.get("store", "json") if isinstance(state, dict) else None


def _is_configured(root: Path, environment: Mapping[str, str]) -> bool:
    has_variables = any(name.startswith("DEEPWORK_") and name != "DEEPWORK_PROJECT" for name in environment)
    documents = None if has_variables else _configurations(root, environment)
    return documents is None or any(document is not None for document in documents)


def _configurations(root: Path, environment: Mapping[str, str]) -> list[Any] | None:
    """Return what the files of the user and the project say; None if one of them cannot be read."""
    documents = []
    user_folder = user_config_dir(environment) / "deepwork"
    for folder in (user_folder, Workspace(root).home):
        try:
            with Folder.open(folder, inside=folder) as opened:
                content = opened.read("config.yml")
        except FileNotFoundError:
            continue
        except (OSError, DeepWorkError):
            return None
        if content:
            from deepwork.documents.load import read_document
            from deepwork.documents.problems import DocumentError

            try:
                documents.append(read_document(content).data)
            except DocumentError:
                return None
    return documents


def _is_active(head: Head | None) -> bool:
    return head is not None and head.status == ACTIVE


def _head(folder: Folder, session_id: str, *, strict: bool = False) -> Head | None:
    """Return what the file of a session says at its head, or what is computed from all of it.

    If strict, nothing is computed: None for a file that is not as this release writes it.
    """
    try:
        with folder.open_file(f"session_{session_id}.json") as file:
            content = os.read(file.fileno(), MAX_HEAD)
            file.seek(-min(len(content), len(_FILE_END)), os.SEEK_END)
            head = read_head(content) if file.read() == _FILE_END else None
    except OSError:
        return None
    if head and head.session_id != session_id:
        return None
    return head if head or strict else _computed(folder, session_id)


def _standing(folder: Folder, head: Head) -> Head | None:
    """Return a head with where its session stands; None if the session cannot be read."""
    if head.standing:
        return head
    computed = _computed(folder, head.session_id)
    return replace(head, standing=computed.standing) if computed else None


def _computed(folder: Folder, session_id: str) -> Head | None:
    from deepwork.models.sessions import Session
    from deepwork.sessions.standing import head_of

    with suppress(OSError, ValueError):
        content = folder.read(f"session_{session_id}.json", limit=_MAX_SESSION)
        session = Session.model_validate_json(content or b"")
        is_sound = session.session_id == session_id and not any(session.contradictions())
        return head_of(session) if is_sound else None
    return None
