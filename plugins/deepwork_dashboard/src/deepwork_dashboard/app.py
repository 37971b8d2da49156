"""The application: the pages, the API below them, and the live changes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from deepwork import __version__
from deepwork.api import Engine, PluginContext, Project, things
from deepwork.errors import DeepWorkError
from deepwork_dashboard.answers import Mapped, View, endpoint, now
from deepwork_dashboard.dashboard import Dashboard, principal_of
from deepwork_dashboard.events import Events
from deepwork_dashboard.headers import SafeHeaders
from deepwork_dashboard.inbox import InboxPages
from deepwork_dashboard.live import Live
from deepwork_dashboard.overview import Overview
from deepwork_dashboard.pieces import Pieces
from deepwork_dashboard.places import STATIC
from deepwork_dashboard.plans import Plans
from deepwork_dashboard.reviews import Reviews
from deepwork_dashboard.runs import Runs
from deepwork_dashboard.search import Search
from deepwork_dashboard.sessions import Sessions
from deepwork_dashboard.work import LOGS, TrackedWork

_WORTH_PACKING = 1000


def dashboard_app(context: PluginContext, engine: Engine, project: Project) -> Starlette:
    """Make the application of a project."""
    dashboard = Dashboard(context, engine, project)
    runs = Runs(dashboard)
    inbox = InboxPages(dashboard)
    pieces = Pieces(dashboard, inbox)
    sessions = Sessions(dashboard, runs, pieces)
    plans, work, reviews = Plans(dashboard), TrackedWork(dashboard), Reviews(dashboard)

    of_sessions: dict[str, View] = {
        "": sessions.listed,
        "/{session}": sessions.one,
        "/{session}/history": sessions.history,
        "/{session}/preview": sessions.preview,
    }
    api: dict[str, View] = {
        "/session": partial(_viewer, dashboard),
        "/inbox": inbox.listed,
        "/overview": Overview(dashboard, inbox, sessions, plans, work).shown,
        **{f"/sessions{path}": view for path, view in of_sessions.items()},
        "/sessions/{session}/steps/{step}": pieces.one,
        "/sessions/{session}/steps/{step}/files": pieces.files,
        "/plans": plans.plans,
        "/plans/{plan}": plans.plan,
        "/plans/{plan}/graph": plans.graph,
        "/plans/{plan}/tasks": plans.tasks,
        "/tasks/{task}": plans.task,
        "/agents": plans.agents,
        "/agents/{agent}": plans.agent,
        "/messages": plans.messages,
        "/work": work.all_work,
        "/work/{work}": work.work,
        "/work/{work}/tasks": work.tasks,
        "/work/{work}/tasks/{task}": work.task,
        **{f"/work/{{work}}/{kind}": work.log(kind) for kind in LOGS},
        "/reviews/rules": reviews.rules,
        "/reviews/passes": reviews.passes,
        "/events": Events(dashboard, plans).listed,
        "/search": Search(dashboard, plans, work).found,
    }
    routes = [
        *_readable(api),
        Route("/inbox/answer", endpoint(inbox.answer), methods=["POST"]),
        Route("/sessions/{session}/run", endpoint(runs.act), methods=["POST"]),
        Route("/sessions/{session}/interventions", endpoint(sessions.intervene), methods=["POST"]),
        Route("/plans/{plan}/interventions", endpoint(plans.intervene), methods=["POST"]),
        Route("/sessions/{session}/steps/{step}/draft", endpoint(pieces.save_draft), methods=["POST"]),
        Route("/sessions/{session}/steps/{step}/resolve", endpoint(pieces.resolve), methods=["POST"]),
    ]
    # Programs that were written for the release before call sessions runs.
    former = _readable({f"/api/runs{path}": view for path, view in of_sessions.items()})
    return Starlette(
        routes=[
            Route("/", _index),
            Mount("/static", StaticFiles(directory=STATIC, check_dir=False)),
            *former,
            Mount("/api", routes=routes),
            WebSocketRoute("/live", Live(dashboard, runs).serve),
        ],
        middleware=[Middleware(SafeHeaders), Middleware(GZipMiddleware, minimum_size=_WORTH_PACKING, compresslevel=5)],
    )


def _readable(views: Mapping[str, View]) -> list[Route]:
    return [Route(path, endpoint(view), methods=["GET"]) for path, view in views.items()]


async def _viewer(dashboard: Dashboard, request: Request) -> Mapped:
    """Show who has logged in, and what there is to see."""
    return {
        "principal": principal_of(request),
        "person": request.state.answerer.is_person,
        "csrf": getattr(request.state, "csrf_token", None),
        "version": __version__,
        "project": dashboard.context.project_root.name,
        "store": dashboard.engine.sessions.store_name,
        "database": await _database(dashboard),
        "views": dashboard.views,
        "pages": things.PAGES,
        "now": now(),
    }


async def _index(_request: Request) -> FileResponse:
    return FileResponse(STATIC / "index.html")


async def _database(dashboard: Dashboard) -> Mapped | None:
    try:
        if not dashboard.has_database:
            return None
        database = await dashboard.database()
    except DeepWorkError as error:
        return {"dialect": None, "problem": error.message}
    return {"dialect": database.dialect, "problem": None}
