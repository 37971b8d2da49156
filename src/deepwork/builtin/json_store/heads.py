"""The heads of the sessions of the store `json`, read from its files. Models are imported for other releases' files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from deepwork.builtin.json_store.names import DAMAGED, FILE_END, MAX_LISTED, MAX_SESSION, file_name, ids_of, is_id
from deepwork.errors import DeepWorkError
from deepwork.models.standing import MAX_HEAD, Head, read_head
from deepwork.paths.folder import Folder
from deepwork.paths.workspace import Workspace
from deepwork.ports.heads import ACTIVE, StoredHeads


class FileHeads(StoredHeads):
    """The heads of the files of the store `json`."""

    def __init__(self, root: Path) -> None:
        self._workspace = Workspace(root)

    def named(self, session_id: str, status: str = ACTIVE) -> Head | None:
        with suppress(OSError, DeepWorkError), self._folder() as folder:
            head = _head(folder, session_id) if is_id(session_id) else None
            return _standing(folder, head) if head and head.status == status else None
        return None

    def document(self, session_id: str, status: str = ACTIVE) -> Mapping[str, Any] | None:
        with suppress(OSError, DeepWorkError, ValueError), self._folder() as folder:
            head = _head(folder, session_id, strict=True)
            if head and head.standing and head.status == status:
                content = folder.read(file_name(session_id), limit=MAX_SESSION)
                document = json.loads(content or b"")
                return document if isinstance(document, dict) else None
        return None

    def history(self, session_id: str, status: str = ACTIVE) -> Sequence[Mapping[str, Any]]:
        if document := self.document(session_id, status):
            history = document.get("history")
            return history if isinstance(history, list) else []
        return []

    def open(self) -> list[Head]:
        heads: list[Head] = []
        with suppress(OSError, DeepWorkError), self._folder() as folder:
            read = (_head(folder, session_id) for session_id in ids_of(folder.names()))
            active = [head for head in read if head and head.status == ACTIVE]
            heads = [standing for head in active if (standing := _standing(folder, head))]
        return sorted(heads, key=lambda head: head.updated_at, reverse=True)

    def newest(self, status: str | None, limit: int) -> list[Head] | None:
        with self._folder() as folder:
            names = os.listdir(folder.descriptor)
            if len(names) > MAX_LISTED or any(name.endswith(DAMAGED) for name in names):
                return None
            heads = [_head(folder, session_id, strict=True) for session_id in ids_of(names)]
            known = [head for head in heads if head]
            if len(known) < len(heads):
                return None
            chosen = [head for head in known if status in (None, head.status)]
            chosen.sort(key=lambda head: (head.updated_at, head.session_id), reverse=True)
            standing = [_standing(folder, head) for head in chosen[:limit]]
            return None if None in standing else [head for head in standing if head]

    def _folder(self) -> Folder:
        return Folder.open(self._workspace.state_dir, inside=self._workspace.root)


def _head(folder: Folder, session_id: str, *, strict: bool = False) -> Head | None:
    """Return what the file of a session says at its head, or what is computed from all of it.

    If strict, nothing is computed: None for a file that is not as this release writes it.
    """
    try:
        with folder.open_file(file_name(session_id)) as file:
            content = os.read(file.fileno(), MAX_HEAD)
            file.seek(-min(len(content), len(FILE_END)), os.SEEK_END)
            head = read_head(content) if file.read() == FILE_END else None
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
    from deepwork.api import Session, standing

    with suppress(OSError, ValueError):
        content = folder.read(file_name(session_id), limit=MAX_SESSION)
        session = Session.model_validate_json(content or b"")
        is_sound = session.session_id == session_id and not any(session.contradictions())
        return standing.head_of(session) if is_sound else None
    return None
