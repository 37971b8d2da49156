"""What runs have counted against what scripted programs have printed, over random histories of spending.

    python tools/torture runs spending

A history is one run: Claude Code or Codex is played by a program, started up to three times, cut at random, with
requests in parts and twice, usage that comes late or never, caches and requests beside the conversation. Each third
one is an agent that says dollars after each request, with a budget.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
from acting import ActingAgent
from anyio.lowlevel import checkpoint

from deepwork.api import AgentSpec, Ended, Spent, ToolCall, open_project
from deepwork.testing import DeepworkProject, step
from deepwork_run.agents.claude import ClaudeAgent
from deepwork_run.agents.codex import CodexAgent
from deepwork_run.display import Display
from deepwork_run.options import Options
from deepwork_run.record import Record
from deepwork_run.runner import Runner
from deepwork_run.settings import RunSettings

STARTS = 3
# Plays the lines of its first, second, third start.
PLAYER = """\
import pathlib, sys
folder = pathlib.Path(__file__).parent
number = len(list(folder.glob("started-*")))
(folder / f"started-{number}").touch()
sys.stdin.read()
sys.stdout.write((folder / f"lines-{number}").read_text())
"""


class Books:
    """What a program has printed that it has used: tokens by request, so that the same request counts once."""

    def __init__(self) -> None:
        self.requests: dict[str, tuple[int, int]] = {}
        self.dollars: list[float] = []

    @property
    def sums(self) -> tuple[int, int, float | None]:
        inputs, outputs = (sum(used[index] for used in self.requests.values()) for index in (0, 1))
        return inputs, outputs, round(sum(self.dollars), 9) if self.dollars else None


def claude_lines(chance: random.Random, number: int, books: Books) -> list[str]:
    """Return what Claude Code prints at one start."""
    lines: list[dict[str, Any]] = []
    total, session_id = Counter[str](), f"c{number}"
    for request in range(chance.randrange(0, 6)):
        name = f"msg_{number}_{request}"
        read = {
            "input_tokens": chance.randrange(1, 5000),
            "cache_read_input_tokens": chance.randrange(0, 90_000),
            "cache_creation_input_tokens": chance.randrange(0, 3000),
        }
        outputs = chance.randrange(1, 4000)
        message = {"id": name, "content": [{"type": "text", "text": "…"}], "usage": {**read, "output_tokens": 1}}
        parts = [{"type": "assistant", "message": message}] * chance.randrange(1, 4)
        started = {"type": "message_start", "message": {**message, "content": []}}
        ended = {"type": "message_delta", "usage": {**read, "output_tokens": outputs}}
        streamed = [{"type": "stream_event", "event": event, "api_message_id": name} for event in (started, ended)]
        all_lines = [streamed[0], *parts, streamed[1]]
        arrived = all_lines if chance.random() < 0.8 else all_lines[: chance.randrange(1, len(all_lines))]
        lines += arrived
        books.requests[name] = (sum(read.values()), outputs if streamed[1] in arrived else 1)
        total.update({"inputs": sum(read.values()), "outputs": outputs})
        if len(arrived) < len(all_lines):
            return [json.dumps(line) for line in lines]
    if chance.random() < 0.75:
        beside = {"inputTokens": chance.randrange(0, 400), "outputTokens": chance.randrange(0, 40)}
        main = {"inputTokens": total["inputs"], "outputTokens": total["outputs"]}
        cost = round(chance.uniform(0, 0.5), 6)
        result = {"type": "result", "is_error": False, "session_id": session_id, "total_cost_usd": cost}
        lines += [{**result, "modelUsage": {"large": main, "small": beside}}] * chance.randrange(1, 3)
        books.requests[f"{session_id}:beside"] = (beside["inputTokens"], beside["outputTokens"])
        books.dollars.append(cost)
    return [json.dumps(line) for line in lines]


def codex_lines(chance: random.Random, number: int, books: Books) -> list[str]:
    """Return what Codex prints at one start."""
    lines: list[dict[str, Any]] = [{"type": "thread.started", "thread_id": f"t{number}"}]
    items = [{"id": f"i{item}", "type": "agent_message", "text": "…"} for item in range(chance.randrange(0, 5))]
    lines += [{"type": "item.completed", "item": item} for item in items]
    if chance.random() < 0.75:
        used = (chance.randrange(1, 200_000), chance.randrange(1, 9000))
        usage = {"input_tokens": used[0], "cached_input_tokens": used[0] // 2, "output_tokens": used[1]}
        lines.append({"type": "turn.completed", "usage": usage})
        books.requests[f"t{number}"] = used
    return [json.dumps(line) for line in lines]


async def play(root: Path, vendor: str, chance: random.Random) -> tuple[Books, dict[str, Any]]:
    """Run one history of a vendor, and return its books and what was counted."""
    folder, books = root.parent / "programs", Books()
    folder.mkdir()
    program = folder / vendor
    program.write_text(f"#!{sys.executable} -IS\n{PLAYER}")
    program.chmod(0o755)
    make = claude_lines if vendor == "claude" else codex_lines
    for number in range(STARTS):
        (folder / f"lines-{number}").write_text("".join(f"{line}\n" for line in make(chance, number, books)))
    settings = RunSettings(**{vendor: str(program)})
    async with opened(root) as scene:
        agent = (ClaudeAgent if vendor == "claude" else CodexAgent)(scene.project.context, settings)
        await scene.run({vendor: (AgentSpec(name=vendor, create=lambda: agent), agent)})
        return books, scene.record.read().totals()


async def spend(root: Path, chance: random.Random) -> tuple[Books, dict[str, Any], bool]:
    """Run one history of an agent that says dollars after each request; also return if it was stopped in time."""
    books, budget = Books(), chance.uniform(0.1, 2)

    async def act(agent: Any, _task: Any) -> AsyncIterator[Any]:
        for number in range(chance.randrange(1, 30)):
            name, cost = f"{len(agent.tasks)}.{number}", round(chance.uniform(0, 0.3), 6)
            books.requests[name] = (chance.randrange(1, 9000), chance.randrange(1, 900))
            books.dollars.append(cost)
            for _ in range(chance.randrange(1, 3)):
                yield Spent(name, *books.requests[name], cost)
            await checkpoint()  # the next request takes its time
        yield Ended(0)

    async with opened(root) as scene:
        agent = ActingAgent(scene.project, [act])
        await scene.run({"paid": (AgentSpec(name="paid", create=lambda: agent), agent)}, budget_usd=budget)
        before_last = sum(books.dollars) - books.dollars[-1]
        return books, scene.record.read().totals(), before_last < budget


class opened:  # noqa: N801 - used as a context
    """A session of a project, and a way to run it."""

    def __init__(self, root: Path) -> None:
        DeepworkProject(root).write_job(steps=[step("a"), step("b")])
        self._opening = open_project("run", root)

    async def __aenter__(self) -> SimpleNamespace:
        """Open the project, and start a session."""
        project = await self._opening.__aenter__()
        started = await project.engine.start(ToolCall(), goal="g", job_name="demo", workflow_name="main")
        session_id = started.begin_step.session_id
        record = Record(project.context.workspace, session_id)

        async def run(agents: Any, **options: Any) -> int:
            chosen = Options(agents=tuple(agents), waits=False, **options)
            return await Runner(project, record, agents, chosen, Display()).run()

        return SimpleNamespace(project=project, record=record, run=run)

    async def __aexit__(self, *error: object) -> None:
        """Close the project."""
        await self._opening.__aexit__(*error)


def histories(count: int, seed: int) -> Counter[str]:
    """Run random histories, and return how many were equal, how many were stopped late, and all tokens."""
    chance, counts = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as user:
        os.environ |= {"XDG_CONFIG_HOME": user, "XDG_STATE_HOME": user}
        for number in range(count):
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder) / "project"
                vendor = ("claude", "codex", "paid")[number % 3]
                if vendor == "paid":
                    books, totals, in_time = anyio.run(spend, root, chance)
                    counts["stopped late"] += not in_time
                else:
                    books, totals = anyio.run(play, root, vendor, chance)
                counted = (totals["input_tokens"], totals["output_tokens"], totals["cost_usd"])
                counts["equal"] += counted == books.sums
                counts["tokens"] += sum(books.sums[:2])
                if counted != books.sums:
                    print(f"NOT EQUAL: {vendor}: {counted} counted, {books.sums} printed", file=sys.stderr)
    return counts
