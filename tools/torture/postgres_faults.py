"""Faults of PostgreSQL: messages that are lost, a server that crashes, is full, away or read-only, or cannot commit."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
from machine_faults import MOST_WRITES, filled, locks, small_disk
from scenes import Scene, Stage
from stores import Database, opened_store
from suffering import LONGEST, Suffering, Trouble

sys.path.append(str(Path(__file__).parents[2] / "plugins" / "deepwork_sql" / "tests"))
from cutting_proxy import COMMIT, Proxy, proxy_to

WAYS = ("before", "after")
ANY = b""
REFUSES_TO_COMMIT = "the torture refuses this commit"
FAILING_COMMIT = (
    "CREATE FUNCTION deepwork_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = '{REFUSES_TO_COMMIT}'; END $$",
    "CREATE CONSTRAINT TRIGGER deepwork_refuse AFTER INSERT OR UPDATE ON deepwork_sessions "
    "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION deepwork_refuse()",
)
WITHOUT = ("DROP TRIGGER deepwork_refuse ON deepwork_sessions", "DROP FUNCTION deepwork_refuse()")
FILLERS = (
    "INSERT INTO deepwork_events (xid, source, event, at, data) "
    "SELECT 0, 'torture', 'filler', 0, '{}' FROM generate_series(1, 5)"
)
MOVES = [f"ALTER TABLE {table} SET TABLESPACE" for table in ("deepwork_sessions", "deepwork_events")]


class Postgres:
    """A stage with a PostgreSQL of its own, behind a network that breaks."""

    def __init__(self, suffering: Suffering, folder: Path, store: Database, proxy: Proxy, url: str) -> None:
        assert store.cluster
        self._suffering = suffering
        self._store = store
        self._cluster = store.cluster
        self._proxy = proxy
        root = folder / "project"
        root.mkdir()
        self.stage = Stage(root, store, {"DEEPWORK_DATABASE_URL": url})

    def lose_each_message(self) -> str:
        """Cut the connection at the first message of each call, then at the second, until none is left to cut."""
        lost = 0
        for scene in self.stage.scenes:
            for way in WAYS:
                for number in range(MOST_WRITES):
                    name = f"connection lost {way} message {number + 1}"
                    self._suffering.suffer(self.stage, scene, Trouble(name, (), partial(self._cut, way, ANY, number)))
                    if not self._was_cut:
                        break
                    lost += 1
        return f"real: {lost} messages of calls lost, or their answers, with the connection"

    def crash_at_commit(self, scenes: Sequence[Scene]) -> str:
        """Crash the server when it is to commit, and when it has committed but not answered."""
        crashes = 0
        for scene in scenes:
            for way in WAYS:
                trouble = Trouble(f"crashed {way} COMMIT", (), partial(self._cut, way, COMMIT, 0, crashes=True))
                self._suffering.suffer(self.stage, scene, trouble)
                crashes += self._was_cut
        return f"real: {crashes} crashes of PostgreSQL at a COMMIT of a call"

    def be_away(self) -> str:
        """Stop the server for longer than callers wait."""
        trouble = Trouble(
            "PostgreSQL is away", ["server closed the connection", "No connection to the database"], self._away
        )
        return self._suffering.suffer_together(self.stage, self.stage.scenes, trouble)

    def fail(self, scenes: Sequence[Scene]) -> Iterator[str]:
        """Restart the server between two calls, have COMMIT fail, and make it a standby, which can only be read."""
        restarted = Trouble("restarted", (), self._restarted)
        refusing = Trouble("COMMIT fails", [REFUSES_TO_COMMIT], self._refusing)
        standby = Trouble("a standby", ["read-write mode during recovery"], self._standby)
        for trouble, chosen in ((restarted, scenes), (refusing, self.stage.scenes), (standby, scenes)):
            failed = self._suffering.suffer_each(self.stage, chosen, trouble)
            yield f"real: {failed} of {len(chosen)} calls failed: {trouble.name}"

    def fill_disk(self) -> str:
        """Put the tables on a small disk, and fill it."""
        disk = self._cluster.folder / "disk"
        disk.mkdir()
        data = self._cluster.folder / "data"
        with small_disk(disk, "8m") as problem:
            if problem:
                return f"SKIPPED: full tmpfs; {problem}"
            shutil.chown(disk, data.owner(), data.group())
            self._store.run_sql(f"CREATE TABLESPACE small LOCATION '{disk}'", *(f"{move} small" for move in MOVES))
            trouble = Trouble("a full disk", [os.strerror(errno.ENOSPC)], partial(self._full, disk))
            failed = self._suffering.suffer_each(self.stage, self.stage.scenes, trouble)
            self._store.run_sql(*(f"{move} pg_default" for move in MOVES), "DROP TABLESPACE small")
        return f"real: {failed} calls on a full tmpfs"

    @contextmanager
    def _cut(self, way: str, at: bytes, skip: int, *, crashes: bool = False) -> Iterator[None]:
        proxy, is_over = self._proxy, threading.Event()

        def crash() -> None:
            if crashes:
                self._cluster.restart("immediate")
            is_over.set()

        proxy.when_cut, proxy.at, proxy.skip, proxy.cut = crash, at, skip, way
        yield
        self._was_cut = proxy.cut is None
        proxy.cut = None
        if self._was_cut and not is_over.wait(LONGEST):
            raise RuntimeError("PostgreSQL did not come back")

    @contextmanager
    def _full(self, disk: Path) -> Iterator[None]:
        """Fill a disk, and the room that is left in the table of events."""
        with filled(disk, 0):
            try:
                while True:
                    self._store.run_sql(FILLERS)
            except psycopg.errors.DiskFull:
                yield
        self._store.run_sql("DELETE FROM deepwork_events WHERE source = 'torture'", "VACUUM FULL deepwork_events")

    @contextmanager
    def _restarted(self) -> Iterator[None]:
        self._cluster.restart()
        yield

    @contextmanager
    def _away(self) -> Iterator[None]:
        self._cluster.stop()
        yield
        self._cluster.start()

    @contextmanager
    def _standby(self) -> Iterator[None]:
        signal = self._cluster.folder / "data" / "standby.signal"
        signal.touch()
        shutil.chown(signal, signal.parent.owner(), signal.parent.group())
        self._cluster.restart()
        yield
        self._store.rows("SELECT pg_promote()")

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        self._store.run_sql(*FAILING_COMMIT)
        yield
        self._store.run_sql(*WITHOUT)


def postgres_faults(suffering: Suffering, folder: Path, *, quick: bool) -> Iterator[str]:
    """Lose connections, crash, stop, fill and lock PostgreSQL, and make it read-only."""
    with opened_store("postgresql", folder) as store, proxy_to(store.url) as (proxy, url):
        postgres = Postgres(suffering, folder, store, proxy, url)
        stage = postgres.stage
        # What a restart takes is long enough for the short run.
        scenes = [scene for scene in stage.scenes if not quick or scene.name in ("start", "finish a step")]
        yield postgres.lose_each_message()
        yield postgres.crash_at_commit(scenes)
        yield postgres.fill_disk()
        yield from postgres.fail(scenes)
        lock = "BEGIN; LOCK TABLE deepwork_sessions IN ACCESS EXCLUSIVE MODE"
        yield from locks(suffering, stage, lock, refusal="", quick=True)
        if not quick:
            yield postgres.be_away()
        suffering.close(stage)
