"""Phases: begun once for each number, and ended once."""

from __future__ import annotations

import anyio
import pytest

pytestmark = pytest.mark.anyio


async def test_a_phase_that_exists_is_given_again_and_changes_nothing(repo):
    async with repo.tracker() as agent:
        workflow_id = await agent.workflow()
        first = await agent.call("start_phase", workflow_id=workflow_id, number=1, name="old", is_parallel=True)
        await agent.call("complete_phase", phase_id=first["phase_id"], status="completed")
        await agent.phase(workflow_id, 2)
        await agent.end(workflow_id)
        again = await agent.call("start_phase", workflow_id=workflow_id, number=1, name="new")
        assert again == {**first, "status": "COMPLETED", "already_exists": True}
        context = await agent.context(workflow_id)
        assert context["current_phase"] == 2
        assert context["workflow_status"] == "COMPLETED"


async def test_two_starts_of_a_phase_at_once_make_one_phase(shared):
    async with shared.tracker() as agent, shared.other_tracker() as second_agent:
        workflow_id = await agent.workflow()
        answers = []

        async def start(who, name):
            answers.append(await who.call("start_phase", workflow_id=workflow_id, number=1, name=name))

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(start, agent, f"here {number}")
                tasks.start_soon(start, second_agent, f"there {number}")
        assert len({(answer["phase_id"], answer["name"]) for answer in answers}) == 1
        assert sum("already_exists" in answer for answer in answers) == 7


async def test_a_phase_ends_once_also_while_its_tasks_run_and_they_can_still_end(repo):
    async with repo.tracker() as agent:
        _, phase_id, task_id = await agent.running()
        ended = await agent.call("complete_phase", phase_id=phase_id, status="failed")
        assert ended["warnings"] == ["1 task(s) still in progress"]
        error = await agent.error("complete_phase", phase_id=phase_id, status="completed")
        assert "is FAILED, not IN_PROGRESS" in error["message"]
        assert (await agent.complete(task_id))["phase_status"] == "failed"
