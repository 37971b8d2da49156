"""Stores that do one thing wrong when they list sessions or archives."""

from __future__ import annotations

from good_store import GoodStore

from deepwork.errors import StorageError
from deepwork.testing import a_session


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


class FindsItself(GoodStore):
    breaks = "test_another_active_session_of_a_workflow_is_the_last_changed"

    async def other_active(self, session):
        return session.summary()


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
