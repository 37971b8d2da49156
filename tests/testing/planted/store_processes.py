"""Stores that do one thing wrong among processes, or block the event loop."""

from __future__ import annotations

import os
import time

import anyio
from good_store import GoodStore

from deepwork.errors import StorageError


class BlocksWhileItLoads(GoodStore):
    breaks = "test_the_event_loop_is_not_blocked"

    async def load(self, session_id):
        time.sleep(0.3)
        return await super().load(session_id)


class BlocksWhileItSaves(GoodStore):
    breaks = "test_the_event_loop_is_not_blocked"

    async def save(self, session, *, expected):
        time.sleep(0.3)
        return await super().save(session, expected=expected)


class BlocksWhileItFinds(GoodStore):
    breaks = "test_the_event_loop_is_not_blocked"

    async def find(self, **filters):
        time.sleep(0.3)
        return await super().find(**filters)


class KeepsInItsProcess(GoodStore):
    breaks = "test_what_one_process_saves_another_loads"
    sessions = {}  # noqa: RUF012 - the fault

    async def load(self, session_id):
        return self.sessions.get((self.file, session_id))

    async def save(self, session, *, expected):
        revision = (expected or 0) + 1
        self.sessions[self.file, session.session_id] = session.model_copy(update={"revision": revision})
        return revision


class RacesBetweenProcesses(GoodStore):
    breaks = "test_processes_that_save_at_once_lose_nothing"

    async def save(self, session, *, expected):
        with self.connect() as database:
            self.check(database, session, expected)
            time.sleep(0.01)
            return self.write(database, session, expected)


class TearsItsFile(GoodStore):
    breaks = "test_a_reader_never_sees_half_a_save"

    def write(self, database, session, expected):
        """Write half of it where readers see it, and the other half a moment later."""
        database.execute("COMMIT")
        revision = (expected or 0) + 1
        content = self.encode(session)
        for part in (content[: len(content) // 2], content):
            row = [session.session_id, revision, part]
            database.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, 0)", row)
            time.sleep(0.005)
        database.execute("BEGIN")
        return revision


class AcknowledgesTooSoon(GoodStore):
    breaks = "test_a_kill_loses_nothing_that_was_acknowledged"

    async def load(self, session_id):
        return getattr(self, "unsaved", None) or await super().load(session_id)

    async def save(self, session, *, expected):
        self.unsaved = session.model_copy(update={"revision": (expected or 0) + 1})
        return self.unsaved.revision

    async def __aexit__(self, *about):
        if hasattr(self, "unsaved"):
            with self.connect() as database:
                self.write(database, self.unsaved, self.unsaved.revision - 1)


class LeavesItsLock(GoodStore):
    breaks = "test_a_kill_locks_nobody_out"

    async def save(self, session, *, expected):
        lock = self.file.with_suffix(".lock")
        for _ in range(100):
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
                break
            except FileExistsError:
                await anyio.sleep(0.01)
        else:
            raise StorageError("somebody has locked it")
        try:
            time.sleep(0.2)
            return await super().save(session, expected=expected)
        finally:
            lock.unlink()


class ReadsOldRevisionsElsewhere(GoodStore):
    breaks = "test_a_reader_reads_in_another_thread_what_the_store_reads"

    def reader(self):
        rightly = super().reader()

        class Reader:
            peek = staticmethod(rightly.peek)

            def load(self, session_id):
                session = rightly.load(session_id)
                return session and session.model_copy(update={"revision": 0})

        return Reader()


class NeverForgetsWhatIsOver(GoodStore):
    breaks = "test_a_session_that_another_server_reopened_is_found_as_active"

    async def find(self, *, status=None, before=None, limit=10):
        summaries = await super().find(status=None, before=before, limit=1000)
        over = self.__dict__.setdefault("over", set())
        over.update(summary.session_id for summary in summaries if not summary.is_active)
        if status == "active":
            summaries = [summary for summary in summaries if summary.session_id not in over]
        return self.choose(summaries, status, before, limit)
