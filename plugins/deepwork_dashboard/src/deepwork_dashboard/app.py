"""The application: the pages, the API below them, and the live changes."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from deepwork import __version__
from deepwork.api import DeepWorkError, Engine, PluginContext
from deepwork_dashboard.answers import Mapped, endpoint, now
from deepwork_dashboard.dashboard import Dashboard, principal_of
from deepwork_dashboard.events import Events
from deepwork_dashboard.headers import SafeHeaders
from deepwork_dashboard.inbox import InboxPages
from deepwork_dashboard.live import Live
from deepwork_dashboard.overview import Overview
from deepwork_dashboard.places import STATIC
from deepwork_dashboard.plans import Plans
from deepwork_dashboard.reviews import Reviews
from deepwork_dashboard.runs import Runs
from deepwork_dashboard.search import Search
from deepwork_dashboard.work import LOGS, TrackedWork

_WORTH_PACKING = 1000


def dashboard_app(context: PluginContext, engine: Engine) -> Starlette:
    """Make the application of a project."""
    dashboard = Dashboard(context, engine)
    inbox, runs = InboxPages(dashboard), Runs(dashboard)
    plans, work, reviews = Plans(dashboard), TrackedWork(dashboard), Reviews(dashboard)

    async def session(request: Request) -> Mapped:
        return {
            "principal": principal_of(request),
            "person": request.state.answerer.is_person,
            "csrf": getattr(request.state, "csrf_token", None),
            "version": __version__,
            "project": context.project_root.name,
            "store": engine.sessions.store_name,
            "database": await _database(dashboard),
            "views": dashboard.views,
            "now": now(),
        }

    api = {
        "/session": session,
        "/inbox": inbox.listed,
        "/overview": Overview(dashboard, inbox, runs, plans, work).shown,
        "/runs": runs.listed,
        "/runs/{run}": runs.one,
        "/runs/{run}/history": runs.history,
        "/runs/{run}/preview": runs.preview,
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
        "/events": Events(dashboard).listed,
        "/search": Search(dashboard, plans, work).found,
    }
    routes = [Route(path, endpoint(view), methods=["GET"]) for path, view in api.items()]
    routes += [Route("/inbox/answer", endpoint(inbox.answer), methods=["POST"])]
    return Starlette(
        routes=[
            Route("/", _index),
            Mount("/static", StaticFiles(directory=STATIC, check_dir=False)),
            Mount("/api", routes=routes),
            WebSocketRoute("/live", Live(dashboard).serve),
        ],
        middleware=[Middleware(SafeHeaders), Middleware(GZipMiddleware, minimum_size=_WORTH_PACKING, compresslevel=5)],
    )


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
