"""Fills a project with much work, as agents would leave it, for a look at the dashboard with real amounts of data.

    python plugins/deepwork_dashboard/tools/seed.py PROJECT

Everything is made by the tools that agents call: sessions by a server in this process, the rest by the functions behind
the tools, many calls in one transaction. Names are long, in many scripts, and some are markup that must stay text.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio

from deepwork import hookimpl
from deepwork.api import (
    CriterionResult,
    NeedsWork,
    Passed,
    ReviewRequest,
    ReviewRunner,
    ReviewRunnerSpec,
    ToolCall,
    Usage,
    Verdict,
    open_context,
)
from deepwork.testing import Agent, DeepworkProject, Refused, review, step
from deepwork_orchestration import agents, claims, messages, progress, workflows
from deepwork_orchestration.arguments import KEEP, Plan
from deepwork_orchestration.database import PlanDatabase
from deepwork_orchestration.departures import agent_update
from deepwork_orchestration.opening import open_database
from deepwork_orchestration.tasks import checkpoint_add, task_update_status
from deepwork_orchestration.transaction import PlanTransaction

if TYPE_CHECKING:
    from deepwork_sql import Transaction

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    '"><script>document.title="pwned"</script>',
    "<svg/onload=fetch('/api/inbox/answer',{method:'POST'})>",
    "javascript:alert(document.cookie)",
    "{{constructor.constructor('alert(1)')()}} ${alert(1)}",
    "' onmouseover='alert(1)' x='",
    "<a href=javascript:alert(1)>click</a><!-- -->",
    "\u202egnirts desrever \u202c and \u200bzero\u200bwidth",
)
LONG = (
    "Migrate_the_whole_ingestion_pipeline_from_the_legacy_scheduler_to_the_new_one_without_a_single_word_break_anywhere",
    "Überprüfe die Größenänderungen der Zwischenspeicher-Einträge in allen Mandanten",
    "仕様書の第三章を読み直し、すべての例外処理を確認してから実装を始める",
    "راجع كل الاختبارات ثم اكتب تقريرًا مفصلًا عن النتائج",
    "Ship it 🚀🚀🚀 👩‍👩‍👧‍👦",
)
PLAIN = (
    "Read the schema",
    "Write the importer",
    "Check the report",
    "Fix the flaky test",
    "Draw the diagram",
    "Measure",
)
BATCH = 250


def name(number: int) -> str:
    """Return a name: mostly plain, sometimes long, sometimes hostile."""
    pools = (HOSTILE, LONG, PLAIN)
    pool = pools[0] if number % 17 == 3 else pools[1] if number % 7 == 1 else pools[2]
    return f"{pool[number % len(pool)]} {number}"


class SeedRunner(ReviewRunner):
    """Judges by chance, and says what it has cost."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    async def review(self, request: ReviewRequest) -> Verdict:
        """Return a verdict on all criteria."""
        tokens = self._chance.randint(800, 9000)
        usage = Usage(f"model-{self._chance.choice('ab')}", tokens, tokens // 9, round(tokens / 400_000, 6))
        passed = self._chance.random() < 0.7
        results = [CriterionResult(criterion=item, passed=passed, feedback=name(tokens)) for item in request.criteria]
        verdict: Passed | NeedsWork = Passed() if passed else NeedsWork(f"Not yet: {name(tokens)}")
        return replace(verdict, criteria=tuple(results), usage=usage)


def seed_plugin(chance: random.Random) -> object:
    """Make the plugin that offers the reviewer."""

    @hookimpl
    def deepwork_review_runners() -> Iterator[ReviewRunnerSpec]:
        yield ReviewRunnerSpec(name="seed", create=lambda: SeedRunner(chance), max_inline_files=5)

    return SimpleNamespace(deepwork_review_runners=deepwork_review_runners)


async def seed_sessions(root: Path, count: int, chance: random.Random, store: str | None) -> None:
    """Start sessions of three workflows; most are completed, some stuck, some aborted."""
    project = DeepworkProject(root)
    steps = [step("gather"), step("write", reviews=[review("write.md")]), step("check"), step("publish")]
    project.write_job(
        "report", steps, {"main": ["gather", "write", ["check", "publish"]], "short": ["gather", "write"]}
    )
    project.write_job("release", [step(f"step{number:02}") for number in range(25)])
    options: dict[str, Any] = {"state_store": store} if store else {}
    async with project.agent(
        extra_plugins={"seed": seed_plugin(chance)}, external_runner="seed", tools=["core"], **options
    ) as agent:
        for number in range(count):
            workflow = ("report", "main") if number % 4 else ("release", "main")
            reply = await agent.call(
                "start_workflow", goal=name(number), job_name=workflow[0], workflow_name=workflow[1]
            )
            begun = reply["begin_step"]
            await _run(project, agent, begun["session_id"], begun["step_id"], number, chance)


async def _run(
    project: DeepworkProject, agent: Agent, session_id: str, step_id: str, number: int, chance: random.Random
) -> None:
    for attempt in range(40 if number % 5 else chance.randint(1, 6)):
        file = project.write(f"out/{number}/{step_id}.md", f"# {name(attempt)}\n\n{name(number)}\n" * 20)
        outputs = {f"{step_id}.md": str(file.relative_to(project.root))}
        try:
            reply = await agent.finish(outputs, session_id=session_id, step_id=step_id, notes=name(attempt))
        except Refused:
            return  # stuck: a person has to say how it goes on
        if reply["status"] == "workflow_complete":
            return
        step_id = (reply.get("begin_step") or {}).get("step_id") or step_id
    if number % 10 == 0:
        await agent.call("abort_workflow", explanation=name(number), session_id=session_id)


class Plans:
    """Makes plans, agents that work on them, and messages."""

    def __init__(self, database: PlanDatabase, chance: random.Random) -> None:
        self._database = database
        self._chance = chance
        self._agents: list[str] = []

    async def make(self, tasks: int) -> None:
        """Make a plan of so many tasks in layers, two in five of them done."""
        self._agents = await self._write(self._register)
        workflow_id = await self._write(lambda transaction: self._plan(transaction, tasks))
        done = 0
        while done < tasks * 2 // 5 and (ready := await self._ready(workflow_id)):
            for start in range(0, len(ready), BATCH):
                batch, first = ready[start : start + BATCH], done + start
                await self._write(
                    lambda transaction, ids=batch, first=first: self._work(transaction, ids, first, ends=True)
                )
            done += len(ready)
        running = await self._ready(workflow_id)
        await self._write(lambda transaction: self._work(transaction, running[:5], done, ends=False))
        await self._write(lambda transaction: self._talk(transaction, workflow_id))

    async def fill_feed(self, events: int) -> None:
        """Plan and replan a small task until the feed has so many events."""
        import deepwork_sql

        database = await deepwork_sql.database(self._database.context)
        workflow_id = await self._write(lambda transaction: self._plan(transaction, 3))
        task_id = (await self._ready(workflow_id))[0]
        missing = events - await database.read(_count_events)
        for start in range(0, missing, BATCH):
            number = min(BATCH, missing - start)
            await self._write(
                lambda transaction, first=start, number=number: _beat(transaction, self._agents[0], first, number)
            )
        await self._write(lambda transaction: self._work(transaction, [task_id], 1, ends=True))

    async def _write(self, work: Callable[[PlanTransaction], Any]) -> Any:
        return await self._database.write(ToolCall(), work)

    async def _ready(self, workflow_id: str) -> list[str]:
        ready = await self._database.read(
            ToolCall(), lambda transaction: progress.workflow_next_tasks(transaction, workflow_id, include_failed=False)
        )
        return [task["id"] for task in ready["tasks"] if "human" not in (task["required_capabilities"] or ())]

    def _register(self, transaction: PlanTransaction) -> list[str]:
        return [agents.agent_register(transaction, name(number)[:150], "claude_code")["id"] for number in range(12)]

    def _plan(self, transaction: PlanTransaction, tasks: int) -> str:
        names = [f"{name(number)[:180]} #{number}" for number in range(tasks)]
        layer = [number * max(1, tasks // 25) // tasks for number in range(tasks)]
        by_layer: dict[int, list[str]] = {}
        for number in range(tasks):
            by_layer.setdefault(layer[number], []).append(names[number])

        def task(number: int) -> dict[str, Any]:
            above = by_layer.get(layer[number] - 1, [])
            return {
                "name": names[number],
                "description": "\n".join(HOSTILE),
                "sequence": layer[number] + 1,
                "parallel_group": f"group-{layer[number]}",
                "depends_on": self._chance.sample(above, min(2, len(above))),
                "required_capabilities": ["human"] if number % 401 == 7 else None,
            }

        plan = {
            "summary": "As large as plans come",
            "approach": HOSTILE[1],
            "tasks": [task(number) for number in range(tasks)],
        }
        title = f"The great migration of {tasks} tasks {HOSTILE[0]}"
        created = workflows.workflow_create(transaction, title, "custom", "\n".join(HOSTILE), max_parallel_tasks=8)
        workflows.workflow_set_plan(transaction, created["id"], Plan.model_validate(plan))
        return str(created["id"])

    def _work(self, transaction: PlanTransaction, task_ids: list[str], first: int, *, ends: bool) -> None:
        for number, task_id in enumerate(task_ids, start=first):
            agent_id = self._agents[number % len(self._agents)]
            fence = claims.claim(transaction, task_id, agent_id).reply["fence"]
            who = {"fence": fence, "agent_id": agent_id}
            task_update_status(transaction, task_id, "planning", **who)
            task_update_status(transaction, task_id, "in_progress", **who)
            for _ in range(2):
                checkpoint_add(
                    transaction, task_id, "progress", name(number), files_changed=[f"src/{number}.py"], **who
                )
            if ends and number % 97 == 5:
                task_update_status(transaction, task_id, "failed", error=name(number), **who)
            elif ends:
                task_update_status(transaction, task_id, "completed", outcome=name(number), **who)

    def _talk(self, transaction: PlanTransaction, workflow_id: str) -> None:
        for number in range(300):
            sender, recipient = self._chance.sample(self._agents, 2)
            messages.message_send(
                transaction, sender, recipient, "query", name(number), subject=name(number + 3), workflow_id=workflow_id
            )


def _count_events(transaction: Transaction) -> int:
    from sqlalchemy import func, select

    from deepwork_sql.tables import events

    return int(transaction.execute(select(func.count()).select_from(events)).scalar_one())


def _beat(transaction: PlanTransaction, agent_id: str, first: int, number: int) -> None:
    for counted in range(first, first + number):
        agent_update(transaction, agent_id, current_task_id=KEEP, metadata={"counted": name(counted)})


async def seed_plans(root: Path, tasks: int, events: int, chance: random.Random) -> None:
    """Make a plan of so many tasks, and more events until there are so many."""
    async with open_context("orchestration", root) as context:
        plans = Plans(open_database(context), chance)
        await plans.make(tasks)
        await plans.make(7)
        await plans.fill_feed(events)


async def seed_work(root: Path, count: int) -> None:
    """Track workflows with phases, tasks with files, decisions, issues and milestones."""
    project = DeepworkProject(root)
    async with project.agent(tools=["tracking"]) as agent:
        for number in range(count):
            await _track(project, agent, number)


async def _track(project: DeepworkProject, agent: Agent, number: int) -> None:
    begun = await agent.call("start_workflow", name=name(number * 7 + 1), objective=name(number * 17 + 3))
    workflow_id = begun["workflow_id"]
    for phase in (1, 2):
        begun = await agent.call("start_phase", workflow_id=workflow_id, number=phase, name=name(phase + number))
        for place in range(4):
            who = {
                "caller_type": "subagent",
                "agent_name": f"agent-{place}",
                "name": name(place),
                "goal": name(place + 17),
            }
            about = {"workflow_id": workflow_id, "phase_id": begun["phase_id"]}
            task_id = (await agent.call("start_task", **about, **who))["task_id"]
            for file in range(6):
                project.write(f"work/{number}/{phase}/{place}/{file} <b>.txt", f"{number} {file}\n")
            await _log(agent, task_id, number + place)
            if phase == 1 or place:
                await agent.call("complete_task", task_id=task_id, status="success", outcome={"summary": name(place)})
        if phase == 1:
            await agent.call("complete_phase", phase_id=begun["phase_id"], status="completed", summary=name(number))
    if number % 2:
        await agent.call("complete_workflow", workflow_id=workflow_id, status="completed", summary=name(number))


async def _log(agent: Agent, task_id: str, number: int) -> None:
    await agent.call("log_milestone", task_id=task_id, message=name(number), progress=number % 101)
    await agent.call(
        "log_decision", task_id=task_id, category="other", question=name(number), chosen=name(3), reasoning=name(20)
    )
    await agent.call(
        "log_issue",
        task_id=task_id,
        type="other",
        description=name(number),
        resolution=name(number + 1),
        requires_human_review=number % 5 == 0,
    )


async def seed(options: argparse.Namespace) -> None:
    """Fill a project, and say how long it took."""
    root, chance = options.project, random.Random(options.seed)
    parts = (
        ("sessions", lambda: seed_sessions(root, options.sessions, chance, options.state_store)),
        ("plans, agents, messages and events", lambda: seed_plans(root, options.tasks, options.events, chance)),
        ("tracked work", lambda: seed_work(root, options.work)),
    )
    for label, part in parts:
        began = time.monotonic()
        await part()
        print(f"{label}: {time.monotonic() - began:.1f} s", flush=True)


def main() -> None:
    """Read the options, and fill the project."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("project", help="the project's folder")
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument("--tasks", type=int, default=2000, help="of the large plan")
    parser.add_argument("--events", type=int, default=10_000, help="in the feed of the database, at least")
    parser.add_argument("--work", type=int, default=6, help="tracked workflows")
    parser.add_argument("--state-store", help="where sessions are kept (default: as the project says)")
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers")
    options = parser.parse_args()
    options.project = Path(options.project).resolve()
    options.project.joinpath(".deepwork").mkdir(parents=True, exist_ok=True)
    anyio.run(seed, options)


if __name__ == "__main__":
    main()
