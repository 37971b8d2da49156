"""Which database a project uses."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deepwork.api import PluginContext
from deepwork.errors import ConfigError
from deepwork_sql.places import Place, place_of
from deepwork_sql.server_url import ServerUrl, shown_url, sqlite_path
from deepwork_sql.settings import AskedSettings, SqlSettings

VARIABLE = "DEEPWORK_DATABASE_URL"


@dataclass(frozen=True)
class Address:
    """Where a database is.

    Attributes:
        target: A PostgreSQL, an SQLite file that a URL names, or the place of the project's own file.
        machine: The name of this machine.
        migrate: Whether the first use brings the tables up to date.
    """

    target: ServerUrl | Path | Place
    machine: str
    migrate: bool = True

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        """The engine of the database."""
        return "postgresql" if isinstance(self.target, ServerUrl) else "sqlite"

    @property
    def file(self) -> Path | None:
        """The SQLite file; None for a server."""
        if isinstance(self.target, Place):
            return self.target.file
        return self.target if isinstance(self.target, Path) else None

    @property
    def shown(self) -> str:
        """The URL as anybody may read it."""
        return str(self.target) if isinstance(self.target, ServerUrl) else f"sqlite:///{self.file}"

    @property
    def is_made(self) -> bool:
        """Whether there is a database already; an SQLite file is made at its first use."""
        if isinstance(self.target, Place):
            return self.target.is_made
        return self.file is None or self.file.exists()


def choose_address(context: PluginContext) -> Address:
    """Choose the database: of the environment, of the settings, or the file in the user's state folder.

    Raises:
        ConfigError: The URL cannot be used, or the project names an untrusted one.
    """
    settings = context.settings(SqlSettings)
    machine = settings.machine or socket.gethostname()
    if url := context.environment.get(VARIABLE):
        return address_of(url, VARIABLE, machine=machine, migrate=settings.migrate)
    asked = context.settings(AskedSettings).database_url
    if asked != settings.database_url:
        raise ConfigError(
            f"plugins.settings.sql.database_url: the project asks for {shown_url(asked)}, which you have not trusted",
            hint=f"Approve it with `deepwork trust`, or set {VARIABLE}.",
        )
    if settings.database_url:
        place = "plugins.settings.sql.database_url"
        return address_of(settings.database_url, place, machine=machine, migrate=settings.migrate)
    return Address(place_of(context.project_root, context.environment, scope=settings.scope), machine, settings.migrate)


def address_of(url: str, place: str, *, machine: str, migrate: bool = True) -> Address:
    """Read a URL; errors say where it was written.

    Raises:
        ConfigError: It is neither of PostgreSQL nor of an SQLite file.
    """
    path = sqlite_path(url)
    target = Path(path) if path else ServerUrl.parse(url)
    if target is None:
        raise ConfigError(
            f"{place} is not the URL of a database that can be used; it is not shown, because it may have a password",
            hint="Write postgresql://USER@HOST/DATABASE, or sqlite:////absolute/path/of/a/file.db. In a password, "
            "write @ as %40, : as %3A, / as %2F, ? as %3F and # as %23.",
        )
    return Address(target, machine, migrate)
