"""Stores that do one thing wrong with ids, damage, or what they remember."""

from __future__ import annotations

import os
import unicodedata

from good_store import GoodStore

from deepwork.errors import CorruptSession


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
