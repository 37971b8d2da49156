"""What all views need: the project, its sessions as the caller may see them, and what is installed beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import Request

from deepwork.api import Engine, PluginContext, Project, Session, SessionSummary, StateStore
from deepwork.errors import CorruptSession
from deepwork.ports.call import caller_of
from deepwork_dashboard.answers import NotThere
from deepwork_dashboard.recent import Recent

if TYPE_CHECKING:
    from deepwork.engine.pieces import Pieces
    from deepwork_sql import Database

MAX_SESSIONS = 10_000

# The views that need a plugin, and its name.
PLUGINS = {"plans": "orchestration", "work": "tracking", "agents": "orchestration", "reviews": "review"}
VIEWS = ("inbox", "overview", "sessions", "plans", "work", "agents", "reviews", "events")


@dataclass
class Dashboard:
    """The dashboard of one project."""

    context: PluginContext
    engine: Engine
    project: Project
    read_sessions: Recent[Session] = field(default_factory=lambda: Recent(100))

    @property
    def views(self) -> list[str]:
        """Name the views whose plugins are loaded."""
        return [view for view in VIEWS if view not in PLUGINS or self.context.has(PLUGINS[view])]

    @property
    def has_database(self) -> bool:
        """Whether there is a database to be read; a dashboard makes none."""
        if not self.context.has("sql"):
            return False
        import deepwork_sql

        return deepwork_sql.has_database(self.context)

    @property
    def has_sessions_in_database(self) -> bool:
        """Whether sessions are in the database, so that its feed tells of them."""
        return self.engine.sessions.store_name == "sql"

    @property
    def max_attempts(self) -> int | None:
        """After so many failed reviews a step waits for a person."""
        return self.engine.gate.max_attempts if self.engine.gate else None

    @property
    def pieces(self) -> Pieces:
        """The work that people review."""
        return self.project.pieces()

    async def store(self) -> StateStore:
        return await self.engine.sessions.store()

    async def database(self) -> Database:
        """Return the database that plugins share.

        Raises:
            NotThere: The plugin `sql` is not installed.
            StorageError: It does not answer.
        """
        self.demand("sql")
        import deepwork_sql

        return await deepwork_sql.database(self.context)

    def demand(self, plugin: str) -> PluginContext:
        """Return the context of a plugin that a view needs.

        Raises:
            NotThere: It is not installed.
        """
        if not self.context.has(plugin):
            raise NotThere(f"the plugin {plugin!r} is not installed, or blocked", hint=f"Install deepwork-{plugin}.")
        return self.context.of(plugin)

    async def module(self, plugin: str, name: str) -> Any:
        """Import what a plugin has for people who look, beside the event loop: it may import a large library.

        Raises:
            NotThere: It is not installed.
        """
        self.demand(plugin)
        return await to_thread.run_sync(import_module, name)

    # Sessions, each for its principal alone.

    async def summaries(self, principal: str) -> list[SessionSummary]:
        """List the sessions of a principal, the last changed first."""
        summaries = await (await self.store()).find(limit=MAX_SESSIONS)
        return [summary for summary in summaries if summary.principal == principal]

    async def session(self, principal: str, session_id: str) -> Session:
        """Read a session.

        Raises:
            NotThere: It does not exist, or has another principal.
            CorruptSession: It is damaged.
        """
        session = await (await self.store()).load(session_id)
        if session is None or session.principal != principal:
            raise NotThere(f"there is no session {session_id[:64]!r}")
        return session

    async def session_of(self, summary: SessionSummary) -> Session | None:
        """Read the session of a summary once for each change; None if it is damaged or has gone."""
        key = summary.session_id, summary.updated_at
        session = self.read_sessions.get(key)
        if session is None:
            try:
                session = await (await self.store()).load(summary.session_id)
            except CorruptSession:
                return None
            if session is None or session.principal != summary.principal:
                return None
            self.read_sessions.put(key, session)
        return session


def principal_of(request: Request) -> str:
    """Name who calls."""
    return caller_of(request.scope).principal
