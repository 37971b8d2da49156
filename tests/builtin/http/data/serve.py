"""`deepwork serve` with routes such as plugins may add, and with limits from the environment.

LIMITS has the form `LIMIT=VALUE LIMIT=VALUE`, so that tests reach a limit without waiting for it.
"""

from __future__ import annotations

import os

import anyio
import anyio.lowlevel
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute

from deepwork.builtin.http import app, limits, sessions, shares
from deepwork.programs import pending_calls as drain
from deepwork.programs import process_end
from deepwork.server import build

for name, value in (pair.split("=") for pair in os.environ.get("LIMITS", "").split()):
    for module in (limits, app, drain, process_end, sessions, shares):
        if hasattr(module, name):
            setattr(module, name, float(value) if name.endswith("SECONDS") else int(value))


async def hello(request):
    return PlainTextResponse("hello")


async def size(request):
    return PlainTextResponse(str(len(await request.body())))


async def endless(request):
    async def chunks():
        while True:
            await anyio.lowlevel.checkpoint()
            yield b"x" * 65536

    return StreamingResponse(chunks())


async def echo(socket):
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_text(str(len(text)))


async def wait(path: str, seconds: float) -> str:
    """Report by a named pipe that the call has arrived, then wait."""
    await anyio.Path(path).write_text("arrived")
    await anyio.sleep(seconds)
    return "waited"


async def wait_for(path: str, release: str) -> str:
    """Report by a named pipe that the call has arrived, then wait for something in another one."""
    await anyio.Path(path).write_text("arrived")
    await anyio.Path(release).read_text()
    return "waited"


def with_routes(*args, **kwargs):
    server = make(*args, **kwargs)
    server.tool(wait)
    server.tool(wait_for)
    server.custom_route("/custom", ["GET", "POST"])(hello)
    server._additional_http_routes += [
        Mount("/mounted", routes=[Route("/", hello), Route("/size", size, methods=["POST"])]),
        Route("/endless", endless),
        WebSocketRoute("/socket", echo),
    ]
    return server


make, build.build_server = build.build_server, with_routes

if __name__ == "__main__":
    from deepwork.cli.main import run

    run()
