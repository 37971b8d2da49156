"""`deepwork store adopt`: a database that lies elsewhere becomes that of a project."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from deepwork_sql.errors import DatabaseError
from deepwork_sql.old_file import InUse, connected, copy_database, hold, refuse
from deepwork_sql.places import FILE, PARTIAL, Place, place_of, sync


@dataclass(frozen=True)
class Source:
    """The database that is adopted.

    Attributes:
        file: Where it is.
        project: The folder of the project that it served, whose sessions become those of this one; None if unknown.
        place: Its place, if it is in the user's state folder.
    """

    file: Path
    project: Path | None = None
    place: Place | None = None


def find_source(path: Path, environment: Mapping[str, str]) -> Source:
    """Find the database that `--from` names: a file, or the folder of a project, which may be gone.

    Raises:
        DatabaseError: It does not exist.
    """
    if path.is_file():
        return Source(path)
    project = Path(os.path.realpath(path))
    for scope in ("repository", "worktree"):
        place = place_of(project, environment, scope=scope)
        if place.file.exists():
            return Source(place.file, project, place)
    if place.old.path.is_file():
        return Source(place.old.path, project)
    raise DatabaseError(
        f"there is no database of {project}",
        hint="Give the folder where the project was when its database was made, or the database file itself.",
    )


def adopt(source: Source, place: Place, project: Path) -> Path | None:
    """Use a database from now on: a copy of it, or itself if an earlier release made it for this project.

    The copy of the project's former database is returned; None if it had none.

    Raises:
        DatabaseError: The source is not a database, or the file to replace is in use.
    """
    with place.locked() as home:
        target = home / FILE
        if source.file == target:
            raise DatabaseError(f"{target} is the database of this project already")
        try:
            with _replaced(target) as former:
                if source.file == place.old.path and place.old.is_own:
                    place.take_over(home, play_back=True)
                else:
                    _copy(source, home / PARTIAL, project)
                    os.replace(home / PARTIAL, target)
                    sync(home)
        except InUse:
            raise DatabaseError(
                f"{source.file} or {target} is in use by another process",
                hint="Stop all servers of this project, then call again.",
            ) from None
        except (OSError, sqlite3.Error) as error:
            refuse(source.file, error)
    if source.place is not None:
        source.place.note_adoption(place.owner)
    return former


@contextmanager
def _replaced(target: Path) -> Iterator[Path | None]:
    """Keep a copy of a file that is about to be replaced, and all other processes away from it."""
    if not target.exists():
        yield None
        return
    former = target.with_name(f"{FILE}.before-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}")
    with closing(connected(target)) as connection:
        hold(connection)
        copy_database(connection, former)
        yield former


def _copy(source: Source, target: Path, project: Path) -> None:
    if not stat.S_ISREG(source.file.lstat().st_mode):
        raise OSError(errno.EINVAL, "Not a regular file")
    with closing(connected(source.file)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        copy_database(connection, target)
    if source.project is None:
        return
    with closing(connected(target)) as connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'deepwork_sessions'").fetchone():
            statement = "UPDATE OR IGNORE deepwork_sessions SET project = ? WHERE project = ?"
            connection.execute(statement, (str(project), str(source.project)))
