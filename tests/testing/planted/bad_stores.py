"""Stores that each do one thing wrong, named with the one test that has to notice."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import unicodedata
from contextlib import closing
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from deepwork.api import Session, StateStore
from deepwork.errors import CorruptSession, StaleSession, StorageError
from deepwork.testing import StateStoreContract, StateStoreProcessesContract, a_session

TABLE = "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, revision INT, content TEXT, archived INT DEFAULT 0)"


class GoodStore(StateStore):
    """Does everything right; the others change one part of it."""

    breaks = None

    def __init__(self, file):
        self.file = file

    async def load(self, session_id):
        with self.connect() as database:
            row = self.read(database, session_id)
        return row and self.decode(row[1]).model_copy(update={"revision": row[0]})

    async def save(self, session, *, expected):
        with self.connect() as database:
            database.execute("BEGIN IMMEDIATE")
            self.check(database, session, expected)
            revision = self.write(database, session, expected)
            database.execute("COMMIT")
        return revision

    async def find(self, *, status=None, before=None, limit=10):
        return self.choose([session.summary() for session in self.everything()], status, before, limit)

    async def damaged(self):
        with self.connect() as database:
            rows = database.execute("SELECT id, content FROM sessions").fetchall()
        return [session_id for session_id, content in rows if not content.endswith("}")]

    async def archive(self, session_id):
        with self.connect() as database:
            database.execute("UPDATE sessions SET archived = 1 WHERE id = ?", [session_id])

    async def archived(self):
        return self.choose([session.summary() for session in self.everything("archived")], None, None, None)

    def connect(self):
        database = sqlite3.connect(self.file, isolation_level=None, timeout=10)
        database.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug in these tests
        database.execute(TABLE)
        return closing(database)

    def read(self, database, session_id):
        query = "SELECT revision, content FROM sessions WHERE id = ? AND NOT archived"
        return database.execute(query, [session_id]).fetchone()

    def check(self, database, session, expected):
        row = self.read(database, session.session_id)
        if (row[0] if row else None) != expected or self.is_archived(database, session):
            raise StaleSession("changed meanwhile")

    def is_archived(self, database, session):
        query = "SELECT 1 FROM sessions WHERE id = ? AND archived"
        return database.execute(query, [session.session_id]).fetchone()

    def write(self, database, session, expected):
        revision = (expected or 0) + 1
        row = [session.session_id, revision, self.encode(session)]
        database.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, 0)", row)
        return revision

    def everything(self, condition="NOT archived"):
        with self.connect() as database:
            rows = database.execute(f"SELECT content FROM sessions WHERE {condition} ORDER BY rowid").fetchall()
        for (content,) in rows:
            try:
                yield self.decode(content)
            except CorruptSession:
                continue

    def choose(self, summaries, status, before, limit):
        fitting = [
            summary
            for summary in summaries
            if status in (None, summary.status) and (before is None or summary.updated_at < before)
        ]
        return sorted(fitting, key=lambda summary: summary.updated_at, reverse=True)[:limit]

    def encode(self, session):
        return session.model_dump_json()

    def decode(self, content):
        try:
            return Session.model_validate_json(content)
        except ValueError:
            raise CorruptSession("damaged") from None


class LosesDetails(GoodStore):
    breaks = "test_a_session_comes_back_as_it_was_saved"

    def encode(self, session):
        return session.model_copy(update={"parents": []}).model_dump_json()


class ForgetsUnknownFields(GoodStore):
    breaks = "test_fields_of_a_newer_release_survive"

    def encode(self, session):
        return json.dumps({name: json.loads(session.model_dump_json())[name] for name in Session.model_fields})


class KnowsAsciiOnly(GoodStore):
    breaks = "test_every_text_survives"

    def encode(self, session):
        return session.model_dump_json().encode("ascii", "replace").decode()


class CutsLongSessions(GoodStore):
    breaks = "test_a_long_session_is_not_cut"

    def encode(self, session):
        return session.model_dump_json()[: 256 * 1024]


class SortsHistory(GoodStore):
    breaks = "test_history_keeps_its_order_whatever_the_clock_said"

    def encode(self, session):
        history = sorted(session.history, key=lambda entry: entry.at)
        return session.model_copy(update={"history": history}).model_dump_json()


class KeepsOldFields(GoodStore):
    breaks = "test_what_is_taken_out_of_a_session_is_gone"

    def write(self, database, session, expected):
        old = self.read(database, session.session_id)
        merged = (json.loads(old[1]) if old else {}) | session.model_dump(mode="json", exclude_none=True)
        return super().write(database, Session(**merged), expected)


class InventsSessions(GoodStore):
    breaks = "test_an_unknown_session_is_none"

    async def load(self, session_id):
        return await super().load(session_id) or a_session(session_id)


class TakesIdsForPaths(GoodStore):
    breaks = "test_an_id_that_nobody_could_have_made_is_none"

    async def load(self, session_id):
        os.stat(self.file.parent / f"session_{session_id}"[:300]) if "\0" in session_id else None
        return await super().load(session_id)


class CountsWrongly(GoodStore):
    breaks = "test_save_gives_the_revision_that_load_shows"

    async def save(self, session, *, expected):
        return await super().save(session, expected=expected) + 1


class RevisionsComeBack(GoodStore):
    breaks = "test_no_revision_comes_twice"

    def write(self, database, session, expected):
        return super().write(database, session, (expected or 0) % 3)


class LooksAtTheSession(GoodStore):
    breaks = "test_the_revision_in_the_session_is_not_looked_at"

    def check(self, database, session, expected):
        super().check(database, session, session.revision or expected)


class OverwritesNewOnes(GoodStore):
    breaks = "test_a_new_session_must_not_exist"

    def check(self, database, session, expected):
        if expected is not None:
            super().check(database, session, expected)


class IgnoresExpected(GoodStore):
    breaks = "test_a_stale_save_is_refused"

    def check(self, database, session, expected):
        pass


class LooksForNewerOnes(GoodStore):
    breaks = "test_a_revision_that_was_never_given_is_refused"

    def check(self, database, session, expected):
        row = self.read(database, session.session_id)
        if row and row[0] > (expected or 0):
            raise StaleSession("changed meanwhile")


class RefusesTooLate(GoodStore):
    breaks = "test_a_refused_save_changes_nothing"

    async def save(self, session, *, expected):
        with self.connect() as database:
            try:
                self.check(database, session, expected)
            finally:
                revision = self.write(database, session, expected)
        return revision


class CreatesWhatIsChanged(GoodStore):
    breaks = "test_a_change_of_what_does_not_exist_is_refused"

    def check(self, database, session, expected):
        if self.read(database, session.session_id):
            super().check(database, session, expected)


class ChecksThenWrites(GoodStore):
    breaks = "test_of_parallel_saves_one_wins"

    async def save(self, session, *, expected):
        with self.connect() as database:
            self.check(database, session, expected)
            await anyio.sleep(0.01)
            return self.write(database, session, expected)


class RacesAtFirst(GoodStore):
    breaks = "test_of_parallel_first_saves_one_wins"

    async def save(self, session, *, expected):
        if expected is not None:
            return await super().save(session, expected=expected)
        return await ChecksThenWrites.save(self, session, expected=expected)


class WritesAllSessionsAtOnce(GoodStore):
    breaks = "test_parallel_saves_of_several_sessions_all_last"

    async def save(self, session, *, expected):
        with self.connect() as database:
            self.check(database, session, expected)
            everything = list(self.everything())
            await anyio.sleep(0.01)
            database.execute("DELETE FROM sessions")
            for stored in everything:
                self.write(database, stored, stored.revision - 1)
            return self.write(database, session, expected)


class SavesInTwoParts(GoodStore):
    breaks = "test_a_cancelled_save_leaves_the_old_or_the_new"

    async def save(self, session, *, expected):
        old = await self.load(session.session_id)
        if old:
            with self.connect() as database:
                self.check(database, session, expected)
                self.write(database, old.model_copy(update={"goal": session.goal}), (expected or 0) - 1)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
        return await super().save(session, expected=expected)


class FirstChangedFirst(GoodStore):
    breaks = "test_the_last_changed_comes_first"

    def choose(self, summaries, status, before, limit):
        return super().choose(summaries, status, before, limit)[::-1]


class ListsInOrderOfCreation(GoodStore):
    breaks = "test_a_change_moves_a_session_to_the_front_at_once"

    def choose(self, summaries, status, before, limit):
        self.order = [*getattr(self, "order", []), *super().choose(summaries, status, before, limit)]
        cached = {summary.session_id: summary for summary in self.order}
        return list(cached.values())


class FailsWhenEmpty(GoodStore):
    breaks = "test_nothing_is_found_in_an_empty_store"

    def choose(self, summaries, status, before, limit):
        return super().choose([*summaries, summaries[0]][:-1], status, before, limit)


class SummarisesWrongly(GoodStore):
    breaks = "test_a_summary_says_what_the_session_says"

    def choose(self, summaries, status, before, limit):
        summaries = super().choose(summaries, status, before, limit)
        return [summary.model_copy(update={"principal": "local"}) for summary in summaries]


class ShortensGoals(GoodStore):
    breaks = "test_a_long_goal_that_looks_like_stored_data_is_found_whole"

    def choose(self, summaries, status, before, limit):
        summaries = super().choose(summaries, status, before, limit)
        return [summary.model_copy(update={"goal": summary.goal[:50]}) for summary in summaries]


class IgnoresTheStatus(GoodStore):
    breaks = "test_only_the_asked_status_is_listed"

    def choose(self, summaries, status, before, limit):
        return super().choose(summaries, None, before, limit)


class BeforeMeansUpTo(GoodStore):
    breaks = "test_before_means_earlier_than_that_time"

    def choose(self, summaries, status, before, limit):
        return super().choose(summaries, status, before and before + "0", limit)


class CutsBeforeItSorts(GoodStore):
    breaks = "test_the_limit_keeps_the_last_changed"

    def choose(self, summaries, status, before, limit):
        return super().choose(summaries[:limit], status, before, limit)


class GivesEverything(GoodStore):
    breaks = "test_the_limit_is_ten_unless_told"

    async def find(self, *, status=None, before=None, limit=100):
        return await super().find(status=status, before=before, limit=limit)


class CutsBeforeItFilters(GoodStore):
    breaks = "test_the_limit_counts_what_the_filters_leave"

    def choose(self, summaries, status, before, limit):
        return super().choose(super().choose(summaries, None, None, limit), status, before, limit)


class ArchivesNothing(GoodStore):
    breaks = "test_an_archived_session_is_neither_loaded_nor_found"

    async def archive(self, session_id):
        pass


class ArchivesTooMuch(GoodStore):
    breaks = "test_archiving_leaves_other_sessions"

    async def archive(self, session_id):
        with self.connect() as database:
            database.execute("UPDATE sessions SET archived = 1 WHERE id LIKE ?", [f"{session_id}%"])


class NamesNoArchives(GoodStore):
    breaks = "test_an_archived_session_is_listed_as_such"

    async def archived(self):
        return []


class OverwritesArchives(GoodStore):
    breaks = "test_an_archived_session_is_not_overwritten"

    def is_archived(self, database, session):
        return False


class ListsDamagedArchives(GoodStore):
    """As with a column of summaries, which knows nothing of damage to the content."""

    breaks = "test_a_damaged_session_is_not_listed_as_archived"

    async def archive(self, session_id):
        self.seen = [*getattr(self, "seen", []), session_id]
        await super().archive(session_id)

    async def archived(self):
        return [a_session(session_id).summary() for session_id in reversed(self.seen)]


class ListsDamage(GoodStore):
    breaks = "test_a_damaged_session_is_not_found"

    def write(self, database, session, expected):
        self.summaries = {**getattr(self, "summaries", {}), session.session_id: session.summary()}
        return super().write(database, session, expected)

    async def find(self, *, status=None, before=None, limit=10):
        return self.choose(getattr(self, "summaries", {}).values(), status, before, limit)


class RemembersWhatItLoaded(GoodStore):
    breaks = "test_another_server_sees_a_save_at_once"

    async def load(self, session_id):
        self.seen = getattr(self, "seen", {})
        if session_id not in self.seen:
            self.seen[session_id] = await super().load(session_id)
        return self.seen[session_id]


class RemembersWhatItFound(GoodStore):
    breaks = "test_another_server_finds_a_save_at_once"

    async def find(self, **filters):
        self.seen = getattr(self, "seen", None) or [await super().find(**filters)]
        return self.seen[0]


class ChecksItsOwnMemory(GoodStore):
    breaks = "test_a_save_that_another_server_made_stale_is_refused"

    def check(self, database, session, expected):
        self.revisions = getattr(self, "revisions", {})
        if self.revisions.get(session.session_id) != expected:
            super().check(database, session, expected)
        self.revisions[session.session_id] = (expected or 0) + 1


class DropsTablesWhenClosed(GoodStore):
    breaks = "test_closing_one_store_loses_nothing_and_disturbs_no_other"

    async def __aexit__(self, *about):
        with self.connect() as database:
            database.execute("DELETE FROM sessions")


class KeepsTheGoalToItself(GoodStore):
    breaks = "test_what_is_stored_can_be_read_past_the_store"
    goals = {}  # noqa: RUF012 - the fault

    def encode(self, session):
        self.goals[session.session_id] = session.goal
        return session.model_copy(update={"goal": "-"}).model_dump_json()

    def decode(self, content):
        session = super().decode(content)
        return session.model_copy(update={"goal": self.goals[session.session_id]})


class TakesDamageForNone(GoodStore):
    breaks = "test_a_damaged_session_is_an_error_and_never_none"

    async def load(self, session_id):
        try:
            return await super().load(session_id)
        except CorruptSession:
            return None


class FailsWholeListings(GoodStore):
    breaks = "test_a_damaged_session_hides_no_other"

    def everything(self):
        with self.connect() as database:
            rows = database.execute("SELECT content FROM sessions WHERE NOT archived").fetchall()
        return [self.decode(content) for (content,) in rows]


class NamesNoDamage(GoodStore):
    breaks = "test_a_damaged_session_is_named"

    async def damaged(self):
        return []


class TakesSimilarIds(GoodStore):
    """The others of its kind differ in what they do to an id."""

    breaks = "test_a_variant_of_a_stored_id_is_no_id"

    def simple(self, session_id):
        return session_id.lower()

    def read(self, database, session_id):
        return super().read(database, self.simple(session_id))


class TrimsIds(TakesSimilarIds):
    def simple(self, session_id):
        return session_id.strip()


class CutsIdsAtNul(TakesSimilarIds):
    def simple(self, session_id):
        return session_id.partition("\0")[0]


class NormalizesIds(TakesSimilarIds):
    def simple(self, session_id):
        return unicodedata.normalize("NFKC", session_id)


class ResolvesIds(TakesSimilarIds):
    def simple(self, session_id):
        return os.path.basename(session_id)


class TakesIdsForPatterns(GoodStore):
    breaks = "test_a_variant_of_a_stored_id_is_no_id"

    def read(self, database, session_id):
        query = "SELECT revision, content FROM sessions WHERE id LIKE ? AND NOT archived"
        return database.execute(query, [session_id]).fetchone()


class ArchivesByPattern(GoodStore):
    breaks = "test_a_variant_of_a_stored_id_is_no_id"

    async def archive(self, session_id):
        with self.connect() as database:
            database.execute("UPDATE sessions SET archived = 1 WHERE id = trim(?)", [session_id])


class PeeksByPattern(GoodStore):
    breaks = "test_a_variant_of_a_stored_id_is_no_id"

    async def peek(self, session_ids):
        return await super().peek([session_id.strip() for session_id in session_ids])


class HasAFileForEachSession(GoodStore):
    """Beside its database it reads files, wherever an id leads."""

    breaks = "test_nothing_outside_of_the_store_is_a_session"

    async def load(self, session_id):
        path = self.file.parent / f"{session_id}.json"
        if "\0" not in session_id and len(session_id) < 300 and path.is_file():
            return self.decode(path.read_text())
        return await super().load(session_id)


class HasAFolderForFiles(HasAFileForEachSession):
    """The same, with a folder of its own for the files."""

    async def load(self, session_id):
        folder = self.file.parent / "sessions"
        folder.mkdir(exist_ok=True)
        path = folder / session_id
        if "\0" not in session_id and 0 < len(session_id) < 300 and path.is_file():
            return self.decode(path.read_text())
        return await GoodStore.load(self, session_id)


class PeeksNothing(GoodStore):
    breaks = "test_peek_gives_the_summaries_of_the_sessions_that_are_there"

    async def peek(self, session_ids):
        return []


class CannotPeek(GoodStore):
    breaks = "test_peek_gives_the_summaries_of_the_sessions_that_are_there"

    async def peek(self, session_ids):
        raise RuntimeError("not written yet")


class PeeksAtSessions(GoodStore):
    breaks = "test_peek_gives_the_summaries_of_the_sessions_that_are_there"

    async def peek(self, session_ids):
        return [session for session in [await self.load(session_id) for session_id in session_ids] if session]


class PeeksAtTheFirst(GoodStore):
    breaks = "test_peek_gives_the_summaries_of_the_sessions_that_are_there"

    async def peek(self, session_ids):
        return (await super().peek(session_ids))[:1]


class PeeksWithoutDetails(GoodStore):
    breaks = "test_peek_gives_the_summaries_of_the_sessions_that_are_there"

    async def peek(self, session_ids):
        return [item.model_copy(update={"goal": item.goal[:10]}) for item in await super().peek(session_ids)]


class PeeksAtAll(GoodStore):
    breaks = "test_peek_gives_the_summaries_of_the_sessions_that_are_there"

    async def peek(self, session_ids):
        return await self.find(limit=100)


class PeeksAtTheMissing(GoodStore):
    breaks = "test_peek_leaves_out_what_is_not_there"

    async def peek(self, session_ids):
        items = {item.session_id: item for item in await super().peek(session_ids)}
        return [items.get(session_id) or CorruptSession("not there") for session_id in session_ids]


class PeeksAtTheActive(GoodStore):
    breaks = "test_peek_sees_a_change_at_once"

    async def peek(self, session_ids):
        return [item for item in await super().peek(session_ids) if item.status == "active"]


class RemembersWhatItPeekedAt(GoodStore):
    breaks = "test_peek_sees_a_change_at_once"

    async def peek(self, session_ids):
        self.peeked = getattr(self, "peeked", {})
        items = await super().peek([session_id for session_id in session_ids if session_id not in self.peeked])
        self.peeked |= {item.session_id: item for item in items}
        return [self.peeked[session_id] for session_id in session_ids if session_id in self.peeked]


class PeeksInReverse(GoodStore):
    breaks = "test_peek_keeps_the_order_in_which_it_was_asked"

    async def peek(self, session_ids):
        return (await super().peek(session_ids))[::-1]


class PeeksInOrderOfChange(GoodStore):
    breaks = "test_peek_keeps_the_order_in_which_it_was_asked"

    async def peek(self, session_ids):
        return [item for item in await self.find(limit=100) if item.session_id in session_ids]


class DropsTheDamaged(GoodStore):
    breaks = "test_peek_gives_the_error_of_a_damaged_session"

    async def peek(self, session_ids):
        return [item for item in await super().peek(session_ids) if not isinstance(item, CorruptSession)]


class FailsWholePeeks(GoodStore):
    breaks = "test_peek_gives_the_error_of_a_damaged_session"

    async def peek(self, session_ids):
        return [session.summary() for session in [await self.load(session_id) for session_id in session_ids] if session]


class PeeksAtArchives(GoodStore):
    breaks = "test_an_archived_session_is_neither_loaded_nor_found"

    async def archive(self, session_id):
        self.hidden = [*getattr(self, "hidden", []), *await self.peek([session_id])]
        await super().archive(session_id)

    async def peek(self, session_ids):
        archived = [item for item in getattr(self, "hidden", []) if item.session_id in session_ids]
        return [*await super().peek(session_ids), *archived]


class FindsArchivesByStatus(GoodStore):
    breaks = "test_an_archived_session_is_neither_loaded_nor_found"

    async def archive(self, session_id):
        self.hidden = [*getattr(self, "hidden", []), *await self.peek([session_id])]
        await super().archive(session_id)

    async def find(self, *, status=None, before=None, limit=10):
        archived = [item for item in getattr(self, "hidden", []) if item.status == status]
        return [*await super().find(status=status, before=before, limit=limit), *archived]


class LoadsArchives(GoodStore):
    breaks = "test_an_archived_session_is_neither_loaded_nor_found"

    def read(self, database, session_id):
        return database.execute("SELECT revision, content FROM sessions WHERE id = ?", [session_id]).fetchone()


class ArchivesKnownOnesOnly(GoodStore):
    breaks = "test_archiving_an_unknown_session_does_nothing"

    async def archive(self, session_id):
        if await self.load(session_id) is None:
            raise StorageError(f"no session {session_id!r}")
        await super().archive(session_id)


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
        found = await super().find(status=None, before=before, limit=1000)
        over = self.__dict__.setdefault("over", set())
        over.update(summary.session_id for summary in found if not summary.is_active)
        if status == "active":
            found = [summary for summary in found if summary.session_id not in over]
        return self.choose(found, status, before, limit)


class Fixtures:
    store_class: type[GoodStore]

    @pytest.fixture
    def reopen(self, tmp_path):
        return partial(self.store_class, tmp_path / "sessions.db")

    @pytest.fixture
    async def store(self, reopen):
        async with reopen() as store:
            yield store

    @pytest.fixture
    def read_raw(self, tmp_path):
        async def read_raw(session_id):
            with closing(sqlite3.connect(tmp_path / "sessions.db")) as database:
                query = "SELECT content FROM sessions WHERE id = ?"
                return json.loads(database.execute(query, [session_id]).fetchone()[0])

        return read_raw

    @pytest.fixture
    def spoil(self, tmp_path):
        async def spoil(session_id):
            with closing(sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)) as database:
                database.execute("UPDATE sessions SET content = substr(content, 1, 40) WHERE id = ?", [session_id])

        return spoil


CONTRACTS = (StateStoreContract, StateStoreProcessesContract)
STORES = [store for store in vars().copy().values() if isinstance(store, type) and issubclass(store, GoodStore)]
for _store in STORES:
    globals()[f"Test{_store.__name__}"] = type(
        f"Test{_store.__name__}", (Fixtures, *CONTRACTS), {"store_class": _store, "breaks": _store.breaks}
    )
