"""Which SQLite files this user has made: what a repository brings is not opened.

A file of this plugin has a random number in its header, from its first moment on. The user's state folder has a file
for each of these numbers, so no repository can bring a database whose number is known here.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import anyio

from deepwork.api import Folder, Git, GitError, user_state_dir
from deepwork_sql.errors import DatabaseError

NAMES = "databases"
# Where SQLite keeps `user_version` and `application_id`, which it has for programs to use.
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_VERSION, _APPLICATION = slice(60, 64), slice(68, 72)
_UNMARKED = bytes(8)
# SQLite would play these back into the database.
_BESIDE = ("-journal", "-wal")


class KnownFiles:
    """The numbers of the files that this user has made or adopted.

    Clients start servers without most of their user's variables, XDG_STATE_HOME among them. So a number is kept in the
    folder that this variable names and in the one that counts without it, as far as they lie outside of the project.
    """

    def __init__(self, environment: Mapping[str, str], root: Path) -> None:
        without = {name: value for name, value in environment.items() if name != "XDG_STATE_HOME"}
        folders = dict.fromkeys(user_state_dir(variables) / NAMES for variables in (environment, without))
        project = os.path.realpath(root)
        self._paths = [path for path in folders if not Path(os.path.realpath(path)).is_relative_to(project)]

    def has(self, mark: bytes) -> bool:
        """Say whether a file with this number is one of them."""
        return mark != _UNMARKED and any((path / mark.hex()).is_file() for path in self._paths)

    def add(self, mark: bytes) -> None:
        """Remember a number.

        Raises:
            DatabaseError: No state folder of the user can be written.
        """
        errors = [error for path in self._paths if (error := _kept(path, mark.hex()))]
        if len(errors) == len(self._paths):
            raise DatabaseError(
                f"{' and '.join(map(str, self._paths)) or 'your state folder'} cannot be written, so nobody could tell "
                f"later who made the database: {errors[0].strerror if errors else 'it lies in the project'}",
                hint="Let XDG_STATE_HOME name a folder that you can write.",
            )


def _kept(folder: Path, name: str) -> OSError | None:
    """Put an empty file into a folder; give the error if that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with Folder.open(folder, inside=folder) as opened:
            opened.replace(name, b"")
    except OSError as error:
        return error
    return None


def new_content(mark: bytes) -> bytes:
    """Give the bytes of a database without tables that has this number."""
    with closing(sqlite3.connect(":memory:")) as connection:
        _write_mark(connection, mark)
        return connection.serialize()


def new_mark() -> bytes:
    """Draw a number."""
    return secrets.token_bytes(len(_UNMARKED))


def mark_of(folder: Folder, name: str) -> bytes:
    """Read the number of a file, without SQLite."""
    with folder.open_file(name) as file:
        header = file.read(_HEADER_BYTES)
    is_whole = len(header) == _HEADER_BYTES and header.startswith(_MAGIC)
    return header[_VERSION] + header[_APPLICATION] if is_whole else _UNMARKED


def check_ownership(folder: Folder, path: Path, root: Path, environment: Mapping[str, str]) -> None:
    """Refuse a database that this user has not made, and files beside it that git has brought.

    Raises:
        DatabaseError: It is refused; the error says what to do.
    """
    if not KnownFiles(environment, root).has(mark_of(folder, path.name)):
        raise DatabaseError(
            f"{path} was not made by you on this machine, so it is not opened: it may have come with the repository",
            hint="If it is yours, `deepwork store adopt` once; else remove it.",
        )
    if any(files_beside(folder, path.name)) and (brought := tracked(root, environment)):
        raise DatabaseError(
            f"git tracks {', '.join(brought[:3])}, which SQLite would play back into your database",
            hint="Stop all servers, `git rm --cached` these files, and remove those that git has brought.",
        )


def files_beside(folder: Folder, name: str) -> Iterator[str]:
    """Name the files that SQLite would play back into a database."""
    present = set(folder.names())
    yield from (name + ending for ending in _BESIDE if name + ending in present)


def tracked(root: Path, environment: Mapping[str, str]) -> list[str]:
    """Name what git tracks in the folder of the data. Where git cannot be used, it brings nothing either."""

    async def listed() -> list[str]:
        git = await Git.open(root, environment)
        return await git.paths("ls-files", "-z", "--", ".deepwork/data") if git else []

    try:
        return anyio.run(listed)
    except GitError:
        return []


def adopt(path: Path, root: Path, environment: Mapping[str, str]) -> None:
    """Believe a file from now on: its user has said that it is theirs.

    Raises:
        DatabaseError: There is none, git tracks it, or it is no database.
    """
    if brought := tracked(root, environment):
        raise DatabaseError(
            f"git tracks {', '.join(brought[:3])}: whoever writes to the repository could change your database",
            hint="`git rm -r --cached .deepwork/data`, then call again.",
        )
    try:
        with Folder.open(path.parent, inside=root) as folder:
            if not stat.S_ISREG(folder.status(path.name).st_mode):
                raise OSError(errno.EINVAL, "Not a regular file")
            mark = mark_of(folder, path.name)
            if mark == _UNMARKED:
                mark = new_mark()
                with _opened(path) as connection:
                    _write_mark(connection, mark)
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                if mark_of(folder, path.name) != mark:
                    raise DatabaseError(f"{path} is in use", hint="Stop all servers, then call again.")
    except (OSError, sqlite3.Error) as error:
        raise DatabaseError(f"{path} cannot be adopted: {error}", hint="`deepwork store info` makes one.") from None
    KnownFiles(environment, root).add(mark)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None)) as connection:
        yield connection


def _write_mark(connection: sqlite3.Connection, mark: bytes) -> None:
    version, application = (int.from_bytes(part, "big", signed=True) for part in (mark[:4], mark[4:]))
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(f"PRAGMA application_id = {application}")
