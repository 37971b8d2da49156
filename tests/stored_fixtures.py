"""What a release has stored, unpacked from its fixture as its user would have it; `tests/stored_state.py` makes one."""

from __future__ import annotations

import json
import os
import sqlite3
import tarfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from deepwork.testing import Agent, DeepworkProject

FOLDER, KEY = "@FOLDER@", "@KEY@"
# Verdicts of `deepwork sessions verify` on sessions whose gates do not hold, once all have ended.
UNVERIFIED = {"overridden by its agent", "reviewed by its agent", "gate off", "aborted", "archived"}
OVER = ("completed", "reviewed by its agent", "gate off", "aborted", "archived")
# Each step of the job `book` that has to be reported, in an order in which that is possible.
STEPS = {"write": ("draft", "talk", "web", "edition"), "outline": ("draft",)}
OUTLINES = ("inside of another", "reviewed by its agent", "gate off")


@dataclass(frozen=True)
class Restored:
    """A fixture in a folder, as its user would have it.

    Attributes:
        fixture: Its own folder.
        project: The project.
        environment: What the user's environment says of their own folders.
        cases: What is there: see `cases.json`.
    """

    fixture: Path
    project: DeepworkProject
    environment: Mapping[str, str]
    cases: Mapping[str, Any]

    @property
    def unverified(self) -> set[str]:
        """The names of those sessions whose gates do not hold when all have ended, or that are not looked at."""
        return UNVERIFIED

    def sessions(self, place: str) -> dict[str, str]:
        """Return the sessions of a place, by name: nested ones before their parents."""
        return dict(reversed(self.cases[place]["sessions"].items()))

    def open_sessions(self, place: str) -> dict[str, str]:
        """Return the sessions that are not over."""
        return {name: session_id for name, session_id in self.sessions(place).items() if name not in OVER}

    async def finish(self, agent: Agent, place: str, name: str) -> dict[str, Any]:
        """Report every step of a session, also completed ones, and return the last reply."""
        reply: dict[str, Any] = {}
        for step_id in STEPS["outline" if name in OUTLINES else "write"]:
            reply = await report(agent, self.cases[place]["sessions"][name], step_id)
        return reply

    def sql(self) -> str:
        """Return the dump of the PostgreSQL database, of the project where it is now."""
        return _filled((self.fixture / "postgresql.sql").read_text(), self.project.root.parent)


def restored(fixture: Path, folder: Path) -> Restored:
    """Unpack a fixture into a folder. Its files are as new as if its user had worked until now."""
    folder = folder.resolve()
    with tarfile.open(fixture / "files.tar.gz") as archive:
        for member in archive:
            path = folder / _filled(member.name, folder)
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            else:
                file = archive.extractfile(member)
                content = file.read() if file else b""
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(_filled_bytes(content, folder) if path.suffix != ".db" else content)
            path.chmod(member.mode)
    project = folder / "project"
    replace_in_database(database(folder), lambda text: _filled(text, folder))
    (folder / "home").mkdir(exist_ok=True)
    cases = json.loads((fixture / "cases.json").read_text())
    return Restored(fixture, DeepworkProject(project), environment(folder), cases)


def environment(folder: Path) -> dict[str, str]:
    """Return what the environment of the user says of their own folders."""
    names = {"HOME": "home", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state"}
    return {variable: str(folder / name) for variable, name in names.items()}


def database(folder: Path) -> Path:
    """Return the SQLite database: in the user's state folder, or in the project as releases before 1.0.0 had it."""
    [file] = [
        *folder.glob("state/deepwork/databases/*/deepwork.db"),
        *folder.glob("project/.deepwork/data/deepwork.db"),
    ]
    return file


def key(folder: Path) -> str:
    """Return the name of the user's state folder for the project in this folder."""
    return sha256(os.fsencode(folder / "project")).hexdigest()[:24]


def _filled(text: str, folder: Path) -> str:
    return text.replace(FOLDER, str(folder)).replace(KEY, key(folder))


def emptied(text: str, folder: Path) -> str:
    """Replace what is of this machine by its marks."""
    return text.replace(str(folder), FOLDER).replace(key(folder), KEY)


def _filled_bytes(content: bytes, folder: Path) -> bytes:
    return _filled(content.decode("latin-1"), folder).encode("latin-1")


def replace_in_database(path: Path, change: Callable[[str], str]) -> None:
    """Change every text in an SQLite file."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.create_function("changed", 1, lambda value: change(value) if isinstance(value, str) else value)
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            for column in columns:
                connection.execute(
                    f'UPDATE "{table}" SET "{column}" = changed("{column}") WHERE "{column}" != changed("{column}")'
                )


async def report(agent: Agent, session_id: str, step_id: str, **more: Any) -> dict[str, Any]:
    """Report a step with the file that it promises."""
    return await agent.finish({f"{step_id}.md": f"{step_id}.md"}, session_id=session_id, step_id=step_id, **more)
