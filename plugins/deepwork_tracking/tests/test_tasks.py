"""Tasks: what they need to begin, and how they end."""

from __future__ import annotations

import json

import anyio
import pytest

pytestmark = pytest.mark.anyio


async def test_exactly_one_of_several_completions_at_once_wins(shared):
    async with shared.tracker() as agent, shared.other_tracker() as second_agent:
        workflow_id, _, task_id = await agent.running()
        outcomes = []

        async def complete(who, summary):
            arguments = {"task_id": task_id, "status": "success", "outcome": {"summary": summary}}
            result = await who.client.call_tool("complete_task", arguments, raise_on_error=False)
            outcomes.append((summary, json.loads(result.content[0].text)))

        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(complete, agent, f"here {number}")
                tasks.start_soon(complete, second_agent, f"there {number}")
        winners = [summary for summary, answer in outcomes if "error" not in answer]
        assert len(winners) == 1
        assert {answer["code"] for _, answer in outcomes if "error" in answer} == {"VALIDATION_ERROR"}
        assert (await agent.context(workflow_id, "tasks"))["tasks"][0]["summary"] == winners[0]


async def test_a_refused_task_does_not_open_a_finished_workflow(repo):
    async with repo.tracker() as agent:
        workflow_id = await agent.workflow()
        phase_id = await agent.phase(workflow_id)
        await agent.call("complete_phase", phase_id=phase_id, status="failed")
        await agent.end(workflow_id)
        who = {"caller_type": "orchestrator", "name": "t", "goal": "g"}
        error = await agent.error("start_task", workflow_id=workflow_id, phase_id=phase_id, **who)
        assert "FAILED: cannot add tasks" in error["message"]
        assert (await agent.context(workflow_id))["workflow_status"] == "COMPLETED"


async def test_a_task_needs_a_phase_and_a_parent_of_its_own_workflow_and_a_name_for_its_agent(repo):
    async with repo.tracker() as agent:
        workflow_id, phase_id, task_id = await agent.running()
        other_workflow, other_phase, other_task = await agent.running()
        who = {"caller_type": "subagent", "agent_name": "ann", "name": "t", "goal": "g"}
        place = {"workflow_id": workflow_id, "phase_id": phase_id}
        error = await agent.error("start_task", **{**place, "phase_id": other_phase}, **who)
        assert f"belongs to workflow {other_workflow!r}" in error["message"]
        error = await agent.error("start_task", **place, **who, parent_task_id=other_task)
        assert f"belongs to workflow {other_workflow!r}" in error["message"]
        error = await agent.error("start_task", **place, **{**who, "agent_name": None})
        assert error["message"] == "agent_name is required when caller_type is 'subagent'"
        await agent.complete(task_id)
        error = await agent.error("start_task", **place, **who, parent_task_id=task_id)
        assert "is SUCCESS, not IN_PROGRESS" in error["message"]


async def test_a_task_cannot_end_before_the_tasks_below_it(repo):
    async with repo.tracker() as agent:
        workflow_id, phase_id, task_id = await agent.running()
        child = await agent.task(workflow_id, phase_id, parent_task_id=task_id, name="child")
        outcome = {"summary": "s"}
        error = await agent.error("complete_task", task_id=task_id, status="success", outcome=outcome)
        assert child in error["message"]
        assert "(child)" in error["message"]
        await agent.complete(child)
        await agent.complete(task_id)
        error = await agent.error("complete_task", task_id=task_id, status="failed", outcome=outcome)
        assert "is SUCCESS, not IN_PROGRESS" in error["message"]


async def test_what_was_asked_for_of_a_task_is_kept_and_shown_as_far_as_it_is_not_empty(repo):
    async with repo.tracker() as agent:
        workflow_id, _, task_id = await agent.running()
        results = {"achievements": ["a"], "limitations": [], "next_steps": ["n"], "manual_review_needed": True}
        metadata = {"packages_added": ["p"], "tests_status": "not_run"}
        arguments = {"status": "failed", "outcome": {"summary": "s", **results}, "metadata": metadata}
        await agent.call("complete_task", task_id=task_id, **arguments)
        (task,) = (await agent.context(workflow_id, "tasks"))["tasks"]
        assert task["status"] == "FAILED"
        assert task["caller_type"] == "SUBAGENT"
        assert task["achievements"] == ["a"]
        assert "limitations" not in task
        assert task["next_steps"] == ["n"]
        assert task["manual_review_needed"] is True
        assert task["packages_added"] == ["p"]
        assert task["tests_status"] == "NOT_RUN"
