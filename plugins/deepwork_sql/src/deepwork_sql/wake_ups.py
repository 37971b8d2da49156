"""Who waits for events is woken: by LISTEN and NOTIFY of PostgreSQL, by the data version of an SQLite file.

A wake-up may be lost. Readers poll besides.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from sqlalchemy import Engine

from deepwork_sql.engines import cleaned, driver_arguments

CHANNEL = "deepwork_events"

# Commits that notify are made one after another in the whole database, so that is done beside them, and not for each.
_NOTIFY_SECONDS = 0.02
_LOOK_SECONDS = 0.1
_RECONNECT_SECONDS = 2.0

log = logging.getLogger("deepwork.plugin.sql")


class WakeUps:
    """Wakes the readers of this process, and tells other processes of new events.

    Attributes:
        tasks: What runs beside the calls until the database is closed.
    """

    def __init__(self, engine: Engine, tasks: TaskGroup) -> None:
        self._engine = engine
        self.tasks = tasks
        self._next = anyio.Event()
        self._announcement: anyio.Event | None = None
        self._is_watching = False

    def next(self) -> anyio.Event:
        """Return the next sign that there may be new events. Take it before you read, and wait for it after."""
        if not self._is_watching:
            self._is_watching = True
            watch = self._listen if self._engine.dialect.name == "postgresql" else self._watch_file
            self.tasks.start_soon(self._for_ever, watch)
        return self._next

    def announce(self) -> None:
        """Wake readers here and elsewhere: this process has committed events. Returns at once."""
        self._wake()
        if self._engine.dialect.name != "postgresql":
            return
        if self._announcement is None:
            self._announcement = anyio.Event()
            self.tasks.start_soon(self._for_ever, self._notify)
        self._announcement.set()

    def _wake(self) -> None:
        wake_up, self._next = self._next, anyio.Event()
        wake_up.set()

    async def _for_ever(self, work: Callable[[], Awaitable[None]]) -> None:
        """Begin again when the database was away; readers poll meanwhile."""
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - a driver may raise anything, and the next try may succeed
                log.debug("wake-ups: %s", cleaned(self._engine, str(error)))
            await anyio.sleep(_RECONNECT_SECONDS)

    async def _notify(self) -> None:
        while True:
            assert self._announcement
            await self._announcement.wait()
            self._announcement = anyio.Event()
            await to_thread.run_sync(self._send)
            await anyio.sleep(_NOTIFY_SECONDS)

    def _send(self) -> None:
        with self._engine.connect() as connection, connection.begin():
            connection.exec_driver_sql(f"NOTIFY {CHANNEL}")

    async def _listen(self) -> None:
        from psycopg import AsyncConnection

        connection = await AsyncConnection.connect(**driver_arguments(self._engine), autocommit=True)
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            self._wake()
            async for _ in connection.notifies():
                self._wake()

    async def _watch_file(self) -> None:
        with closing(sqlite3.connect(str(self._engine.url.database))) as connection:
            version = None
            while True:
                version, before = connection.execute("PRAGMA data_version").fetchone()[0], version
                if before not in (None, version):
                    self._wake()
                await anyio.sleep(_LOOK_SECONDS)
