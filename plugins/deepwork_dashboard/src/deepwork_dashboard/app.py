"""The application: the pages, the API and the live changes."""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

STATIC = Path(__file__).parent / "static"


def dashboard_app() -> Starlette:
    """Make the application of a project."""

    async def index(_request: Request) -> FileResponse:
        return FileResponse(STATIC / "index.html")

    return Starlette(routes=[Route("/", index), Mount("/static", StaticFiles(directory=STATIC))])
