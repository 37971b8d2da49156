"""The event log, newest first: the feed of the database, and the histories of the sessions that are files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import Request

from deepwork.api import Session, SessionSummary, things
from deepwork.errors import ArgumentError
from deepwork.models.history import HistoryEntry
from deepwork_dashboard.answers import Mapped, iso, iso_text, limit_of, matches, short, words_of
from deepwork_dashboard.dashboard import Dashboard, principal_of
from deepwork_dashboard.entries import author_of
from deepwork_dashboard.event_words import event_words
from deepwork_dashboard.plans import Plans

if TYPE_CHECKING:
    from deepwork_sql import Event

CORE = "core"
# At most so many events are read for one page: a search for rare ones goes on with the next page.
MAX_LOOKED_AT = 20_000
_BATCH = 500

_TITLES = (
    *("name", "workflow_name", "phase_name", "title", "message", "subject", "question", "description", "summary"),
    *("goal", "reason", "feedback"),
)


class Filter(NamedTuple):
    """What is asked for."""

    source: str | None
    event: str | None
    about: str | None
    words: list[str]

    @property
    def about_id(self) -> str | None:
        return self.about.partition(":")[2] if self.about else None

    def wants(self, source: str) -> bool:
        """True if events of a source may fit."""
        return self.source in (None, source) and self.about in (None, things.owner_of(source, self.about_id))

    def fits(self, item: Mapped) -> bool:
        """True if an event fits."""
        if not item["event"].startswith(self.event or "") or self.about not in (None, item["about"]):
            return False
        author = item["by"]["name"] if item["by"] else None
        texts = (item["event"], item["what"], author, item["title"], json.dumps(item["data"]))
        return not self.words or matches(self.words, *texts)


class Place(NamedTuple):
    """Where in both logs a page ends. `at` is the time of the last event that was given."""

    feed: str | None = None
    at: str | None = None
    number: int = 0

    @classmethod
    def parse(cls, text: str | None) -> Place:
        """Read a cursor.

        Raises:
            ArgumentError: It is not a valid cursor.
        """
        if not text:
            return cls()
        parts = text.split("~")
        if len(parts) != 3 or not parts[2].isdecimal() or len(parts[2]) > 9:
            raise ArgumentError(f"cursor is {text[:40]!r}; give the `next` of the page before")
        return cls(parts[0] or None, parts[1] or None, int(parts[2]))

    def __str__(self) -> str:
        """Write it as `next`."""
        return f"{self.feed or ''}~{self.at or ''}~{self.number}"


class Events:
    """The endpoint `api/events`."""

    def __init__(self, dashboard: Dashboard, plans: Plans) -> None:
        self._dashboard = dashboard
        self._plans = plans

    async def listed(self, request: Request) -> Mapped:
        """List events of both logs, in one order by time."""
        query, limit = request.query_params, limit_of(request)
        # Things of sessions were called `run:ID` in the release before.
        about = re.sub("^run:", "session:", query.get("about", "")) or None
        filter_ = Filter(query.get("source"), query.get("event"), about, words_of(request))
        place, principal = Place.parse(query.get("cursor")), principal_of(request)
        from_feed, feed_end = await self._of_feed(filter_, place, limit, principal)
        from_sessions = await self._of_sessions(filter_, place, limit, principal)
        merged = merge(from_feed, from_sessions, key=lambda item: item["at"] or "", reverse=True)
        items = [*islice(merged, limit)]
        taken = [item["id"] for item in items]
        last_of_feed = next((item for item in reversed(items) if "~" not in item["id"]), None)
        last_of_sessions = next((item for item in reversed(items) if "~" in item["id"]), None)
        rest_of_feed = len(from_feed) > sum("~" not in event_id for event_id in taken)
        rest_of_sessions = len(from_sessions) > sum("~" in event_id for event_id in taken)
        end = place
        if last_of_feed:
            end = end._replace(feed=last_of_feed["id"])
        if not rest_of_feed and feed_end:
            end = end._replace(feed=feed_end)
        if last_of_sessions:
            at = last_of_sessions["at"]
            same = sum(item["at"] == at for item in items if "~" in item["id"])
            end = end._replace(at=at, number=same + (place.number if at == place.at else 0))
        more = rest_of_feed or rest_of_sessions or feed_end is not None
        return {"items": items, "next": str(end) if more else None, "total": None}

    async def _of_feed(
        self, filter_: Filter, place: Place, limit: int, principal: str
    ) -> tuple[list[Mapped], str | None]:
        """Return events of the feed, and where to go on if there may be more."""
        if not self._dashboard.has_database:
            return [], None
        from deepwork_sql import EventFilter, Viewer

        database = await self._dashboard.database()
        viewer = Viewer(database.machine, str(self._dashboard.context.project_root), principal)
        event_filter = EventFilter(filter_.source, filter_.event, filter_.about_id, viewer)
        items: list[Mapped] = []
        before, looked_at = place.feed, 0
        while len(items) <= limit and looked_at < MAX_LOOKED_AT:
            events = await database.history(before, event_filter, limit=_BATCH)
            names = await self._plans.agent_names({agent_id for event in events if (agent_id := _agent_of(event))})
            for event in events:
                if event.source != CORE or self._dashboard.has_sessions_in_database:
                    item = _of_event(event, names)
                    items += [item] if filter_.fits(item) else []
            looked_at += len(events)
            if len(events) < _BATCH:
                return items, None
            before = events[-1].id
        return items, before

    async def _of_sessions(self, filter_: Filter, place: Place, limit: int, principal: str) -> list[Mapped]:
        """Return entries of histories, reading sessions, last changed first, until none can have a newer entry."""
        if self._dashboard.has_sessions_in_database or not filter_.wants(CORE):
            return []
        summaries = await self._dashboard.summaries(principal)
        if filter_.about_id:
            summaries = [summary for summary in summaries if summary.session_id == filter_.about_id]
        items: list[Mapped] = []
        for summary in summaries:
            enough = limit + place.number
            if len(items) > enough and _at(items[enough]) > (iso_text(summary.updated_at) or ""):
                break
            session = await self._dashboard.session_of(summary)
            own = _of_session(session, summary)
            older = own if place.at is None else [item for item in own if _at(item) <= place.at]
            items += filter(filter_.fits, older)
            items.sort(key=lambda item: (_at(item), item["id"]), reverse=True)
        skipped = place.number if place.at and any(_at(item) == place.at for item in items) else 0
        return items[skipped : skipped + limit + 1]


def _at(item: Mapped) -> str:
    return str(item["at"] or "")


def _of_session(session: Session | None, summary: SessionSummary) -> Sequence[Mapped]:
    return [
        _of_entry(entry, f"{summary.session_id}~{number}", summary.session_id, summary.principal)
        for number, entry in enumerate(session.history if session else (), start=1)
    ]


def _of_entry(entry: HistoryEntry, event_id: str, session_id: str, principal: str | None) -> Mapped:
    thing, data = things.owner_of(CORE, session_id), {"step_id": entry.step_id, **entry.stored}
    return {
        "id": event_id,
        "at": iso_text(entry.at),
        "source": CORE,
        "event": f"session:{entry.kind}",
        "what": event_words(CORE, f"session:{entry.kind}", data),
        "about": thing,
        "thing": thing,
        "principal": principal,
        "by": _named(author_of(entry) or principal),
        "title": _title({**data, "name": entry.step_id}),
        "data": data,
    }


def _of_event(event: Event, names: Mapping[str, str]) -> Mapped:
    if event.source == CORE:
        entry = HistoryEntry.model_validate(event.data)
        return _of_entry(entry, event.id, event.workflow_id or "", event.principal) | {"at": iso(event.at)}
    agent_id = _agent_of(event)
    return {
        "id": event.id,
        "at": iso(event.at),
        "source": event.source,
        "event": event.event,
        "what": event_words(event.source, event.event, event.data),
        "about": things.owner_of(event.source, event.workflow_id),
        "thing": next(iter(event.things), None),
        "principal": event.principal,
        "by": _named(names.get(agent_id or "") or event.data.get("agent_name") or event.principal, agent_id),
        "title": _title(event.data),
        "data": event.data,
    }


def _named(name: str | None, agent_id: str | None = None) -> Mapped | None:
    return {"name": name, "thing": f"agent:{agent_id}" if agent_id else None} if name else None


def _agent_of(event: Event) -> str | None:
    """Return the id of the agent of a plan that an event is by."""
    if event.source != "orchestration":
        return None
    is_of_agent = event.event.startswith("agent:")
    names = ("id",) if is_of_agent else ("agent_id", "assigned_agent_id", "sender_id")
    return next((agent_id for name in names if isinstance(agent_id := event.data.get(name), str)), None)


def _title(data: Any) -> str | None:
    texts: Callable[[str], Any] = data.get
    return next((short(text, 120) for text in map(texts, _TITLES) if isinstance(text, str) and text), None)
