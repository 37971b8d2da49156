"""Measure what this plugin promises: `python plugins/deepwork_orchestration/tools/figures_orchestration.py [NAME …]`.

Times depend on what else the machine does; run it on a quiet one.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import click
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from splintr import Tokenizer

from deepwork.server import create_server
from deepwork_orchestration import context_budget

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parents[3] / "tools")]

import call_times  # noqa: E402 - in the folders above
from rows import Row, show  # noqa: E402

STATES = 10_000
TOKENS = {"orchestration": 6000, "orchestration:worker": 2300, "orchestration:observer": 1500}
GROWTH = 1.3
START = 1.3
IDLE_SECONDS = 5

encode = Tokenizer.from_pretrained("o200k_base").encode
Mapped = dict[str, Any]


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# Tokens of the tools.


def tokens() -> Iterator[Row]:
    """What the tools cost an agent."""
    for name, most in TOKENS.items():
        with tempfile.TemporaryDirectory() as folder:
            tools = anyio.run(_tools, folder, name)
        count = len(encode(compact(tools)))
        figure = f"--tools {name}: {len(tools)} tools"
        yield Row(figure, f"at most {most:,} tokens", f"{count:,} tokens (o200k)", count <= most)


async def _tools(folder: str, name: str) -> list[Mapped]:
    async with Client(create_server(folder, tools=[name])) as client:
        answer = (await client.list_tools_mcp()).model_dump(by_alias=True, exclude_none=True)
    return [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in answer["tools"]]


# The budget of task_load_context.


def context() -> Iterator[Row]:
    """Random states and budgets: how many answers exceed theirs."""
    chance = random.Random(1)
    above, floors, fullest = 0, 0, 0.0
    for _ in range(STATES):
        budget = chance.choice((chance.randint(1, 200), chance.randint(200, 2000), 8000))
        answer = context_budget.fit(_state(chance), budget)
        count = len(encode(compact(answer)))
        is_floor = answer.get("truncated") == [context_budget.ONLY_FLOOR]
        floors += is_floor
        above += count > budget and not is_floor
        if "truncated" in answer and not is_floor:
            fullest = max(fullest, count / budget)
    measured = f"{above} above, {floors:,} smallest answers, fullest {fullest:.1%} of its budget"
    yield Row(f"task_load_context, {STATES:,} random states", "none above its budget", measured, above == 0)


def _state(chance: random.Random) -> Mapped:
    def text(most: int) -> str:
        letters = chance.choice(("abcdefgh ", "漢字かな混じり文", '{"\\\n\t}', "éßœ ☃ 🙂", "word "))
        return "".join(chance.choices(letters, k=chance.randint(0, most)))

    def some(most: int, make: Callable[[], Mapped]) -> list[Mapped]:
        return [make() for _ in range(chance.randint(0, most))]

    def point() -> Mapped:
        files = [text(30) for _ in range(chance.randint(0, 12))]
        return {
            "id": text(15),
            "type": "progress",
            "summary": text(200),
            "detail": {"k": text(400)},
            "files_changed": files,
        }

    def other() -> Mapped:
        return {"id": text(15), "name": text(40), "outcome": text(300), "status": "completed"}

    task = {"id": text(15), "name": text(60), "description": text(2000), "plan": {"approach": text(1500)}}
    texts = {"source_summary": text(6000), "plan_summary": text(900)}
    return {
        "workflow": {"id": text(15), "name": text(60), **texts, "status": "ready"},
        "current_task": {**task, "context": {"k": text(900)}, "checkpoints": some(25, point), "status": "in_progress"},
        "prior_tasks": some(40, other),
        **({"sibling_tasks": some(10, other)} if chance.random() < 0.5 else {}),
        **({"dependency_outcomes": some(10, other)} if chance.random() < 0.5 else {}),
    }


# The time of a call, in a small and in a large database.


def calls() -> Iterator[Row]:
    """What each call takes with 1 workflow of 50 tasks and with 200 of 200, beside FLOOR and RAW."""
    for engine in call_times.ENGINES:
        floor, small = call_times.measure(engine, *call_times.SMALL)
        _, large = call_times.measure(engine, *call_times.LARGE)
        for tool, times in small.items():
            bound, bound_cpu = floor.wall + 2 * times.raw.wall, floor.cpu + 2 * times.raw.cpu
            for size, growth, measured in (("1 x 50", 1.0, times.served), ("200 x 200", GROWTH, large[tool].served)):
                most = growth * bound
                goal = f"at most {most:.2f} ms"
                cpu = f"processor {measured.cpu:.2f} of {growth * bound_cpu:.2f}"
                shown = f"{measured.wall:.2f} ms ({measured.wall / most:.2f} times); {cpu}"
                yield Row(f"{tool}, {engine}, {size}", goal, shown, measured.wall <= most)


# Start and rest.


def start() -> Iterator[Row]:
    """What the tools add to the start of a server."""
    with tempfile.TemporaryDirectory() as folder:
        times = {name: [] for name in ("core", "orchestration")}  # type: dict[str, list[float]]
        for _ in range(7):
            for name in times:
                started = time.perf_counter()
                anyio.run(_started, folder, name)
                times[name].append(time.perf_counter() - started)
    core, all_tools = (min(values) * 1000 for values in times.values())
    measured = f"{core:.0f} ms -> {all_tools:.0f} ms ({all_tools / core:.2f} times)"
    yield Row("spawn -> tools/list, 43 tools", f"at most {START} times the core", measured, all_tools <= START * core)


async def _started(folder: str, name: str) -> None:
    arguments = ["-m", "deepwork", "serve", "--path", folder, "--tools", name, "--log-level", "error"]
    transport = StdioTransport(sys.executable, arguments, env=dict(os.environ), keep_alive=False)
    async with Client(transport) as client:
        await client.list_tools()


def idle() -> Iterator[Row]:
    """What a server does while nobody calls it, after it has opened the database."""
    seconds = anyio.run(_idle)
    yield Row("an idle server", "0 % of a processor", f"{seconds / IDLE_SECONDS:.2%}", seconds <= 0.01 * IDLE_SECONDS)


async def _idle() -> float:
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["-m", "deepwork", "serve", "--path", folder, "--tools", "orchestration", "--log-level", "error"]
        transport = StdioTransport(sys.executable, arguments, env=dict(os.environ), keep_alive=False)
        async with Client(transport) as client:
            await client.call_tool("agent_register", {"name": "a", "runtime": "custom"})
            await anyio.sleep(1)
            pid = _server_pid(folder)
            before = _processor_seconds(pid)
            await anyio.sleep(IDLE_SECONDS)
            return _processor_seconds(pid) - before


def _server_pid(folder: str) -> str:
    command = ["pgrep", "-f", f"deepwork serve --path {folder}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]


def _processor_seconds(pid: str) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


FIGURES = {figure.__name__: figure for figure in (tokens, context, calls, start, idle)}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*FIGURES]))
def main(names: tuple[str, ...]) -> None:
    """Measure the figures of these names, or all."""
    show(row for name in names or FIGURES for row in FIGURES[name]())


if __name__ == "__main__":
    main()
