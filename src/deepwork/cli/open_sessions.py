"""The open sessions of a project, from whichever store it has."""

from __future__ import annotations

import os
from pathlib import Path

from deepwork.clients.open_sessions import (
    JsonSessions,
    OpenSession,
    OpenSessions,
    max_attempts,
    open_session,
    uses_json_store,
)


def open_sessions(root: Path) -> OpenSessions:
    """Give the reader that needs the least: files of the store `json`, else the store itself."""
    if uses_json_store(root, os.environ):
        return JsonSessions(root, max_attempts(root, os.environ))
    return StoredSessions(root)


def resume_text_of(root: Path, session_id: str) -> str:
    """Give what an agent needs to go on with a session."""
    from deepwork.cli.stores import read_session
    from deepwork.engine.resume import resume_text
    from deepwork.project.project import Project
    from deepwork.sessions.upgrade import upgraded

    project = Project(root)
    session = upgraded(read_session(project, session_id), project.catalogue, project.workspace.root)
    return resume_text(session, project.workspace)


def waiting_count(root: Path | str) -> int | None:
    """Count what waits and nobody has in hand, as far as every source can say; None, with a note, if none can."""
    from deepwork.cli.inbox import look_once
    from deepwork.cli.terminal import say_text
    from deepwork.errors import DeepWorkError

    try:
        contents = look_once(root)
    except DeepWorkError as error:
        say_text(error.message, "Note: what waits cannot be counted: ", err=True)
        return None
    for failure in contents.failures:
        say_text(f"{failure.source} cannot say what waits: {failure.error}", "Note: ", err=True)
    return sum(item.held_by is None for item in contents.items)


class StoredSessions:
    """The sessions of any store."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def named(self, session_id: str) -> OpenSession | None:
        """Read one session; None if it is not open."""
        from deepwork.cli.stores import with_store
        from deepwork.project.project import Project

        project = Project(self._root)
        session = with_store(project, lambda store: store.load(session_id))
        attempts = project.config.quality_gate.max_attempts
        return open_session(session.model_dump(mode="json"), attempts) if session else None

    def all(self) -> list[OpenSession]:
        """Read all open sessions, the last changed first."""
        from deepwork.cli.options import NEWEST
        from deepwork.cli.stores import with_store
        from deepwork.models.sessions import SessionStatus
        from deepwork.project.project import Project

        find = with_store(Project(self._root), lambda store: store.find(status=SessionStatus.ACTIVE, limit=NEWEST))
        return [session for session in (self.named(summary.session_id) for summary in find) if session]
