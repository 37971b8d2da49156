"""Sessions as files: `.deepwork/tmp/session_<id>.json`, readable by a person."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Self

from deepwork import hookimpl
from deepwork.api import Session, SessionStatus, SessionSummary, StateStore, StateStoreSpec, Workspace
from deepwork.builtin.json_store.files import (
    FileReader,
    damaged_files,
    file_name,
    lock_name,
    summaries_in,
    unlisted,
)
from deepwork.builtin.json_store.saves import ARCHIVE, Save, save_together
from deepwork.errors import CorruptSession, StorageError
from deepwork.paths.locks import LockHeld
from deepwork.paths.state_folder import StateFolder
from deepwork.ports.state_store import SessionCache, SessionReader
from deepwork.programs.work_queue import Batches, WorkQueue

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
        self._work = WorkQueue("deepwork-sessions")
        self._listings = WorkQueue("deepwork-listings")  # which take longer the more sessions there are
        self._saves = Batches(self._work, partial(save_together, state=self._state, cache=self._cache))

    async def load(self, session_id: str) -> Session | None:
        """Read the file of a session."""
        return await self._work.run(partial(self._files.load, session_id))

    async def save(self, session: Session, *, expected: int | None) -> int:
        """Replace the file of a session, together with all saves that wait; a cancelled save is made too."""
        save = Save(session, expected)
        await self._saves.run(save)
        if isinstance(save.error, LockHeld):
            save = Save(session, expected)
            await self._work.run(partial(save_together, [save], self._state, self._cache, waits=True))
        return save.outcome()

    async def find(
        self, *, status: SessionStatus | None = None, before: str | None = None, limit: int = 10
    ) -> list[SessionSummary]:
        """List sessions by reading their files; unreadable ones are left out."""
        return await self._listings.run(partial(self._files.find, status, before, limit))

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

    def _names(self) -> list[str]:
        try:
            with self._state.open() as folder:
                return folder.names()
        except FileNotFoundError:
            return []
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
        try:
            with self._state.open() as folder:
                if ARCHIVE not in folder.names():  # opening it would make it
                    return []
                archive = folder.subfolder(ARCHIVE)
            with archive:
                summaries = [*summaries_in(archive)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unlisted(error) from error
        return sorted(summaries, key=lambda summary: summary.updated_at, reverse=True)

    def _remove_leftovers(self) -> None:
        with suppress(OSError), self._state.open() as folder:
            folder.remove_leftovers()


@hookimpl
def deepwork_state_stores() -> Iterator[StateStoreSpec]:
    """The store `json`, which is the default."""
    yield StateStoreSpec(name="json", open=JsonStore)
