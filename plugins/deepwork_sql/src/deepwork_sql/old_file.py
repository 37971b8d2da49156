"""The database that earlier releases kept in `.deepwork/data` of the project, which is moved out of it once.

A repository can bring a file of this name. Those releases wrote a random number into the header of each file that they
made, and noted the number in the user's state folder: only a file with such a number is opened.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from deepwork.api import Folder
from deepwork.errors import PathRefused
from deepwork_sql.errors import DatabaseError

NAME = "deepwork.db"

_NOTE = b"This was the database of deepwork. It is kept in your state folder now, out of the reach of git:\n"
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
# `user_version` and `application_id`, in which the number stands.
_NUMBER = slice(60, 64), slice(68, 72)
# SQLite would play these back into the database.
_BESIDE = ("-journal", "-wal")
# Every connection holds a lock on these bytes of the file.
_LOCKED_FROM, _LOCKED_BYTES = 0x40000002, 510


class InUse(Exception):
    """Another process has the file open."""


class OldFile:
    """The file in the project.

    Args:
        root: The folder in which earlier releases kept it.
        noted_in: The folders in which they noted the numbers of the files that the user has made.
    """

    def __init__(self, root: Path, noted_in: Iterable[Path]) -> None:
        self._root = root
        self._noted_in = noted_in
        self.path = root / ".deepwork" / "data" / NAME

    def __repr__(self) -> str:
        return f"OldFile({str(self.path)!r})"

    @property
    def exists(self) -> bool:
        """Whether there is something that may be a database of any owner."""
        try:
            status = self.path.lstat()
        except OSError:
            return False
        return not (stat.S_ISREG(status.st_mode) and self._head().startswith(_NOTE[:_HEADER_BYTES]))

    @property
    def is_own(self) -> bool:
        """Whether this user has made the file with an earlier release."""
        head = self._head()
        if len(head) < _HEADER_BYTES or not head.startswith(_MAGIC):
            return False
        number = b"".join(head[part] for part in _NUMBER)
        return any(number) and any((folder / number.hex()).is_file() for folder in self._noted_in)

    def files_beside(self) -> list[str]:
        """Name the files with content that SQLite would play back when it opens this one."""
        paths = [self.path.with_name(NAME + ending) for ending in _BESIDE]
        return [path.name for path in paths if os.path.lexists(path) and path.lstat().st_size]

    @contextmanager
    def held(self, *, play_back: bool) -> Iterator[sqlite3.Connection]:
        """Open the file so that no other process can, not even to read.

        Args:
            play_back: Whether files beside it may be played back: its user has said that they are theirs.

        Raises:
            InUse: Another process has it open.
            DatabaseError: There are files beside it.
        """
        if not play_back:
            self.check_beside()
        with closing(connected(self.path)) as connection:
            hold(connection)
            yield connection

    def check_beside(self) -> None:
        """Refuse unused files beside it.

        Raises:
            InUse: Another process has the file open, and they are its own.
            DatabaseError: There are such files.
        """
        if beside := self.files_beside():
            self._check_unused()
            raise DatabaseError(
                f"{self.path} was made by an earlier release, and {' and '.join(beside)} lies beside it: a server that "
                "was killed leaves that, but a repository could bring it, so it is not played back unasked",
                hint="If a server of yours was killed, `deepwork store adopt` once; else remove that file.",
            )

    def leave_note(self, target: Path) -> None:
        """Put a text that says where the database is now in the place of the file, which is gone then."""
        with Folder.open(self.path.parent, inside=self._root) as folder:
            # Nothing may open the file itself meanwhile: closing it would drop the lock of SQLite.
            with folder.write_beside(NAME, _NOTE + os.fsencode(target) + b"\n") as note:
                note.sync()
                note.put_in_place()
            folder.sync()

    def remove_empty_files_beside(self) -> None:
        """Remove what the connection that held the file has left, because the file was gone when it was closed."""
        for ending in _BESIDE:
            path = self.path.with_name(NAME + ending)
            with suppress(OSError):
                if not path.lstat().st_size:
                    path.unlink()

    def _head(self) -> bytes:
        """Read the first bytes of a regular file that is not reached by a link; else return none."""
        if any(folder.is_symlink() for folder in (self.path.parent.parent, self.path.parent)):
            return b""
        try:
            with (
                Folder.open(self.path.parent, inside=self._root) as folder,
                folder.open_file(NAME) as file,
            ):
                return file.read(_HEADER_BYTES) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
        except (OSError, PathRefused):
            return b""

    def _check_unused(self) -> None:
        """Raise if a connection of another process is open, without opening one, which would play back at once."""
        with open(self.path, "r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCKED_BYTES, _LOCKED_FROM)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EACCES):
                    raise InUse from None
                raise


def connected(path: Path) -> sqlite3.Connection:
    """Connect to a file that exists; a lock is not waited for."""
    return sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=0)


def hold(connection: sqlite3.Connection) -> None:
    """Keep every other connection away from a file until this one is closed.

    Raises:
        InUse: There is one.
    """
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
        # Else the write-ahead log would stay, and be played back into the file that comes into its place.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise InUse from None
        raise


def copy_database(source: sqlite3.Connection, target: Path) -> None:
    """Copy a database to a new file that only its owner can read, durably."""
    target.unlink(missing_ok=True)  # of a copy that was cut off
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        source.backup(copy)
    descriptor = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse(path: Path, error: Exception) -> NoReturn:
    """Raise the error for a file that could not be moved or copied."""
    reason = error.strerror if isinstance(error, OSError) else error
    raise DatabaseError(
        f"{path} cannot be moved into your state folder: {reason}; nothing was changed",
        hint="Fix the cause, then call again.",
    ) from error
