"""Clients that load tools on demand search them: the tool that an agent means has to be among the first."""

from __future__ import annotations

import math
import re
from collections import Counter

import pytest

pytestmark = pytest.mark.anyio

# What clients show of a description.
MAX_DESCRIPTION = 2048

INTENTS = {
    "list the workflows that I can run": "get_workflows",
    "which jobs does this project have": "get_workflows",
    "are there active sessions": "get_workflows",
    "show job files with errors": "get_workflows",
    "what workflows are available": "get_workflows",
    "start a workflow": "start_workflow",
    "begin the release job with a goal": "start_workflow",
    "run a workflow for the user's goal": "start_workflow",
    "nest a workflow under a parent session": "start_workflow",
    "get the first step of a workflow": "start_workflow",
    "report a finished step": "finished_step",
    "I have written the outputs of the step": "finished_step",
    "submit outputs for review": "finished_step",
    "where am I, which step is next": "finished_step",
    "skip the quality review with a reason": "finished_step",
    "fix what the review found and report the step again": "finished_step",
    "abort a workflow that cannot be completed": "abort_workflow",
    "give up and explain why": "abort_workflow",
    "cancel this workflow and return to the one below": "abort_workflow",
    "which reviews does my change need": "get_review_instructions",
    "review changed files": "get_review_instructions",
    "list reviews to run for these files": "get_review_instructions",
    "what review rules are configured": "get_configured_reviews",
    "which rules match this file": "get_configured_reviews",
    "show .deepreview rules with descriptions": "get_configured_reviews",
    "mark a review as passed": "mark_review_as_passed",
    "record that a review found nothing": "mark_review_as_passed",
    "the review passed, do not ask for it again": "mark_review_as_passed",
    "plan work for several agents": "workflow_create",
    "set the tasks of the plan and what depends on what": "workflow_set_plan",
    "pause the whole workflow": "workflow_update_status",
    "run at most three tasks in parallel": "workflow_set_parallelism",
    "how much of the plan is done": "workflow_progress",
    "which tasks can be started now": "workflow_next_tasks",
    "find a task that I can claim": "task_get_available",
    "claim a task": "task_claim",
    "give a task back that I cannot finish": "task_release",
    "mark my task as completed with its outcome": "task_update_status",
    "write down how I will do the task": "task_set_plan",
    "the plan of the task was wrong, make a new one": "task_replan",
    "record progress on a task in between": "checkpoint_add",
    "show the checkpoints of a task": "checkpoint_list",
    "I have lost my context, what was my task": "task_load_context",
    "what does this task wait for": "task_check_dependencies",
    "make a git worktree for a task": "workspace_create",
    "merge a workspace when its branch is done": "workspace_update",
    "register myself as a worker": "agent_register",
    "tell that I am still alive": "agent_heartbeat",
    "which agents are online": "agent_list",
    "sign off, I am done working": "agent_unregister",
    "send a message to another agent": "message_send",
    "tell all agents something": "message_broadcast",
    "read my unread messages": "message_list",
    "how many unread messages do I have": "message_count_unread",
    "create a workflow from a template": "template_apply",
    "save this plan as a template": "template_create",
    "start tracking the work of subagents": "track_start_workflow",
    "log an architectural decision": "track_log_decision",
    "log a problem and how it was solved": "track_log_issue",
    "log a milestone with its progress": "track_log_milestone",
    "begin a phase before launching subagents": "track_start_phase",
    "end the phase": "track_complete_phase",
    "which files have changed since my task began": "track_complete_task",
    "what waits for a human decision": "track_get_context",
}


def words(text):
    return [_stem(word) for word in re.findall(r"[a-z]+", text.lower())]


def _stem(word):
    return re.sub(r"(?:ies|es|s|ed|ing)$", "", word) if len(word) > 4 else word


def ranking(query, documents, k=1.5, b=0.75):
    """Rank documents by Okapi BM25, as clients do."""
    counts = {name: Counter(words(text)) for name, text in documents.items()}
    average = sum(sum(count.values()) for count in counts.values()) / len(counts)

    def score(name):
        total = 0.0
        for word in words(query):
            having = sum(word in count for count in counts.values())
            weight = math.log(1 + (len(counts) - having + 0.5) / (having + 0.5))
            frequency, length = counts[name][word], sum(counts[name].values())
            total += weight * frequency * (k + 1) / (frequency + k * (1 - b + b * length / average))
        return total

    return sorted(documents, key=score, reverse=True)


@pytest.fixture
async def tools(project, monkeypatch):
    """The tools of everything that is installed."""
    monkeypatch.delenv("DEEPWORK_NO_PLUGINS")
    async with project.agent() as agent:
        return {tool.name: tool for tool in await agent.client.list_tools()}


async def test_typical_intents_find_their_tool_among_the_first(tools):
    documents = {
        name: " ".join([name, tool.title or "", tool.description, *tool.input_schema["properties"]])
        for name, tool in tools.items()
    }
    # Of many tools a client loads about five; of few the right one has to be nearer to the top.
    first = min(5, len(documents) // 2)
    missed = {
        intent: ranking(intent, documents)
        for intent, name in INTENTS.items()
        if name in documents and name not in ranking(intent, documents)[:first]
    }
    assert missed == {}


async def test_every_description_is_shown_whole(tools):
    assert {
        name: len(tool.description) for name, tool in tools.items() if len(tool.description) > MAX_DESCRIPTION
    } == {}
