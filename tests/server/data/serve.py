"""`deepwork serve` with doors as plugins may add them, and with the bounds that the environment names.

LOWERED is of the form `BOUND=VALUE BOUND=VALUE`, so that tests reach a bound without waiting for it.
"""

from __future__ import annotations

import os

import anyio
import anyio.lowlevel
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute

from deepwork.server import build
from deepwork.server import drain as inflight
from deepwork.server.http import app as http
from deepwork.server.http import limits as bounds

for name, value in (pair.split("=") for pair in os.environ.get("LOWERED", "").split()):
    for module in (bounds, http, inflight):
        if hasattr(module, name):
            setattr(module, name, float(value) if name.endswith("SECONDS") else int(value))


async def here(request):
    return PlainTextResponse("here")


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
    """Say by a named pipe that the call has arrived, then wait."""
    await anyio.Path(path).write_text("arrived")
    await anyio.sleep(seconds)
    return "waited"


def with_doors(*args, **kwargs):
    server = make(*args, **kwargs)
    server.tool(wait)
    server.custom_route("/custom", ["GET", "POST"])(here)
    server._additional_http_routes += [
        Mount("/mounted", routes=[Route("/", here), Route("/size", size, methods=["POST"])]),
        Route("/endless", endless),
        WebSocketRoute("/socket", echo),
    ]
    return server


make, build.build_server = build.build_server, with_doors

if __name__ == "__main__":
    from deepwork.cli.main import run

    run()
