"""Workflows: their ends, and how they are opened again."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_a_second_end_of_a_workflow_gives_the_stored_result_with_a_warning(repo):
    async with repo.tracker() as agent:
        workflow_id = await agent.workflow()
        first = await agent.end(workflow_id, "completed")
        again = await agent.end(workflow_id, "failed", limitations=["none"])
        assert again.pop("warnings") == ["the workflow was already completed as 'completed'; nothing was changed"]
        assert again == first
        assert "limitations" not in await agent.context(workflow_id)


async def test_the_end_of_a_workflow_warns_of_what_is_open(repo):
    async with repo.tracker() as agent:
        workflow_id, _, _ = await agent.running()
        assert (await agent.end(workflow_id))["warnings"] == [
            "1 phase(s) still in progress",
            "1 task(s) still in progress",
        ]


async def test_new_work_opens_a_finished_workflow_again_and_its_end_counts_anew(repo):
    async with repo.tracker() as agent:
        workflow_id, phase_id, task_id = await agent.running()
        await agent.complete(task_id)
        await agent.end(workflow_id)
        task = await agent.start(workflow_id, phase_id)
        assert "COMPLETED; it is IN_PROGRESS again" in task["warnings"][0]
        await agent.complete(task["task_id"])
        assert (await agent.context(workflow_id))["workflow_status"] == "IN_PROGRESS"
        assert (await agent.end(workflow_id, "failed"))["metrics"]["total_tasks"] == 2
        phase = await agent.call("start_phase", workflow_id=workflow_id, number=9, name="p")
        assert "FAILED; it is IN_PROGRESS again" in phase["warnings"][0]
        ended = await agent.end(workflow_id, "completed")
        assert ended["status"] == "completed"
        assert ended["metrics"]["total_phases"] == 2
