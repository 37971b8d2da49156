"""Several server processes on one database, all at once."""

from __future__ import annotations

import sys
import threading
from functools import partial
from pathlib import Path

import anyio
import pytest
from sqlalchemy import Engine, event

import deepwork_sql
from deepwork.api import open_context
from deepwork_orchestration.database import LOCK

sys.path.insert(0, str(Path(__file__).parent))
from drain import Drain

from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio


async def test_many_agents_on_many_servers_do_every_task_once(project_on_database):
    drain = Drain(project_on_database.root, tasks=30, seed=1)
    await drain.run(servers=3, agents=4)
    assert drain.done == 30
    assert await drain.check() == []


@pytest.mark.smoke
async def test_exactly_one_of_many_claims_on_one_task_wins(team, make_task):
    agents = [await team.agent() for _ in range(6)]
    _, tasks = await agents[0].workflow(make_task("a"))
    workers = [await agent.worker() for agent in agents]
    answers = {}

    async def claim(agent, worker):
        answers[worker] = await agent.call("task_claim", task_id=tasks["a"], agent_id=worker)

    async with anyio.create_task_group() as group:
        for agent, worker in zip(agents, workers, strict=True):
            group.start_soon(claim, agent, worker)
    (winner,) = [worker for worker, answer in answers.items() if answer["success"]]
    assert {answer.get("already_claimed_by") for answer in answers.values()} == {None, winner}


async def test_claims_that_wait_share_a_commit_and_each_has_its_own_answer(team, make_task):
    """Of two claims on each task one is refused, beside the claims of other tasks in the same transaction."""
    agent = await team.agent()
    names = [f"t{number}" for number in range(10)]
    _, tasks = await agent.workflow(*map(make_task, names))
    workers = [await agent.worker(), await agent.worker()]
    answers, commits = [], []
    is_held, may_end = threading.Event(), threading.Event()

    def count(_connection):
        commits.append(1)

    def hold(_transaction):
        is_held.set()
        assert may_end.wait(PATIENCE)

    async def claim(name, worker):
        answers.append(await agent.call("task_claim", task_id=tasks[name], agent_id=worker))

    async with open_context("test", team.project.root) as context, anyio.create_task_group() as group:
        other_server = await deepwork_sql.database(context)
        group.start_soon(partial(other_server.write, hold, lock=LOCK))
        assert await anyio.to_thread.run_sync(is_held.wait, PATIENCE)
        event.listen(Engine, "commit", count)
        async with anyio.create_task_group() as claims:
            for name in names:
                for worker in workers:
                    claims.start_soon(claim, name, worker)
            await anyio.wait_all_tasks_blocked()
            may_end.set()
    event.remove(Engine, "commit", count)
    assert sorted(answer["success"] for answer in answers) == [False] * 10 + [True] * 10
    assert len(commits) < 10, "queries count as well"


async def test_checkpoints_of_many_writers_have_no_gaps_and_one_completion_wins(team, make_task):
    agents = [await team.agent() for _ in range(4)]
    _, tasks = await agents[0].workflow(make_task("a"))
    await agents[0].move(tasks["a"], "planning", "in_progress")
    outcomes = []

    async def work(agent):
        for _ in range(5):
            await agent.call("checkpoint_add", task_id=tasks["a"], type="progress", summary="x")
        completion = {"id": tasks["a"], "status": "completed", "outcome": "x"}
        result = await agent.client.call_tool("task_update_status", completion, raise_on_error=False)
        outcomes.append(result.is_error)

    async with anyio.create_task_group() as group:
        for agent in agents:
            group.start_soon(work, agent)
    points = (await agents[0].call("checkpoint_list", task_id=tasks["a"]))["checkpoints"]
    assert [point["sequence"] for point in points] == list(range(1, 21))
    assert sorted(outcomes) == [False, True, True, True]
