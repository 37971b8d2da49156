"""Fills a project with much work, as agents would leave it, for a look at the dashboard with real amounts of data.

    python plugins/deepwork_dashboard/tools/seed.py PROJECT

Everything is made by the tools that agents call: runs by a server in this process, the rest by the functions behind the
tools, many calls in one transaction. Names are long, in many scripts, and some are markup that must stay text.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
PLAIN = ("Read the schema", "Write the importer", "Check the report", "Fix the flaky test", "Draw the diagram", "Measure")
BATCH = 250


def name(number: int) -> str:
    """Give a name: mostly plain, sometimes long, sometimes hostile."""
    pools = (HOSTILE, LONG, PLAIN)
    pool = pools[0] if number % 17 == 3 else pools[1] if number % 7 == 1 else pools[2]
    return f"{pool[number % len(pool)]} {number}"


class SeedRunner(ReviewRunner):
    """Judges by chance, and says what it has cost."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    async def review(self, request: ReviewRequest) -> Verdict:
        """Give a verdict on all criteria."""
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


async def seed_runs(root: Path, count: int, chance: random.Random, store: str | None) -> None:
    """Start runs of three workflows; most are completed, some stuck, some aborted."""
    project = DeepworkProject(root)
    steps = [step("gather"), step("write", reviews=[review("write.md")]), step("check"), step("publish")]
    project.write_job("report", steps, {"main": ["gather", "write", ["check", "publish"]], "short": ["gather", "write"]})
    project.write_job("release", [step(f"step{number:02}") for number in range(25)])
    options: dict[str, Any] = {"state_store": store} if store else {}
    async with project.agent(
        extra_plugins={"seed": seed_plugin(chance)}, external_runner="seed", tools=["workflow"], **options
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


async def seed_plans(root: Path, tasks: int, events: int, chance: random.Random) -> None:
    """Make a plan of so many tasks in layers, agents that work on it, messages, and so many events."""
    from deepwork_orchestration import agents, checkpoints, messages, workflows
    from deepwork_orchestration import tasks as task_tools
    from deepwork_orchestration.act import Act
    from deepwork_orchestration.arguments import Plan
    from deepwork_orchestration.desk import open_desk

    layers = max(1, tasks // 25)
    names = [f"{name(number)[:180]} #{number}" for number in range(tasks)]
    layer = [number * layers // tasks for number in range(tasks)]
    plan = {
        "summary": "A plan as large as they come",
        "tasks": [
            {
                "name": names[number],
                "description": name(number) * 3,
                "sequence": layer[number] + 1,
                "parallel_group": f"group-{layer[number]}",
                "depends_on": _needed(names, layer, number, chance),
                **({"required_capabilities": ["human"]} if number % 401 == 7 else {}),
            }
            for number in range(tasks)
        ],
    }
    async with open_context("orchestration", root) as context:
        desk = open_desk(context)

        async def write(work: Callable[[Act], Any]) -> Any:
            return await desk.write(ToolCall(), work)

        agent_ids = [
            (await write(lambda act, n=n: agents.agent_register(act, f"{name(n)[:150]}", "claude")))["id"]
            for n in range(12)
        ]
        content = "Seeded by tools/seed.py\n" + "\n".join(HOSTILE)
        created = await write(
            lambda act: workflows.workflow_create(act, "The great migration", "text", content, max_parallel_tasks=8)
        )
        workflow_id = created["id"]
        await write(lambda act: workflows.workflow_set_plan(act, workflow_id, Plan.model_validate(plan)))
        for number in range(6):
            await write(lambda act, n=number: workflows.workflow_create(act, name(n)[:180], "text", "small"))

        def work_on(act: Act, task_id: str, number: int, *, ends: bool) -> None:
            agent_id = agent_ids[number % len(agent_ids)]
            fence = agents.claim(act, task_id, agent_id)["fence"]
            who = {"fence": fence, "agent_id": agent_id}
            task_tools.task_update_status(act, task_id, "planning", **who)
            task_tools.task_update_status(act, task_id, "in_progress", **who)
            for _ in range(3):
                checkpoints.checkpoint_add(
                    act, task_id, "progress", name(number), files_changed=[f"src/{number}.py"], **who
                )
            if not ends:
                return
            if number % 97 == 5:
                task_tools.task_update_status(act, task_id, "failed", error=name(number), **who)
            else:
                task_tools.task_update_status(act, task_id, "completed", outcome=name(number), **who)

        done = 0
        while done < tasks * 2 // 5:
            ready = [task.id for task in await desk.read(ToolCall(), lambda act: act.records.actionable(workflow_id, ["pending"]))]
            if not ready:
                break

            def batch(act: Act, ids: list[str] = ready[:BATCH], begin: int = done) -> None:
                for number, task_id in enumerate(ids, start=begin):
                    work_on(act, task_id, number, ends=True)

            for start in range(0, len(ready), BATCH):
                part = [
                    task_id
                    for task_id in ready[start : start + BATCH]
                    if "human" not in (await desk.read(ToolCall(), lambda act, i=task_id: act.records.task(i))).__dict__.get("required_capabilities", None) or ()
                ]
                await write(lambda act, ids=part, begin=done: batch(act, ids, begin))
                done += len(part)
        print(done)
