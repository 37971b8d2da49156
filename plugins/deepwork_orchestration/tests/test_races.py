"""Several server processes on one database, all at once."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from drain import Drain

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


async def test_checkpoints_of_many_writers_have_no_gaps_and_one_completion_wins(team, make_task):
    agents = [await team.agent() for _ in range(4)]
    _, tasks = await agents[0].workflow(make_task("a"))
    await agents[0].move(tasks["a"], "planning", "in_progress")
    outcomes = []

    async def work(agent):
        for _ in range(5):
            await agent.call("checkpoint_add", task_id=tasks["a"], type="progress", summary="x")
        done = {"id": tasks["a"], "status": "completed", "outcome": "x"}
        result = await agent.client.call_tool("task_update_status", done, raise_on_error=False)
        outcomes.append(result.is_error)

    async with anyio.create_task_group() as group:
        for agent in agents:
            group.start_soon(work, agent)
    points = (await agents[0].call("checkpoint_list", task_id=tasks["a"]))["checkpoints"]
    assert [point["sequence"] for point in points] == list(range(1, 21))
    assert sorted(outcomes) == [False, True, True, True]
