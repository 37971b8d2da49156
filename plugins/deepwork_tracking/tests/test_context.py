"""What get_context shows: rows that were chosen, the newest first."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_rows_can_be_filtered_by_phase_agent_and_time(shared):
    async with shared.tracker() as agent:
        workflow_id, _, first = await agent.running()
        second_phase = await agent.phase(workflow_id, 2)
        second = await agent.start(workflow_id, second_phase, agent_name="bob")
        await agent.call("log_milestone", task_id=first, message="late")

        async def names(**filter_):
            context = await agent.context(workflow_id, "tasks", "milestones", "phase_summary", **filter_)
            assert len(context["phase_summary"]) == 2
            assert context["filters_applied"] == {"phase": None, "agent": None, "since": None, **filter_}
            assert context["tasks_count"] == len(context["tasks"])
            return [task["agent_name"] for task in context["tasks"]], context["milestones_count"]

        assert await names(phase=2) == (["bob"], 0)
        assert await names(agent="ann") == (["ann"], 1)
        assert await names(agent="ANN") == ([], 0)
        assert await names(since=second["started_at"]) == (["bob"], 1)
        assert await names(since="2001-01-01T00:00:00") == (["ann", "bob"], 1)
        assert await names(since="2001-01-01T00:00:00-11:00", phase=1) == (["ann"], 1)
        unknown = await agent.context(workflow_id, "tasks", "blockers", phase=7)
        assert unknown["tasks"] == []
        assert unknown["has_blockers"] is False
        assert unknown["warning"] == "the workflow has no phase 7"
        error = await agent.error("get_context", workflow_id=workflow_id, include=[], filter={"since": "yesterday"})
        assert "'yesterday' is not a time" in error["message"]


async def test_lists_hold_the_newest_200_rows_and_counts_count_all(repo):
    async with repo.tracker() as agent:
        workflow_id, _, task_id = await agent.running()
        for number in range(205):
            await agent.call("log_milestone", task_id=task_id, message=str(number))
        context = await agent.context(workflow_id, "milestones")
    assert context["milestones_count"] == 205
    assert [milestone["message"] for milestone in context["milestones"]] == [str(n) for n in range(204, 4, -1)]
