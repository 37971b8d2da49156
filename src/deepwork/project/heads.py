"""The heads of a project's sessions: from the files of the store where they can be had, else from the store itself.

Which store that is, is looked up without reading a configuration whole, and without loading a plugin: hooks, status
lines and lists run often.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepwork.errors import DeepWorkError
from deepwork.loading.features import HEADS
from deepwork.models.standing import Head
from deepwork.paths.folder import Folder
from deepwork.paths.user_folders import user_config_dir
from deepwork.paths.workspace import Workspace
from deepwork.ports.heads import ACTIVE, SessionHeads, StoredHeads

if TYPE_CHECKING:
    from deepwork.ports.state_store import StateStore
    from deepwork.project.access import Project

_DEFAULT = "json"


def heads_of(root: Path, project: Project) -> SessionHeads:
    """Return the reader that needs the least."""
    return _stored_heads(root, _certain_store(root, os.environ)) or StoreHeads(project)


def newest_heads(root: Path, environment: Mapping[str, str], *, status: str | None, limit: int) -> list[Head] | None:
    """Return the sessions that were changed last; None if only the store can say.

    Only the store sets damaged files aside, and only what reads a configuration whole can tell what is wrong with it.
    """
    if not root.is_dir() or _is_configured(root, environment):
        return None
    with suppress(OSError, DeepWorkError):
        heads = _stored_heads(root, _DEFAULT)
        return heads.newest(status, limit) if heads else None
    return None


class StoreHeads(SessionHeads):
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
    """Return what an agent needs to go on with a session, if its file alone says everything.

    It does not if another release wrote it, or if a configuration names further folders for outputs.
    """
    documents = _configurations(root, os.environ) or []
    has_roots = any(isinstance(document, dict) and "allowed_output_roots" in document for document in documents)
    if has_roots or "DEEPWORK_ALLOWED_OUTPUT_ROOTS" in os.environ:
        return None
    heads = _stored_heads(root, _certain_store(root, os.environ))
    document = heads.document(session_id) if heads else None
    with suppress(LookupError, TypeError, AttributeError):
        if document:
            from deepwork.engine.resume import resume_text_of

            return resume_text_of(document, Workspace(root))
    return None


def _stored_heads(root: Path, store: str | None) -> StoredHeads | None:
    """Return what reads the files of a store; None if nothing does."""
    if store not in HEADS:
        return None
    module, _, name = HEADS[store].partition(":")
    heads: StoredHeads = getattr(import_module(module), name)(root)
    return heads


def _certain_store(root: Path, environment: Mapping[str, str]) -> str | None:
    """Return the store in which the sessions surely are; None if only what reads a configuration whole can say."""
    documents = _configurations(root, environment)
    if documents is None:
        return None
    store = environment.get("DEEPWORK_STATE_STORE", _DEFAULT)
    return store if all(_chosen_store(document) == store for document in documents) else None


def _chosen_store(document: Any) -> Any:
    """Return the store that a configuration names; None if the configuration is malformed."""
    if document is None:
        return _DEFAULT
    state = document.get("state", {}) if isinstance(document, dict) else None
    return state.get("store", _DEFAULT) if isinstance(state, dict) else None


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
