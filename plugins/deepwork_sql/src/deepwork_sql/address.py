"""Which database a project uses."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from deepwork.api import ConfigError, PluginContext
from deepwork_sql.location import DATA, FILE, data_root, prepare_file
from deepwork_sql.settings import AskedSettings, SqlSettings, has_bad_port, without_password

VARIABLE = "DEEPWORK_DATABASE_URL"

_POSTGRES = ("postgresql", "postgres")


@dataclass(frozen=True)
class Address:
    """Where a database is.

    Attributes:
        dialect: Its engine.
        shown: The URL without a password.
        machine: The name of this machine.
        migrate: Whether the first use brings the tables up to date.
        file: The SQLite file; None for a server.
        secret: Gives the URL as it was written. For an SQLite file of the project, it makes the file, or
            refuses one that somebody else has made.
    """

    dialect: Literal["sqlite", "postgresql"]
    shown: str
    machine: str
    migrate: bool
    secret: Callable[[], str]
    file: Path | None = None

    @property
    def is_made(self) -> bool:
        """Whether there is a database already; an SQLite file is made at its first use."""
        return self.file is None or self.file.exists()

    def __repr__(self) -> str:
        """Show the address without its password, in tracebacks too."""
        return f"Address({self.shown!r})"


def choose_address(context: PluginContext) -> Address:
    """Choose the database: of the environment, of the settings, or the file of the repository.

    Args:
        context: The context of the plugin `sql`.

    Raises:
        ConfigError: The URL cannot be used, or the project names one that is not trusted.
    """
    settings = context.settings(SqlSettings)
    machine = settings.machine or socket.gethostname()
    if url := context.environment.get(VARIABLE):
        return address_of(url, VARIABLE, machine=machine, migrate=settings.migrate)
    asked = context.settings(AskedSettings).database_url
    if asked != settings.database_url:
        raise ConfigError(
            f"plugins.settings.sql.database_url: the project asks for {without_password(asked)!r}, which you have not "
            "trusted",
            hint=f"Approve it with `deepwork trust`, or set {VARIABLE}.",
        )
    if settings.database_url:
        place = "plugins.settings.sql.database_url"
        return address_of(settings.database_url, place, machine=machine, migrate=settings.migrate)
    root = data_root(context.project_root, scope=settings.scope)
    path = root / DATA / FILE
    return Address(
        "sqlite",
        f"sqlite:///{path}",
        machine,
        settings.migrate,
        lambda: str(prepare_file(root, context.environment)),
        path,
    )


def address_of(url: str, place: str, *, machine: str, migrate: bool = True) -> Address:
    """Read a URL.

    Args:
        url: The URL.
        place: Where it was written, for errors.
        machine: The name of this machine.
        migrate: Whether the first use brings the tables up to date.

    Raises:
        ConfigError: It is neither of PostgreSQL nor of an SQLite file.
    """
    shown = without_password(url)
    parts = urlsplit(url)
    if parts.scheme in _POSTGRES and not has_bad_port(url):
        driver_url = f"postgresql+psycopg{url[len(parts.scheme) :]}"
        return Address("postgresql", shown, machine, migrate, lambda: driver_url)
    if parts.scheme == "sqlite" and not parts.netloc and parts.path.startswith("//") and not parts.query:
        path = Path(unquote(parts.path[1:]))
        return Address("sqlite", shown, machine, migrate, lambda: str(path), path)
    raise ConfigError(
        f"{place}: {shown!r} is not the URL of a database that can be used",
        hint="Write postgresql://USER@HOST/DATABASE, or sqlite:////absolute/path/of/a/file.db.",
    )
