"""A private PostgreSQL server for tests and long runs, started from the installed binaries."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/usr/local/opt/postgresql*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
)
_SECONDS = 60


class NoPostgres(Exception):
    """No PostgreSQL can be started here."""


@dataclass(frozen=True)
class Server:
    """A running server, by the URL of its maintenance database for a user who may make databases."""

    url: str

    @contextlib.contextmanager
    def new_database(self) -> Iterator[str]:
        """Make a database, give its URL, and drop it in the end."""
        import psycopg

        name = f"deepwork_test_{secrets.token_hex(6)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield self._url_of(name)
        finally:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    def _url_of(self, database: str) -> str:
        from urllib.parse import urlsplit, urlunsplit

        return urlunsplit(urlsplit(self.url)._replace(path=f"/{database}"))


@dataclass(frozen=True)
class Cluster(Server):
    """A server of our own in a folder, which can be stopped and started."""

    folder: Path

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        _run("pg_ctl", "start", "-w", "-D", str(self.folder / "data"), "-l", str(self.folder / "log"))

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is as if it had crashed."""
        _run("pg_ctl", "stop", "-w", "-D", str(self.folder / "data"), "-m", mode)

    def restart(self, mode: str = "fast") -> None:
        """Stop the server and start it again."""
        _run("pg_ctl", "restart", "-w", "-D", str(self.folder / "data"), "-m", mode, "-l", str(self.folder / "log"))


# Ends when its stdin does, which is when the process that holds the other end has ended, however it has.
_WATCH = 'cat > /dev/null; "$0" stop -D "$1/data" -m immediate > /dev/null 2>&1; rm -rf "$1"'


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Make a cluster in a temporary folder, start it, and remove it in the end, also if this process is killed.

    Raises:
        NoPostgres: PostgreSQL is not installed.
    """
    program = find_program("pg_ctl")
    # Not in the temporary folder that tests set: the server outlives it, and the user who runs it for root cannot enter
    # that folder. A socket needs a short path, too.
    folder = Path(tempfile.mkdtemp(prefix="deepwork-postgres-", dir="/tmp"))
    if user := _other_user():
        os.chown(folder, user.pw_uid, user.pw_gid)
    watch = ["sh", "-c", _WATCH, program, str(folder)]
    watcher = subprocess.Popen(watch, stdin=subprocess.PIPE, cwd="/", start_new_session=True, **_as(user))
    try:
        _run("initdb", "-D", str(folder / "data"), "-U", "deepwork", "-A", "trust", "-E", "UTF8", "--locale=C")
        port = _free_port()
        _configure(folder, port)
        cluster = Cluster(f"postgresql://deepwork@127.0.0.1:{port}/postgres", folder)
        cluster.start()
        yield cluster
    finally:
        watcher.communicate()


def _as(user: pwd.struct_passwd | None) -> dict[str, Any]:
    """Return what lets `subprocess` run a program as another user."""
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}


def _configure(folder: Path, port: int) -> None:
    lines = (
        "listen_addresses = '127.0.0.1'",
        f"port = {port}",
        f"unix_socket_directories = '{folder}'",
        "max_connections = 200",
        "shared_buffers = '64MB'",
    )
    with open(folder / "data" / "postgresql.conf", "a", encoding="utf-8") as file:
        file.write("\n".join(["", *lines, ""]))


def _run(program: str, *arguments: str) -> None:
    """Run one of the programs of PostgreSQL, as another user if this is root: they refuse to run as root."""
    environment = {**os.environ, "LC_ALL": "C"}
    # The server inherits the output of `pg_ctl`, so this is a file: a pipe would never be closed.
    with tempfile.TemporaryFile() as output:
        completed = subprocess.run(
            [find_program(program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=environment,
            timeout=_SECONDS,
            check=False,
            **_as(_other_user()),
        )
        if completed.returncode:
            output.seek(0)
            raise NoPostgres(f"{program} failed: {output.read().decode(errors='replace').strip()}")


def find_program(program: str) -> str:
    """Find one of the programs of PostgreSQL.

    Raises:
        NoPostgres: It is not installed.
    """
    if path := shutil.which(program):
        return path
    if config := shutil.which("pg_config"):
        folder = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False).stdout.strip()
        if path := shutil.which(program, path=folder):
            return path
    for pattern in _FOLDERS:
        for candidate in sorted(Path("/").glob(pattern[1:]), key=_version, reverse=True):
            if path := shutil.which(program, path=str(candidate)):
                return path
    raise NoPostgres(f"{program} is not installed")


def _version(folder: Path) -> int:
    digits = "".join(character for character in folder.parent.name if character.isdigit())
    return int(digits or 0)


def _other_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoPostgres("there is no user `postgres` or `nobody` that could run it")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
