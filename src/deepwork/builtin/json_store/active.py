"""The active sessions among the files of the store `json`. Most files are of sessions that are over."""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Lock

from deepwork.api import Folder, Session, SessionSummary
from deepwork.builtin.json_store.changes import Mark, changes_since
from deepwork.builtin.json_store.files import Stamp, read_for_listing, stamp_of
from deepwork.builtin.json_store.names import MAX_LISTED, MAX_SESSION, file_name, ids_of, is_id
from deepwork.errors import CorruptSession
from deepwork.ports.state_store import SessionCache


class ActiveFiles:
    """Remembers which sessions are active, and which are over. For any thread; one looks at a time."""

    def __init__(self, cache: SessionCache) -> None:
        self._cache = cache
        self._lock = Lock()  # of everything below
        self._active: dict[str, tuple[Stamp, SessionSummary]] = {}
        self._over: set[str] = set()
        self._mark: Mark | None = None

    def summaries(self, folder: Folder) -> list[SessionSummary]:
        """List the active sessions, after a look at the file of each."""
        with self._lock:
            self._learn(folder, all_files=True)
            return [summary for _, summary in self._active.values()]

    def other_than(self, session: Session, folder: Folder) -> SessionSummary | None:
        """Find another active session of a workflow; see `StateStore.other_active`. Its file is looked at."""
        with self._lock:
            self._learn(folder, all_files=False)
            while others := [summary for _, summary in self._active.values() if session.shares_workflow_with(summary)]:
                last = max(others, key=lambda summary: summary.updated_at)
                self._look_at(folder, last.session_id)
                _, summary = self._active.get(last.session_id, (None, None))
                if summary and session.shares_workflow_with(summary) and summary.updated_at >= last.updated_at:
                    return summary
            return None

    def _learn(self, folder: Folder, *, all_files: bool) -> None:
        """Look at the files that were saved, or at all if anything else may have happened."""
        changes = changes_since(folder, self._mark)
        self._mark = None  # until the look has come to its end
        changed = filter(is_id, changes.ids or ())
        if changes.ids is None:
            self._over.clear()
        if changes.is_all and not all_files:
            for session_id in changed:
                self._look_at(folder, session_id)
        else:
            self._over.difference_update(map(file_name, changed))
            self._look_at_all(folder)
        self._mark = changes.mark

    def _look_at_all(self, folder: Folder) -> None:
        session_ids = ids_of(sorted({*os.listdir(folder.descriptor)} - self._over))[:MAX_LISTED]
        for session_id in self._active.keys() - session_ids:
            del self._active[session_id]
        for session_id in session_ids:
            self._look_at(folder, session_id)

    def _look_at(self, folder: Folder, session_id: str) -> None:
        """Remember what a file says, unless it is as it was; a session that cannot be read is not known."""
        name = file_name(session_id)
        known = self._active.pop(session_id, None)
        self._over.discard(name)
        with suppress(CorruptSession, OSError):
            stamp = stamp_of(folder, name)
            if known is None or known[0] != stamp:
                cached = self._cache.get(session_id, stamp)
                summary = cached.summary() if cached else read_for_listing(folder, session_id, limit=MAX_SESSION)[0]
                known = (stamp, summary) if summary else None
            if known and known[1].is_active:
                self._active[session_id] = known
            elif known:
                self._over.add(name)
