"""Sees what changes, for all open pages together, and only while there are any."""

from __future__ import annotations

import hashlib
import secrets
from collections import deque
from collections.abc import AsyncIterator, Collection, Hashable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from deepwork.api import Answerer, SessionSummary, things
from deepwork.errors import DeepWorkError
from deepwork_dashboard.dashboard import Dashboard
from deepwork_dashboard.runs import Runs

if TYPE_CHECKING:
    from deepwork_sql import Event

# What waits is on a page within a second, with a look at the sessions and one at the inbox.
POLL_SECONDS = 0.5
# Sources of the inbox whose changes cause no event are asked so often.
INBOX_SECONDS = 15.0
RETRY_SECONDS = 2.0
# The first page waits so long for a database that is being opened.
OPENING_SECONDS = 5.0
# Changes that are remembered for pages that come back. A page that missed more fetches everything anew.
REMEMBERED = 2_000
MAX_CATCH_UP = 5_000

# Before the first event, for a database that has not been made yet.
BEGINNING = "0-0"
# Whose sessions of other projects are.
NOBODY = ""


class Change(NamedTuple):
    """A thing or a list that has changed; it is told to its principal alone, or to everybody."""

    thing: str
    principal: str | None = None


class Cursor(NamedTuple):
    """Where a page is.

    Attributes:
        watch: The process that has seen the changes, and how many it had.
        feed: The last event of the database.
        sessions: What tells the sessions that are files from what they are later.
    """

    watch: str
    number: int
    feed: str
    sessions: str

    @classmethod
    def parse(cls, text: str) -> Cursor | None:
        """Read what a page has kept; None if it is something else."""
        parts = text.split("~")
        if len(parts) != 4 or not (parts[1].isascii() and parts[1].isdecimal() and len(parts[1]) < 16):
            return None
        return cls(parts[0], int(parts[1]), parts[2], parts[3])

    def __str__(self) -> str:
        """Write it as pages keep it."""
        return f"{self.watch}~{self.number}~{self.feed}~{self.sessions}"


class Page:
    """An open page: what it has to be told, each thing once however often it has changed."""

    def __init__(self, principal: str) -> None:
        self.principal = principal
        self.is_dropped = False
        self._things: dict[str, None] = {}
        self._event = anyio.Event()

    def tell(self, changes: Iterable[Change]) -> None:
        """Note changes that this page may see."""
        things = [change.thing for change in changes if change.principal in (None, self.principal)]
        if things:
            self._things |= dict.fromkeys(things)
            self._event.set()

    async def wait(self) -> None:
        """Wait until there is something to be told."""
        await self._event.wait()

    def drop(self) -> None:
        """Have the page connect again, and fetch everything anew."""
        self.is_dropped = True
        self._event.set()

    def take(self) -> list[str]:
        """Return what is to be told, and forget it."""
        things, self._things, self._event = [*self._things], {}, anyio.Event()
        return things


class Watch:
    """Looks at the sessions twice a second, follows the feed of the database, and tells open pages."""

    def __init__(self, dashboard: Dashboard, runs: Runs, tasks: TaskGroup) -> None:
        self._dashboard = dashboard
        self._runs = runs
        self._tasks = tasks
        self._name = secrets.token_hex(4)
        self._number = 0
        self._log: deque[tuple[int, list[Change]]] = deque(maxlen=REMEMBERED)
        self._pages: set[Page] = set()
        self._watching: anyio.CancelScope | None = None
        self._starting = anyio.Lock()
        self._feed: str | None = None
        self._stamps: Mapping[str, Hashable] | None = None
        self._digest = ""
        self._owners: dict[str, str] = {}
        self._inboxes: dict[str, int] = {}
        self._reviews: int | None = None
        self._run_stamps: Mapping[str, Hashable] | None = None
        self._changed = anyio.Event()

    @property
    def cursor(self) -> Cursor:
        """Where a page is that was told everything."""
        return Cursor(self._name, self._number, self._feed or "", self._digest)

    @asynccontextmanager
    async def page(self, principal: str) -> AsyncIterator[Page]:
        """Tell a page from now on what changes."""
        page = Page(principal)
        async with self._starting:
            if self._watching is None:
                await self._look()
                await self._find_end()
                self._watching = anyio.CancelScope()
                self._tasks.start_soon(self._watch, self._watching)
            self._pages.add(page)
            self._changed.set()  # what waits may be known of an earlier time only
        try:
            yield page
        finally:
            self._pages.discard(page)
            if not self._pages and self._watching is not None:
                self._watching.cancel()
                self._watching = None

    async def since(self, text: str | None) -> list[Change] | None:
        """Return what has changed since a cursor; None if that is not known any more."""
        cursor = Cursor.parse(text or "")
        if cursor is None:
            return None
        oldest = self._log[0][0] if self._log else self._number + 1
        if cursor.watch == self._name and oldest - 1 <= cursor.number <= self._number:
            return [change for number, changes in self._log if number > cursor.number for change in changes]
        if cursor.sessions != self.cursor.sessions:
            return None
        return await self._events_since(cursor.feed)

    async def _events_since(self, feed: str) -> list[Change] | None:
        if not self._dashboard.has_database:
            return []
        if not feed:  # the database was away
            return None
        try:
            events = await (await self._dashboard.database()).feed(feed, limit=MAX_CATCH_UP)
        except DeepWorkError:
            return None
        return await self._changes_of(events) if len(events) < MAX_CATCH_UP else None

    # The watch itself

    async def _watch(self, scope: anyio.CancelScope) -> None:
        with scope:
            async with anyio.create_task_group() as tasks:
                if self._dashboard.context.has("sql"):
                    tasks.start_soon(self._follow_feed)
                tasks.start_soon(self._watch_inboxes)
                while True:
                    await anyio.sleep(POLL_SECONDS)
                    await self._look()

    async def _look(self) -> None:
        """Compare what has no feed with how it was the last time, and tell of what differs."""
        self._tell([*await self._changed_sessions(), *await self._changed_runs(), *await self._changed_reviews()])

    async def _watch_inboxes(self) -> None:
        """Ask what waits once something has changed, at most twice a second: some sources of the inbox are slow."""
        while True:
            with anyio.move_on_after(INBOX_SECONDS):
                await self._changed.wait()
            self._changed = anyio.Event()
            self._tell(await self._changed_inboxes({page.principal for page in self._pages}))
            await anyio.sleep(POLL_SECONDS)

    async def _changed_sessions(self) -> list[Change]:
        if self._dashboard.has_sessions_in_database:
            return []
        try:
            stamps = await (await self._dashboard.store()).stamps()
        except DeepWorkError:
            return []
        before, self._stamps = self._stamps, stamps
        if stamps is before:
            return []
        self._digest = hashlib.sha256(repr(sorted(stamps.items())).encode()).hexdigest()[:16]
        if before is None:
            return []
        changed = [session_id for session_id, stamp in stamps.items() if before.get(session_id) != stamp]
        gone = [session_id for session_id in before if session_id not in stamps]
        return await self._sessions(changed, gone)

    async def _sessions(self, changed: Collection[str], gone: Collection[str] = ()) -> list[Change]:
        """Return the changes of sessions, each for its principal; for an unreadable one only the lists change."""
        await self._find_owners(changed)
        owned = [(session_id, self._owners.get(session_id)) for session_id in (*changed, *gone)]
        owners = {owner for _, owner in owned if owner}
        has_unknown = any(owner is None for _, owner in owned)
        return [
            *(Change(f"session:{session_id}", owner) for session_id, owner in owned if owner),
            *(Change(name, owner) for owner in owners for name in ("sessions", "events")),
            *([Change("sessions")] if gone or has_unknown else []),
        ]

    async def _find_owners(self, session_ids: Collection[str]) -> None:
        """Note whose sessions these are, which never changes: each is read once."""
        unknown = [session_id for session_id in session_ids if session_id not in self._owners]
        if not unknown:
            return
        with suppress(DeepWorkError):
            summaries = await (await self._dashboard.store()).peek(unknown)
            if self._dashboard.has_sessions_in_database:
                # Sessions of other projects are in the same feed.
                self._owners |= dict.fromkeys(unknown, NOBODY)
            for summary in summaries:
                if isinstance(summary, SessionSummary):
                    self._owners[summary.session_id] = summary.principal

    async def _changed_runs(self) -> list[Change]:
        """Return the sessions whose runs have changed: an agent has begun or ended, or has used something."""
        before, self._run_stamps = self._run_stamps, await self._runs.stamps()
        if before is None:
            return []
        changed = [session_id for session_id, stamp in self._run_stamps.items() if before.get(session_id) != stamp]
        return await self._sessions(changed) if changed else []

    async def _changed_reviews(self) -> list[Change]:
        if not self._dashboard.context.has("review"):
            return []
        folder = self._dashboard.context.of("review").user_dir
        try:
            modified: int | None = (await to_thread.run_sync(folder.stat)).st_mtime_ns
        except OSError:
            modified = None
        before, self._reviews = self._reviews, modified
        return [Change("reviews")] if before is not None and modified != before else []

    async def _changed_inboxes(self, principals: Collection[str]) -> list[Change]:
        """Ask what waits for each of these principals."""
        changes = []
        for principal in principals:
            contents = await self._dashboard.context.inbox().items(Answerer(principal=principal))
            state = hash((tuple((item.id, item.state) for item in contents.items), contents.failures))
            if self._inboxes.get(principal) != state:
                changes.append(Change("inbox", principal))
            self._inboxes[principal] = state
        return changes

    async def _find_end(self) -> None:
        """Note where the feed ends, for the first cursor of a page. A database that is away is waited for later."""
        if self._feed is None and self._dashboard.context.has("sql"):
            with suppress(DeepWorkError), anyio.move_on_after(OPENING_SECONDS):
                is_made = self._dashboard.has_database
                self._feed = await (await self._dashboard.database()).end_of_feed() if is_made else BEGINNING

    async def _follow_feed(self) -> None:
        """Tell of each event soon after its transaction, and begin again where it was if the database was away."""
        while True:
            try:
                if not self._dashboard.has_database:
                    await anyio.sleep(POLL_SECONDS)
                    continue
                database = await self._dashboard.database()
                if self._feed is None:  # it was away when the first page came, and may have changed since
                    self._feed = await database.end_of_feed()
                    for page in self._pages:
                        page.drop()
                async with aclosing(database.follow(self._feed)) as events:
                    async for event in events:
                        self._feed = event.id
                        self._tell(await self._changes_of([event]))
            except DeepWorkError as error:
                self._dashboard.context.log.debug("the feed: %s", error.message)
            await anyio.sleep(RETRY_SECONDS)

    async def _changes_of(self, events: Iterable[Event]) -> list[Change]:
        """Name what events have changed."""
        changes: dict[Change, None] = {}
        session_ids: dict[str, None] = {}
        for event in events:
            if event.source == "core":
                session_ids |= {event.workflow_id: None} if event.workflow_id else {}
                continue
            changes |= dict.fromkeys([*_of_event(event), Change("events")])
        if session_ids and self._dashboard.has_sessions_in_database:
            await self._find_owners(session_ids)
            own = [session_id for session_id in session_ids if self._owners.get(session_id)]
            changes |= dict.fromkeys(await self._sessions(own))
        return [*changes]

    def _tell(self, changes: list[Change]) -> None:
        if not changes:
            return
        self._number += 1
        self._log.append((self._number, changes))
        for page in self._pages:
            page.tell(changes)
        if any(change.thing != "inbox" for change in changes):
            self._changed.set()


def _of_event(event: Event) -> Iterable[Change]:
    yield from map(Change, event.things)
    if owner := things.owner_of(event.source, event.workflow_id):
        yield Change(things.PAGES[owner.partition(":")[0]])
    if event.source == "orchestration":
        yield Change("agents")
    if event.event.startswith("message:"):
        yield Change("messages")


@asynccontextmanager
async def open_watch(dashboard: Dashboard, runs: Runs) -> AsyncIterator[Watch]:
    """Make the watch of a server; what it does ends with it."""
    async with anyio.create_task_group() as tasks:
        yield Watch(dashboard, runs, tasks)
        tasks.cancel_scope.cancel()
