"""Stores that do one thing wrong when they peek."""

from __future__ import annotations

from good_store import GoodStore

from deepwork.errors import CorruptSession


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
