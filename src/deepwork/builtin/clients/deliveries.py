"""What reaches an agent at its next call: gathered, handed over within a quota, and confirmed by the call after it.

A text is delivered once the same listener calls again while the server that has handed it over still runs. Until then
the first call to another server gets it once more, marked `again`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from deepwork.builtin.clients.desk import ABORTED, PRINTED, Desk
from deepwork.builtin.clients.listeners import MAX_TOLD, ClientSession, Listener, Note
from deepwork.builtin.clients.news import Text, end_of, first_open, mail_text, news_of
from deepwork.models.standing import Head


class Deliveries:
    """The deliveries to one listener at one call.

    Attributes:
        handed_over: The ids of the texts that this call hands over.
    """

    def __init__(self, desk: Desk, client_session: ClientSession, agent: str) -> None:
        self.desk = desk
        self.client_session = client_session
        self.agent = agent
        self.handed_over: list[str] = []

    def listener(self) -> Listener:
        """Return what is known of the listener."""
        return self.client_session.note().listener(self.agent)

    async def change(self, change: Callable[[Listener], Listener]) -> None:
        """Change what is known of the listener."""
        await self.desk.blocking(partial(self.client_session.change_listener, self.agent, change))

    async def confirm(self) -> None:
        """Take it from a call that what this server has handed over to the listener has arrived."""
        listener = self.listener()
        delivered = [text_id for text_id, by in listener.handed.items() if by in (self.desk.server, PRINTED)]
        if not delivered:
            return
        agent_id = listener.agents.get(self.desk.root)
        try:
            for mail in self.desk.project.agent_mail() if agent_id else ():
                await self.desk.ask(partial(mail.mark_delivered, delivered))  # which ignores texts of others
        except Exception:  # noqa: BLE001 - code of a plugin: its messages stay unread, and are confirmed by a later call
            delivered = [text_id for text_id in delivered if "." in text_id or text_id in listener.queue]
        read = await self._histories(listener.sessions)
        await self.change(lambda known: _advanced(known.with_told(delivered), read))

    async def hand_over(self, told: Collection[str] = (), *, with_ends: bool = True) -> str:
        """Return what fits of all that waits for the listener, once it is noted who hands it over.

        Args:
            told: The texts of the reply to its own call: what they tell is not told again.
            with_ends: Whether it is told of sessions that others have ended; no agent has to go on for that.
        """
        note = self.client_session.note()
        texts = await self._waiting(note)
        texts += await self._ends(note.listener(self.agent)) if with_ends else []
        known = [text.id for text in texts if text.is_in(told)]
        chosen: list[tuple[str, str]] = []

        def hand_over(note: Note) -> Note:
            listener, now = note.listener(self.agent).with_told(known), time.time()
            chosen[:] = _fitting(texts, listener, self.desk.server, note.room(now))
            handed = {**listener.handed, **{text_id: self.desk.server for text_id, _ in chosen}}
            handed = dict([*handed.items()][-MAX_TOLD:])
            spent = note.spending([len(shown) for _, shown in chosen], now)
            return spent.with_listener(self.agent, replace(listener, handed=handed)) if chosen or known else note

        if texts:
            await self.desk.blocking(lambda: self.client_session.change(hand_over))
        self.handed_over = [text_id for text_id, _ in chosen]
        return "\n\n".join(shown for _, shown in chosen)

    async def printed(self) -> None:
        """Note that a command has printed what it hands over: with the next call to any server it has arrived."""
        printed = dict.fromkeys(self.handed_over, PRINTED)
        await self.change(lambda known: replace(known, handed={**known.handed, **printed}))

    async def join(self, session_ids: Sequence[str]) -> None:
        """Note whose sessions these are from a call and its reply, which has told how their reviews have ended."""
        read = await self._histories(session_ids)

        def joined(listener: Listener) -> Listener:
            listener = listener.with_sessions(session_ids)
            for head, history in read:
                heard = {head.session_id: first_open(history), **listener.heard}
                listener = replace(listener, heard=heard)
                news = news_of(head, history, heard[head.session_id], ())
                listener = listener.with_told(text.id for text in news if text.is_result)
            return _advanced(listener, read)

        await self.change(joined)

    # What waits

    async def _waiting(self, note: Note) -> list[Text]:
        """Return what waits for the listener: pauses first, then what its user says, then what others say."""
        listener = note.listener(self.agent)
        known = {*listener.told, *listener.handed}
        if self.agent and not listener.has_joined:
            main = note.listener("")
            of_main = [*await self._news(main.sessions, {}, known), *await self._mail(main)]
            return [text for text in of_main if text.is_pause]
        news = await self._news(listener.sessions, listener.heard, known)
        queued = [Text(text_id, text) for text_id, text in listener.queue.items()]
        return sorted([*news, *await self._mail(listener), *queued], key=lambda text: not text.is_pause)

    async def _news(self, session_ids: Sequence[str], heard: Any, known: Collection[str]) -> list[Text]:
        return [
            text
            for head, history in await self._histories(session_ids)
            for text in news_of(head, history, heard.get(head.session_id, 0), known)
            if text.is_due
        ]

    async def _ends(self, listener: Listener) -> list[Text]:
        heads = await self.desk.heads(listener.sessions, ABORTED)
        return [end_of(head, await self.desk.history(head)) for head in heads]

    async def _histories(self, session_ids: Sequence[str]) -> list[tuple[Head, Any]]:
        return [(head, await self.desk.history(head)) for head in await self.desk.heads(session_ids)]

    async def _mail(self, listener: Listener) -> list[Text]:
        texts: list[Text] = []
        agent_id = listener.agents.get(self.desk.root, "")
        for mail in self.desk.project.agent_mail() if agent_id else ():
            with suppress(Exception):  # code of a plugin; one that fails has nothing now
                texts += map(mail_text, await self.desk.ask(partial(mail.unread, agent_id)))
        return texts


def _fitting(
    texts: Sequence[Text], listener: Listener, server: str, room: tuple[int, int]
) -> Iterator[tuple[str, str]]:
    """Yield the ids of those of the texts that are to be handed over now, and how they are shown."""
    count, characters = room
    for text in texts:
        by = listener.handed.get(text.id)
        if text.id in listener.told or by == server:
            continue
        shown = text.shown(again=by is not None)
        count -= 1
        characters -= len(shown)
        if count < 0 or characters < 0:
            return
        yield text.id, shown


def _advanced(listener: Listener, read: Sequence[tuple[Head, Any]]) -> Listener:
    """Note how far histories need not be looked at any more: up to the first text that was not delivered."""
    heard = dict(listener.heard)
    for head, history in read:
        news = news_of(head, history, heard.get(head.session_id, 0), listener.told)
        waiting = (text.index for text in news if text.id not in listener.told and text.index is not None)
        heard[head.session_id] = next(waiting, len(history))
    return replace(listener, heard=heard)
