"""Where the database of a project is if no URL says so: in the user's state folder, out of the reach of git."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from deepwork.api import Folder
from deepwork.errors import ConfigError
from deepwork.paths.user_folders import user_state_dir
from deepwork_sql.errors import DatabaseError
from deepwork_sql.location import old_data_root, owner_of
from deepwork_sql.old_file import InUse, OldFile, copy_database, refuse

FOLDERS = "databases"
FILE = "deepwork.db"
OWNER = "belongs-to"

# A copy while it is written, and once it is complete: then it counts as soon as the file that it copies is gone.
PARTIAL, COMPLETE = f"{FILE}.partial", f"{FILE}.complete"
_LOCK_SECONDS = 10.0

# How often this process uses a file of an earlier release where it is. Its header must not be read meanwhile: closing a
# file drops all locks that the process has on it, those of SQLite too.
_uses: Counter[Path] = Counter()

log = logging.getLogger("deepwork.plugin.sql")


@dataclass(frozen=True)
class Place:
    """The place of one database.

    Clients start servers without most of their user's variables, XDG_STATE_HOME among them. So the database is looked
    for in the folder that this variable names, and in the default one.

    Attributes:
        owner: The folder whose path names it.
        folders: Where databases are kept; in the first one new ones are made.
        old: The database file of earlier releases.
    """

    owner: Path
    folders: tuple[Path, ...]
    old: OldFile

    @property
    def file(self) -> Path:
        """The file, which may not exist yet."""
        if _uses[self.old.path]:
            return self.old.path
        return (self._found() or self.folders[0] / self._name) / FILE

    @property
    def is_made(self) -> bool:
        """Whether there is a database, here or of an earlier release in the project."""
        if _uses[self.old.path]:
            return True
        return self.file.exists() or self.file.with_name(COMPLETE).exists() or self.old.is_own

    def prepare(self) -> Path | InProject:
        """Make the file, or move that of an earlier release here.

        Returns:
            The file; or that of an earlier release, which another process uses.

        Raises:
            DatabaseError: No folder can be written, or the file of an earlier release cannot be moved.
        """
        with self.locked() as home:
            if _uses[self.old.path]:
                return InProject(self.old.path)
            if not (home / FILE).exists():
                return self._fill(home)
            if self.old.is_own:
                log.warning("%s", unused_text(self))
            return home / FILE

    @contextmanager
    def locked(self) -> Iterator[Path]:
        """Make the folder of the database, and let no other process change which files are in it.

        Raises:
            DatabaseError: It cannot be made.
        """
        usable = self.make_folders()
        # All processes of the user know the last folder, with XDG_STATE_HOME and without it.
        with (
            Folder.open(usable[-1], inside=usable[-1]) as common,
            common.locked(f"{self._name}.lock", subject="the database", seconds=_LOCK_SECONDS),
        ):
            try:
                yield self._home(usable)
            except OSError as error:
                raise _unwritable(usable[0], error) from error

    def moved_from(self) -> Path | None:
        """Return where this repository was before it was moved, if it has left a database there."""
        inode = str(self.owner.stat().st_ino)
        for folder in self.folders:
            for record in folder.glob(f"*/{OWNER}"):
                owner, _, owner_inode = _text(record).rpartition("\n")
                is_gone = owner_inode == inode and not os.path.lexists(owner)
                if is_gone and (record.parent / FILE).exists():
                    return Path(owner)
        return None

    def take_over(self, home: Path, *, play_back: bool) -> None:
        """Move the file of an earlier release here. A kill at any moment leaves it there or here, whole.

        Args:
            home: The folder of the database, which this process has locked.
            play_back: Whether files beside it may be played back.

        Raises:
            InUse: Another process has it open.
            DatabaseError: It cannot be moved.
        """
        try:
            with self.old.held(play_back=play_back) as connection:
                copy_database(connection, home / PARTIAL)
                os.replace(home / PARTIAL, home / COMPLETE)
                sync(home)
                self.old.leave_note(home / FILE)
        except (OSError, sqlite3.Error) as error:
            refuse(self.old.path, error)
        self.old.remove_empty_files_beside()
        _complete(home)
        log.warning("the database %s was moved to %s", self.old.path, home / FILE)

    def note_adoption(self, owner: Path) -> None:
        """Note that the database has become that of another folder too, so that `moved_from` names it no more."""
        self._record(self.file.parent, f"adopted by {owner}")

    @property
    def _name(self) -> str:
        return sha256(os.fsencode(self.owner)).hexdigest()[:24]

    def _found(self) -> Path | None:
        """Find the folder of the database; a link leads from the folder of one variable to that of another."""
        for folder in self.folders:
            if os.path.lexists(folder / self._name):
                return Path(os.path.realpath(folder / self._name))
        return None

    def make_folders(self) -> list[Path]:
        """Make the folders of databases, and return the writable ones.

        Raises:
            DatabaseError: None is writable.
        """
        errors = []
        usable = []
        for folder in self.folders:
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as error:
                errors.append(error)
                continue
            if os.access(folder, os.W_OK | os.X_OK):
                usable.append(folder)
            else:
                errors.append(PermissionError(13, "Permission denied"))
        if not usable:
            raise _unwritable(self.folders[0], errors[0])
        return usable

    def _home(self, usable: list[Path]) -> Path:
        home = self._found()
        if home is None:
            home = usable[0] / self._name
            for folder in usable[1:]:
                (folder / self._name).symlink_to(home)
        if not home.parent.is_dir():
            raise DatabaseError(
                f"the database of {self.owner} was made in {home}, when XDG_STATE_HOME named that folder, and it is "
                "not there now",
                hint=f"Bring it back. If it is gone for good, remove the link {self.folders[-1] / self._name}.",
            )
        if not home.is_dir():
            home.mkdir(mode=0o700)
            sync(home.parent)
        self._record(home, str(self.owner.stat().st_ino))
        return home

    def _record(self, home: Path, inode: str) -> None:
        """Write to which folder a database belongs: a folder that is moved keeps its inode."""
        record = f"{self.owner}\n{inode}"
        if _text(home / OWNER) != record:
            with Folder.open(home, inside=home) as folder:
                folder.replace(OWNER, os.fsencode(record))

    def _fill(self, home: Path) -> Path | InProject:
        if self.old.is_own:
            try:
                self.take_over(home, play_back=False)
            except InUse:
                log.warning(
                    "%s is in use by another process, so it stays there; the next start moves it to %s",
                    self.old.path,
                    home / FILE,
                )
                return InProject(self.old.path)
        elif (home / COMPLETE).exists():
            _complete(home)
        else:
            if before := self.moved_from():
                log.warning("%s", moved_text(before))
            os.close(os.open(home / FILE, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return home / FILE


class InProject:
    """The use of a file of an earlier release where it is: no process can move it before this is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, check_same_thread=False)
            self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # takes the lock
        except sqlite3.Error as error:
            refuse(path, error)
        _uses[path] += 1

    def close(self) -> None:
        """Let the file be moved."""
        self._connection.close()
        _uses[self.path] -= 1


def place_of(root: Path, environment: Mapping[str, str], *, scope: str) -> Place:
    """Find out where the database of a project is.

    Raises:
        ConfigError: The user's state folder lies in the project's repository.
    """
    owner = owner_of(root, scope=scope)
    without = {name: value for name, value in environment.items() if name != "XDG_STATE_HOME"}
    candidates = [user_state_dir(variables) / FOLDERS for variables in (environment, without)]
    folders = tuple(
        folder
        for folder in dict.fromkeys(Path(os.path.realpath(candidate)) for candidate in candidates)
        if not any(folder.is_relative_to(checkout) for checkout in (root, owner))
    )
    if not folders:
        raise ConfigError(
            f"your state folder {candidates[0].parent} lies in {owner}, whose repository could bring what is in it",
            hint="Let XDG_STATE_HOME name a folder outside of it.",
        )
    return Place(owner, folders, OldFile(old_data_root(root, scope=scope), folders))


def unused_text(place: Place) -> str:
    """Warn that a file of an earlier release is not used, because there is another database."""
    return (
        f"{place.old.path}, which an earlier release made, is not used, because the database is {place.file}. "
        "`deepwork store adopt` uses it instead; `plugins.settings.sql.scope: worktree` keeps it for its working tree"
    )


def moved_text(before: Path) -> str:
    """Tell how a repository that was moved gets its database back."""
    return f"this repository seems to have been at {before} before: `deepwork store adopt --from {before}`"


def _complete(home: Path) -> None:
    os.replace(home / COMPLETE, home / FILE)
    sync(home)


def sync(folder: Path) -> None:
    """Make new and renamed files of a folder durable."""
    with Folder.open(folder, inside=folder) as opened:
        opened.sync()


def _text(file: Path) -> str:
    try:
        return os.fsdecode(file.read_bytes())
    except OSError:
        return ""


def _unwritable(folder: Path, error: OSError) -> DatabaseError:
    return DatabaseError(
        f"{folder}, where your databases are kept, cannot be written: {error.strerror}",
        hint="Let XDG_STATE_HOME name a folder that you can write, or DEEPWORK_DATABASE_URL a database.",
    )
