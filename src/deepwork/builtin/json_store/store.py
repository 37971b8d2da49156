"""The store `json`: sessions as files, `.deepwork/tmp/session_<id>.json`, readable by a person."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Self, TypeVar

from deepwork.api import Folder, Session, SessionStatus, SessionSummary, StateStore, Workspace
from deepwork.builtin.json_store.active import ActiveFiles
from deepwork.builtin.json_store.files import FileReader, summaries_in, unlisted
from deepwork.builtin.json_store.names import damaged_files, file_name, lock_name
from deepwork.builtin.json_store.saves import ARCHIVE, Save, save_together
from deepwork.builtin.json_store.writing import SessionWriter
from deepwork.errors import CorruptSession, StorageError
from deepwork.paths.locks import LockHeld
from deepwork.paths.state_folder import StateFolder
from deepwork.ports.state_store import SessionCache, SessionReader
from deepwork.programs.work_queue import Batches, WorkQueue

T = TypeVar("T")

_CACHED_SESSIONS = 32


class JsonStore(StateStore):
    """One file is one session and one transaction: state, recorded replies and history together.

    A save compares the revision under a lock of the operating system and acknowledges only what would
    survive a power cut. Several servers may work in one folder.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._state = StateFolder(workspace)
        self._cache = SessionCache(_CACHED_SESSIONS)
        self._files = FileReader(self._state, self._cache)
        self._active = ActiveFiles(self._cache)
        self._work = WorkQueue("deepwork-sessions")
        self._listings = WorkQueue("deepwork-listings")  # which take longer the more sessions there are
        self._save_together = partial(save_together, state=self._state, cache=self._cache, writer=SessionWriter())
        self._saves = Batches(self._work, self._save_together)

    async def load(self, session_id: str) -> Session | None:
        """Read the file of a session."""
        return await self._work.run(partial(self._files.load, session_id))

    async def save(self, session: Session, *, expected: int | None) -> int:
        """Replace the file of a session, together with all saves that wait; a cancelled save is made too."""
        save = Save(session, expected)
        await self._saves.run(save)
        if isinstance(save.error, LockHeld):
            save = Save(session, expected)
            await self._work.run(partial(self._save_together, [save], waits=True))
        return save.outcome()

    async def find(
        self, *, status: SessionStatus | None = None, before: str | None = None, limit: int = 10
    ) -> list[SessionSummary]:
        """List sessions by reading their files; unreadable ones are left out."""
        return await self._listings.run(partial(self._find, status, before, limit))

    async def other_active(self, session: Session) -> SessionSummary | None:
        """Look at the files that were saved since the last look, and at more only if more has happened."""
        return await self._listings.run(partial(self._other_active, session))

    async def peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        """Read the beginnings of the files whose sessions are not cached."""
        return await self._work.run(partial(self._files.peek, session_ids))

    def reader(self) -> SessionReader:
        """Return a reader of the files, for any thread."""
        return self._files

    async def damaged(self) -> list[str]:
        """Name the files that could not be read and were set aside."""
        names = damaged_files(await self._listings.run(self._names))
        return [self._workspace.shown(self._workspace.state_dir / name) for name in names]

    async def stamps(self) -> Mapping[str, Hashable]:
        """Look at the times of the files, and only if the folder has changed: every save puts a new file into it."""
        return await self._listings.run(self._files.stamps)

    async def archive(self, session_id: str) -> None:
        """Move the files of a session to the folder `archive`."""
        await self._work.run(partial(self._archive, session_id))

    async def archived(self) -> list[SessionSummary]:
        """List the sessions in the folder `archive`."""
        return await self._listings.run(self._archived)

    async def __aenter__(self) -> Self:
        """Remove what writes that were cut off have left."""
        await self._work.run(self._remove_leftovers)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of the folder."""
        self._state.close()

    def _find(self, status: SessionStatus | None, before: str | None, limit: int) -> list[SessionSummary]:
        list_summaries = self._active.summaries if status is SessionStatus.ACTIVE else summaries_in
        summaries = [
            summary
            for summary in self._listed(lambda folder: [*list_summaries(folder)]) or ()
            if (status is None or summary.status == status) and (before is None or summary.updated_at < before)
        ]
        return sorted(summaries, key=lambda summary: summary.updated_at, reverse=True)[:limit]

    def _other_active(self, session: Session) -> SessionSummary | None:
        return self._listed(partial(self._active.other_than, session))

    def _names(self) -> list[str]:
        return self._listed(Folder.names) or []

    def _listed(self, look: Callable[[Folder], T]) -> T | None:
        """Look at what is in the folder; None without a folder."""
        try:
            with self._state.open() as folder:
                return look(folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unlisted(error) from error

    def _archive(self, session_id: str) -> None:
        own_file = file_name(session_id)
        beginnings = (own_file, f"quality_review_{session_id}_", f"resume_{session_id}.")
        try:
            with (
                self._state.open() as folder,
                folder.locked(lock_name(session_id), subject="the session folder"),
                folder.subfolder(ARCHIVE) as archive,
            ):
                for name in sorted(folder.names(), key=lambda name: name != own_file):  # the session itself first
                    if name.startswith(beginnings):
                        folder.rename(name, name, into=archive)
                archive.sync()
                folder.sync()
        except OSError as error:
            raise StorageError(f"The session could not be archived: {error.strerror or error}") from error

    def _archived(self) -> list[SessionSummary]:
        return sorted(self._listed(_archived_in) or (), key=lambda summary: summary.updated_at, reverse=True)

    def _remove_leftovers(self) -> None:
        with suppress(OSError), self._state.open() as folder:
            folder.remove_leftovers()


def _archived_in(folder: Folder) -> list[SessionSummary]:
    if ARCHIVE not in folder.names():  # opening it would make it
        return []
    with folder.subfolder(ARCHIVE) as archive:
        return [*summaries_in(archive)]
