"""Saves of the store `json` that wait together, and share the sync of the folder.

Each session has its own file, and is saved in four parts; one thread does each part for all saves that wait:

1. The new content is written beside the file of the session, if that is still on the revision which the save expects.
2. What was written is synced.
3. Under the lock of the session the file is compared once more, and the new content takes its name.
4. The folder is synced, once for all names that were taken.

A save is acknowledged after part 4. So a power cut loses nothing that was acknowledged: before it the content of the
file was durable, then its name. A reader meanwhile sees the old file or the new one, never a part. If the folder
cannot be synced, none of the saves is acknowledged, and each file gets its old content back, unless another process has
replaced it since.

The lock is held for the comparison and the rename only. Where another process holds it, the save is left out, to wait
for the lock by itself and hold up no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from io import FileIO
from typing import Any, NoReturn

from deepwork.api import Folder, Session
from deepwork.builtin.json_store.changes import Note
from deepwork.builtin.json_store.files import Stamp, read_revision, stamp_or_none
from deepwork.builtin.json_store.names import MAX_SESSION, file_name, is_id, lock_name
from deepwork.builtin.json_store.writing import SessionWriter
from deepwork.errors import PathRefused, StaleSession, StorageError
from deepwork.paths.folder import FileBeside
from deepwork.paths.state_folder import StateFolder
from deepwork.ports.state_store import SessionCache

ARCHIVE = "archive"
# Files are synced one after the other where that is fast. Where it is not, the kernel joins syncs that come together.
SLOW_SYNC_SECONDS = 0.004
SYNC_THREADS = 16


class Save:
    """A session that is to be saved, and what has become of it.

    Attributes:
        session_id: That of the session.
        error: Why it was not saved; `LockHeld` if another process holds the lock.
    """

    def __init__(self, session: Session, expected: int | None) -> None:
        self.error: Exception | None = None
        self._expected = expected
        self._revision = (expected or 0) + 1
        self._session = session.model_copy(update={"revision": self._revision})
        self.session_id = session.session_id
        self._name = file_name(self.session_id)
        self._stamp: Stamp | None = None
        self._new_stamp: Stamp | None = None
        self._beside: FileBeside | None = None
        self._previous: FileIO | None = None

    def outcome(self) -> int:
        """Return the new revision.

        Raises:
            StateError, PathRefused: The session was not saved.
        """
        if isinstance(self.error, OSError):
            raise StorageError(
                f"The session could not be saved: {self.error.strerror or self.error}; nothing was changed",
                hint="Fix the cause (space, quota, permissions) in .deepwork/tmp, then call again.",
            ) from self.error
        if self.error:
            raise self.error
        return self._revision

    def attempt(self, part: Callable[[], None]) -> bool:
        """Do a part of this save, and say whether it succeeded."""
        try:
            part()
        except Exception as error:  # noqa: BLE001 - raised again by `outcome`; the other saves go on
            self.error = error
            return False
        return True

    def write(self, folder: Folder, cache: SessionCache, writer: SessionWriter, ended: ExitStack) -> None:
        """Write the new content beside the file of the session."""
        if not is_id(self.session_id):
            raise StorageError(f"Session id {self.session_id!r} cannot stand in a file name; nothing was changed")
        self._stamp = stamp_or_none(folder, self._name)
        self._check_revision(folder, cache)
        content = writer.written(self._session)
        if len(content) > MAX_SESSION:
            raise StorageError(
                f"Session {self.session_id!r} would have {len(content):,} bytes; the limit is {MAX_SESSION:,}; "
                "nothing was changed",
                hint="Shorten the instructions of its job, or abort_workflow and start again.",
            )
        self._beside = ended.enter_context(folder.write_beside(self._name, content))

    def sync(self) -> None:
        """Make the new content durable."""
        if self._beside:
            self._beside.sync()

    def put_in_place(self, folder: Folder, cache: SessionCache, ended: ExitStack, *, waits: bool) -> None:
        """Rename the new content to the session's file, unless that was changed meanwhile."""
        name, subject = lock_name(self.session_id), "the session folder"
        with folder.locked(name, subject=subject) if waits else folder.locked(name, subject=subject, seconds=0):
            stamp = stamp_or_none(folder, self._name)
            if stamp != self._stamp:
                self._stamp = stamp
                self._check_revision(folder, cache)
            if stamp:  # an open file can be read when it has lost its name
                self._previous = ended.enter_context(folder.open_file(self._name))
            if self._beside:
                self._beside.put_in_place()
            self._new_stamp = stamp_or_none(folder, self._name)
            if self._new_stamp and self._new_stamp != stamp:
                cache.put(self.session_id, self._new_stamp, self._session)

    def put_back(self, folder: Folder, error: OSError) -> None:
        """Take a new content back whose name could not be synced; another process may have replaced it since."""
        with folder.locked(lock_name(self.session_id), subject="the session folder"):
            if stamp_or_none(folder, self._name) == self._new_stamp:
                folder.put_back(self._name, self._previous.readall() if self._previous else None, error)
        raise error

    def _check_revision(self, folder: Folder, cache: SessionCache) -> None:
        revision = self._stored(folder, cache)
        if revision != self._expected or (self._expected is None and _is_archived(folder, self._name)):
            raise StaleSession(f"Session {self.session_id!r} was changed meanwhile")

    def _stored(self, folder: Folder, cache: SessionCache) -> Any:
        """Return the stored revision; None if nothing is stored."""
        if self._stamp is None:
            return None
        cached = cache.get(self.session_id, self._stamp)
        return cached.revision if cached else read_revision(folder, self.session_id)


def save_together(
    saves: Sequence[Save], state: StateFolder, cache: SessionCache, writer: SessionWriter, *, waits: bool = False
) -> None:
    """Save some sessions; what has become of each is its own outcome.

    Args:
        saves: What is to be saved.
        state: The folder.
        cache: The sessions that were read or written last.
        writer: Writes them.
        waits: Whether each waits for its lock; otherwise it is left out if another process holds that.
    """
    with ExitStack() as ended:
        try:
            folder = state.prepared()
        except (OSError, PathRefused) as error:
            for save in saves:
                save.attempt(partial(_raise, error))
            return
        note = Note(folder)
        written = [save for save in saves if save.attempt(partial(save.write, folder, cache, writer, ended))]
        note.pause()
        synced = _synced(written)
        note.go_on()
        in_place = [
            save for save in synced if save.attempt(partial(save.put_in_place, folder, cache, ended, waits=waits))
        ]
        try:
            if in_place:
                note.write(save.session_id for save in in_place)
                folder.sync()
        except OSError as error:
            # Syncing again would prove nothing: the kernel may already have dropped the page.
            for save in in_place:
                save.attempt(partial(save.put_back, folder, error))


def _synced(saves: Sequence[Save]) -> list[Save]:
    """Sync what was written, and give the saves for which that succeeded."""
    start = time.monotonic()
    first = [save.attempt(save.sync) for save in saves[:1]]
    rest = saves[1:]
    if rest and time.monotonic() - start > SLOW_SYNC_SECONDS:
        with ThreadPoolExecutor(SYNC_THREADS) as threads:
            attempts = [*threads.map(lambda save: save.attempt(save.sync), rest)]
    else:
        attempts = [save.attempt(save.sync) for save in rest]
    return [save for save, is_synced in zip(saves, [*first, *attempts], strict=True) if is_synced]


def _is_archived(folder: Folder, name: str) -> bool:
    with suppress(FileNotFoundError):
        folder.status(ARCHIVE)  # opening it would make it
        with folder.subfolder(ARCHIVE) as archive:
            return stamp_or_none(archive, name) is not None
    return False


def _raise(error: Exception) -> NoReturn:
    raise error
