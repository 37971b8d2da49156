"""Claims of agents that were started for a session: kept, told to the next, and given away by who starts them."""

from __future__ import annotations

import pytest

import deepwork_sql
from deepwork.api import open_context
from deepwork.ports.agent import SESSION_VARIABLE
from deepwork_orchestration import views
from deepwork_orchestration.session_claims import claim_keeper

pytestmark = pytest.mark.anyio


@pytest.fixture
async def claimed(team, make_task, monkeypatch):
    """Two tasks, one claimed by the agent of session `s1`, the other by an agent without a process."""
    alone = await team.agent()
    plan_id, tasks = await alone.workflow(make_task("build"), make_task("test"))
    agent_of_others = await alone.worker("other")
    await alone.call("task_claim", task_id=tasks["test"], agent_id=agent_of_others)
    monkeypatch.setenv(SESSION_VARIABLE, "s1")
    agent = await team.agent()
    agent_id = await agent.worker("of the run", metadata={"mine": 1})
    claim = await agent.call("task_claim", task_id=tasks["build"], agent_id=agent_id)
    return alone, plan_id, tasks, agent_id, claim


async def test_an_agent_is_registered_with_the_session_it_was_started_for(claimed):
    alone, _, _, agent_id, _ = claimed
    assert (await alone.call("agent_get", id=agent_id))["metadata"] == {"mine": 1, "session_id": "s1"}


async def test_the_next_agent_is_told_enough_to_go_on(team, claimed):
    _, plan_id, tasks, agent_id, claim = claimed
    async with open_context("orchestration", team.project.root) as context:
        keeper = claim_keeper(context)
        assert await keeper.held("another") == []
        [line] = await keeper.held("s1")
    assert line == f"task {tasks['build']} ('build') of plan {plan_id}, as agent {agent_id}, fence {claim['fence']}"
    agent = await team.agent()
    await agent.finish(tasks["build"], agent_id=agent_id)
    assert await agent.status(tasks["build"]) == "completed"


async def test_people_see_for_which_session_a_task_is_held(team, claimed):
    _, _, tasks, _, _ = claimed
    async with team.database() as database:
        held = await database.read(lambda transaction: [views.task(transaction, tasks[name]) for name in tasks])
    assert {task["name"]: task["claim"]["session_id"] for task in held} == {"build": "s1", "test": None}


async def test_renewing_keeps_the_claims_of_the_session_alone(team, claimed):
    _, _, tasks, _, _ = claimed

    async def ends():
        async with team.database() as database:
            return await database.read(
                lambda transaction: {
                    name: deepwork_sql.leases.holder_of(transaction, f"orchestration/task/{task_id}").expires_at
                    for name, task_id in tasks.items()
                }
            )

    before = await ends()
    async with open_context("orchestration", team.project.root) as context:
        await claim_keeper(context).renew("s1")
    after = await ends()
    assert after["build"] > before["build"]
    assert after["test"] == before["test"]


async def test_a_claim_that_is_given_away_is_free_at_once_and_says_why(team, claimed):
    alone, _, tasks, _, _ = claimed
    async with open_context("orchestration", team.project.root) as context:
        await claim_keeper(context).release("s1", "claude may go on at noon only")
    next_one = await alone.worker("next")
    assert (await alone.call("task_claim", task_id=tasks["build"], agent_id=next_one))["success"]
    assert not (await alone.call("task_claim", task_id=tasks["test"], agent_id=next_one))["success"]


async def test_without_a_database_there_are_no_claims_and_none_is_made(project):
    async with open_context("orchestration", project.root) as context:
        keeper = claim_keeper(context)
        await keeper.renew("s1")
        await keeper.release("s1", "a limit")
        assert await keeper.held("s1") == []
        assert not deepwork_sql.has_database(context)
