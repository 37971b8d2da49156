"""Measures what the docs promise of the dashboard's server.

    python plugins/deepwork_dashboard/tools/figures_dashboard.py [live] [listeners] [idle]

- `live`: from what an agent of another process has stored, by the time in it, to the page, p95 for each store
- `listeners`: the calls of agents with five open pages against those without, on one HTTP server, in turns
- `idle`: the processor time of a dashboard with one open page and nothing to tell

All goes through real processes: `deepwork dashboard` and `deepwork serve`, agents over MCP, pages as WebSockets.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from anyio import to_thread
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from websockets.asyncio.client import ClientConnection, connect

from deepwork.testing import Agent, DeepworkProject
from deepwork_sql.cluster import running_cluster

STORES = ("json", "sqlite", "postgresql")
LIMITS = {"json": 1.3, "sqlite": 0.4, "postgresql": 0.3}
PAGES = 5


class Place(NamedTuple):
    """A project, and the environment and options of its servers."""

    project: DeepworkProject
    env: dict[str, str]
    store: str


@contextmanager
def place(store: str) -> Iterator[Place]:
    """Make a project whose runs are in a store."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        subprocess.run(["git", "init", "-q", root], check=True)
        project = DeepworkProject(root)
        project.write_job("demo")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DEEPWORK_")}
        home = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"), folder)
        if store != "postgresql":
            yield Place(project, {**kept, **home, "DEEPWORK_STATE_STORE": "json" if store == "json" else "sql"}, store)
            return
        with running_cluster() as server, server.new_database() as url:
            env = {"DEEPWORK_STATE_STORE": "sql", "DEEPWORK_DATABASE_URL": url}
            yield Place(project, {**kept, **home, **env}, store)


class Server(NamedTuple):
    """A process that serves the pages, and where."""

    pid: int
    url: str
    token: str

    @asynccontextmanager
    async def page(self) -> AsyncIterator[ClientConnection]:
        """Open a page, and wait until it would be told."""
        await self.get("overview")  # as a page does, which also opens the database
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.url.replace('http', 'ws')}live"
        async with connect(url, additional_headers=headers, proxy=None) as socket:
            await socket.recv()
            yield socket

    async def get(self, path: str) -> dict[str, Any]:
        """Ask the API."""
        request = urllib.request.Request(f"{self.url}api/{path}", headers={"Authorization": f"Bearer {self.token}"})

        def ask() -> dict[str, Any]:
            with urllib.request.urlopen(request) as answer:
                return dict(json.load(answer))

        return await to_thread.run_sync(ask)

    def seconds(self) -> float:
        """Give the processor time that it has taken."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def dashboard(at: Place, *command: str) -> Iterator[Server]:
    """Start a server with pages, to which the principal of agents on stdio logs in."""
    token, file = secrets.token_urlsafe(32), at.project.root.parent / "tokens"
    file.touch(mode=0o600)
    file.write_text(f"local {token} person\n")
    place = ["--path", str(at.project.root), "--port", "0", "--token-file", str(file)]
    whole = [sys.executable, "-m", "deepwork", *command, *place]
    with subprocess.Popen(whole, text=True, env=at.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout
        try:
            match = next(filter(None, (re.search(r"(http://[^/\s]+)", line) for line in process.stdout)))
            mount = "/" if command[0] == "dashboard" else "/plugins/dashboard/"
            yield Server(process.pid, f"{match[1]}{mount}", token)
        finally:
            process.terminate()


async def live(at: Place, count: int) -> tuple[float, float]:
    """Give the 95th percentiles of the seconds from what was stored to the page, and by which this machine is late."""
    took: list[float] = []
    late: list[float] = []
    with dashboard(at, "dashboard") as server:
        async with server.page() as page, at.project.stdio_agent("--tools", "core", env=at.env) as agent:
            for _ in range(count):
                pause = random.random()  # so that calls come at any time of the poll
                begun = time.perf_counter()
                await anyio.sleep(pause)
                late.append(time.perf_counter() - begun - pause)
                session_id = (await agent.start())["session_id"]
                while f"run:{session_id}" not in json.loads(await page.recv()).get("things", ()):
                    pass
                now = datetime.now(UTC)
                stored_at = (await server.get(f"runs/{session_id}"))["updated_at"]
                took.append((now - datetime.fromisoformat(stored_at)).total_seconds())
    return p95(took), p95(late)


def p95(values: list[float]) -> float:
    """Give the 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


async def listeners(at: Place, rounds: int, calls: int) -> tuple[float, float]:
    """Give the median seconds of a call without pages and with five, taken in turns."""
    alone: list[float] = []
    watched: list[float] = []
    with dashboard(at, "serve", "--transport", "http") as server:
        url = re.sub(r"/plugins/.*", "/mcp", server.url)
        async with Client(StreamableHttpTransport(url)) as client:
            agent = Agent(client)
            await _calls(at, agent, calls)
            for _ in range(rounds):
                alone += await _calls(at, agent, calls)
                async with AsyncExitStack() as pages, anyio.create_task_group() as tasks:
                    for _ in range(PAGES):
                        tasks.start_soon(_read, await pages.enter_async_context(server.page()))
                    watched += await _calls(at, agent, calls)
                    tasks.cancel_scope.cancel()
    return statistics.median(alone), statistics.median(watched)


async def _calls(at: Place, agent: Agent, count: int) -> list[float]:
    took: list[float] = []
    for name in ("a.md", "b.md"):
        at.project.write(name)
    for _ in range(count):
        session_id = (await agent.start())["session_id"]
        for name in ("a.md", "b.md"):
            begun = time.perf_counter()
            await agent.finish({name: name}, session_id=session_id)
            took.append(time.perf_counter() - begun)
    return took


async def _read(page: ClientConnection) -> None:
    async for _ in page:
        continue


async def idle(at: Place, seconds: float) -> float:
    """Give the share of a core that an open page costs when nothing happens."""
    async with at.project.stdio_agent("--tools", "core", env=at.env) as agent:
        for _ in range(20):
            await agent.start()
    with dashboard(at, "dashboard") as server:
        async with server.page() as page, anyio.create_task_group() as tasks:
            tasks.start_soon(_read, page)
            await anyio.sleep(5)
            before = server.seconds()
            await anyio.sleep(seconds)
            share = (server.seconds() - before) / seconds
            tasks.cancel_scope.cancel()
    return share


def report(name: str, value: str, limit: str, *, is_met: bool) -> None:
    """Print one line."""
    print(f"{name:<34}{value:>12}{limit:>14}  {'met' if is_met else 'MISSED'}", flush=True)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("figures", nargs="*", choices=[[], "live", "listeners", "idle"], help="default: all")
    parser.add_argument("--store", action="append", choices=STORES, help="only this one; can be given more than once")
    parser.add_argument("--events", type=int, default=60, help="of each store")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--calls", type=int, default=20, help="of each round")
    parser.add_argument("--seconds", type=float, default=30, help="for `idle`")
    options = parser.parse_args()
    chosen = options.figures or ["live", "listeners", "idle"]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n{'':<34}{'measured':>12}{'goal':>14}")
    for store in options.store or STORES:
        with place(store) as at:
            if "live" in chosen:
                seconds, late = anyio.run(live, at, options.events)
                met = seconds <= LIMITS[store]
                report(f"{store}: stored -> page, p95", f"{seconds:.3f} s", f"{LIMITS[store]} s", is_met=met)
                print(f"    meanwhile a process that sleeps wakes up late by {late:.3f} s, p95")
            if "listeners" in chosen:
                alone, watched = anyio.run(listeners, at, options.rounds, options.calls)
                ratio = watched / alone
                text = f"{ratio:.2f} x"
                report(f"{store}: p50 with {PAGES} pages", text, "1.1 x", is_met=ratio <= 1.1)
            if "idle" in chosen:
                share = anyio.run(idle, at, options.seconds)
                report(f"{store}: a core, one idle page", f"{share:.2%}", "1 %", is_met=share <= 0.01)


if __name__ == "__main__":
    main()
