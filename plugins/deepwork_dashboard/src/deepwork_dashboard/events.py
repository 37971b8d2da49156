"""The event log: what the feed of the database has, and the histories of the runs that are files, the newest first."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import Request

from deepwork.api import ArgumentError, Session, SessionSummary
from deepwork_dashboard.answers import Mapped, iso, iso_text, limit_of, matches, short, words_of
from deepwork_dashboard.dashboard import Dashboard, principal_of

if TYPE_CHECKING:
    from deepwork_sql import Event

CORE = "core"
# So many events are looked at for one page: a search for what is rare goes on with the next.
MAX_LOOKED_AT = 20_000
_BATCH = 500

_ABOUT = {"core": "run", "orchestration": "plan", "tracking": "work"}
_THINGS = {"task": "task", "agent": "agent"}
_TITLES = ("name", "title", "message", "subject", "question", "description", "summary", "goal", "reason", "feedback")


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
        """Say whether events of a source may fit."""
        return self.source in (None, source) and (self.about is None or self.about.startswith(f"{_ABOUT.get(source)}:"))

    def fits(self, item: Mapped) -> bool:
        """Say whether an event fits."""
        if not item["event"].startswith(self.event or "") or self.about not in (None, item["about"]):
            return False
        return not self.words or matches(self.words, item["event"], item["title"], json.dumps(item["data"]))


class Place(NamedTuple):
    """Where in both logs a page ends. `at` is the time of the last event that was given."""

    feed: str | None = None
    at: str | None = None
    number: int = 0

    @classmethod
    def parse(cls, text: str | None) -> Place:
        """Read a cursor.

        Raises:
            ArgumentError: It is none of ours.
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

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    async def listed(self, request: Request) -> Mapped:
        """List events of both logs, in one order by time."""
        query, limit = request.query_params, limit_of(request)
        filter_ = Filter(query.get("source"), query.get("event"), query.get("about"), words_of(request))
        place, principal = Place.parse(query.get("cursor")), principal_of(request)
        from_feed, feed_end = await self._of_feed(filter_, place, limit, principal)
        from_runs = await self._of_runs(filter_, place, limit, principal)
        merged = merge(from_feed, from_runs, key=lambda item: item["at"] or "", reverse=True)
        items = [*islice(merged, limit)]
        taken = [item["id"] for item in items]
        last_of_feed = next((item for item in reversed(items) if "~" not in item["id"]), None)
        last_of_runs = next((item for item in reversed(items) if "~" in item["id"]), None)
        rest_of_feed = len(from_feed) > sum("~" not in one for one in taken)
        rest_of_runs = len(from_runs) > sum("~" in one for one in taken)
        end = place
        if last_of_feed:
            end = end._replace(feed=last_of_feed["id"])
        if not rest_of_feed and feed_end:
            end = end._replace(feed=feed_end)
        if last_of_runs:
            at = last_of_runs["at"]
            same = sum(item["at"] == at for item in items if "~" in item["id"])
            end = end._replace(at=at, number=same + (place.number if at == place.at else 0))
        more = rest_of_feed or rest_of_runs or feed_end is not None
        return {"items": items, "next": str(end) if more else None, "total": None}

    async def _of_feed(
        self, filter_: Filter, place: Place, limit: int, principal: str
    ) -> tuple[list[Mapped], str | None]:
        """Give events of the feed, and where to go on if more could come."""
        if not self._dashboard.has_database:
            return [], None
        from deepwork_sql import Viewer

        database = await self._dashboard.database()
        viewer = Viewer(database.machine, str(self._dashboard.context.project_root), principal)
        found: list[Mapped] = []
        before, looked_at = place.feed, 0
        while len(found) <= limit and looked_at < MAX_LOOKED_AT:
            events = await database.history(
                before,
                limit=_BATCH,
                source=filter_.source,
                event=filter_.event,
                workflow_id=filter_.about_id,
                viewer=viewer,
            )
            for event in events:
                if event.source != CORE or self._dashboard.has_sessions_in_database:
                    item = _of_event(event)
                    found += [item] if filter_.fits(item) else []
            looked_at += len(events)
            if len(events) < _BATCH:
                return found, None
            before = events[-1].id
        return found, before

    async def _of_runs(self, filter_: Filter, place: Place, limit: int, principal: str) -> list[Mapped]:
        """Give entries of histories. Runs are read, the last changed first, until no other can have a newer entry."""
        if self._dashboard.has_sessions_in_database or not filter_.wants(CORE):
            return []
        summaries = await self._dashboard.summaries(principal)
        if filter_.about_id:
            summaries = [summary for summary in summaries if summary.session_id == filter_.about_id]
        found: list[Mapped] = []
        for summary in summaries:
            enough = limit + place.number
            if len(found) > enough and _at(found[enough]) > (iso_text(summary.updated_at) or ""):
                break
            session = await self._dashboard.run_of(summary)
            found += [item for item in _of_session(session, summary) if _is_older(item, place) and filter_.fits(item)]
            found.sort(key=lambda item: (_at(item), item["id"]), reverse=True)
        skipped = place.number if place.at and any(_at(item) == place.at for item in found) else 0
        return found[skipped : skipped + limit + 1]


def _at(item: Mapped) -> str:
    return str(item["at"] or "")


def _is_older(item: Mapped, place: Place) -> bool:
    return place.at is None or _at(item) <= place.at


def _of_session(session: Session | None, summary: SessionSummary) -> Sequence[Mapped]:
    run = f"run:{summary.session_id}"
    return [
        {
            "id": f"{summary.session_id}~{number}",
            "at": iso_text(entry.at),
            "source": CORE,
            "event": f"session:{entry.kind}",
            "about": run,
            "thing": run,
            "principal": summary.principal,
            "title": _title({**entry.stored, "name": entry.step_id}),
            "data": {"step_id": entry.step_id, **entry.stored},
        }
        for number, entry in enumerate(session.history if session else (), start=1)
    ]


def _of_event(event: Event) -> Mapped:
    about = f"{_ABOUT[event.source]}:{event.workflow_id}" if event.source in _ABOUT and event.workflow_id else None
    return {
        "id": event.id,
        "at": iso(event.at),
        "source": event.source,
        "event": event.event,
        "about": about,
        "thing": thing_of(event) or about,
        "principal": event.principal,
        "title": _title(event.data),
        "data": event.data,
    }


def thing_of(event: Event) -> str | None:
    """Name what an event of a plan is about; None if no view shows it."""
    kind, _, _ = event.event.partition(":")
    thing_id = event.data.get("id") or event.data.get("task_id")
    if event.source == "orchestration" and kind in _THINGS and isinstance(thing_id, str):
        return f"{_THINGS[kind]}:{thing_id}"
    return None


def _title(data: Any) -> str | None:
    texts: Callable[[str], Any] = data.get
    return next((short(text, 120) for text in map(texts, _TITLES) if isinstance(text, str) and text), None)
