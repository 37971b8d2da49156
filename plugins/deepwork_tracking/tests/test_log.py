"""Decisions, issues and milestones of tasks."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.anyio


async def test_decisions_issues_and_milestones_are_kept_also_of_a_task_that_has_ended(shared):
    async with shared.tracker() as agent:
        workflow_id, _, task_id = await agent.running()
        await agent.complete(task_id)
        decision = await agent.call(
            "log_decision",
            task_id=task_id,
            category="library_choice",
            question="q",
            options_considered=["a", "b"],
            chosen="a",
            reasoning="r",
        )
        issue = {"task_id": task_id, "description": "d", "resolution": "r"}
        await agent.call("log_issue", **issue, type="bug_encountered")
        blocker = await agent.call("log_issue", **issue, type="documentation_gap", requires_human_review=True)
        for progress in (33, 66.5, None):
            more = {"progress": progress} if progress else {"metadata": {"b": 1, "a": [True, "é"]}}
            await agent.call("log_milestone", task_id=task_id, message="m", **more)
        context = await agent.context(workflow_id, "decisions", "milestones", "blockers")
    assert decision["task_id"] == task_id
    whose = {"task_id": task_id, "task_name": "t", "agent_name": "ann"}
    assert context["decisions"] == [
        {
            "id": decision["decision_id"],
            **whose,
            "category": "LIBRARY_CHOICE",
            "question": "q",
            "options_considered": ["a", "b"],
            "chosen": "a",
            "reasoning": "r",
            "trade_offs": None,
            "created_at": decision["created_at"],
        }
    ]
    assert context["blockers"] == [
        {
            "id": blocker["issue_id"],
            **whose,
            "type": "DOC_GAP",
            "description": "d",
            "resolution": "r",
            "created_at": blocker["created_at"],
        }
    ]
    assert context["has_blockers"] is True
    assert [milestone["progress"] for milestone in context["milestones"]] == [None, 66.5, 33]
    assert json.dumps(context["milestones"][0]["metadata"]) == '{"b": 1, "a": [true, "\\u00e9"]}'
