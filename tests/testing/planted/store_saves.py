"""Stores that do one thing wrong when they save."""

from __future__ import annotations

import json
import os

import anyio
import anyio.lowlevel
from good_store import GoodStore

from deepwork.api import Session
from deepwork.errors import StaleSession
from deepwork.testing import a_session


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
