"""The 43 tools, as agents see them: the function of each, and the subsets that they belong to.

A tool is a function in the module of its noun: its parameters are the arguments, its docstring the description.
Parameters before the `/` are not for agents: a function that takes a transaction is run in one; a function that takes
the database, the call and its request runs several, with git between.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from deepwork.api import PluginContext, ToolCall, ToolSet, ToolSpec
from deepwork_orchestration import (
    agents,
    checkpoints,
    claims,
    context,
    departures,
    dependencies,
    messages,
    progress,
    repositories,
    tasks,
    templates,
    workflows,
    workspace_folders,
    workspaces,
)
from deepwork_orchestration.arguments import KEEP, MAX_BYTES
from deepwork_orchestration.database import PlanDatabase, Request, check_storable
from deepwork_orchestration.errors import invalid_input
from deepwork_orchestration.opening import open_database

INSTRUCTIONS = (
    "Plans: a coordinator calls workflow_create and workflow_set_plan. A worker calls agent_register, then loops: "
    "task_get_available, task_claim, task_load_context, task_update_status planning, in_progress, completed. Record "
    "progress with checkpoint_add; after losing your context, call task_load_context. Name your agent_id in every call "
    "that takes one."
)


def _tool(fn: Callable[..., Any], title: str, **hints: Any) -> ToolSpec:
    return ToolSpec(fn.__name__, fn, title, **{"nullable": True, "repeatable": True, **hints})


_reads = partial(_tool, read_only=True, idempotent=True, repeatable=False)

TOOLS = (
    _tool(workflows.workflow_create, "Create a workflow"),
    _reads(workflows.workflow_get, "Get a workflow"),
    _reads(workflows.workflow_list, "List workflows"),
    _tool(workflows.workflow_set_plan, "Set the plan"),
    _tool(workflows.workflow_update_status, "Update a workflow's status"),
    _tool(workflows.workflow_set_parallelism, "Set parallelism", idempotent=True),
    _reads(tasks.task_get, "Get a task"),
    _tool(tasks.task_set_plan, "Plan a task", idempotent=True),
    _tool(tasks.task_update_status, "Update a task's status"),
    _tool(tasks.task_replan, "Replan a task"),
    _tool(tasks.checkpoint_add, "Add a checkpoint"),
    _reads(checkpoints.checkpoint_list, "List checkpoints"),
    _reads(context.task_load_context, "Load a task's context"),
    _reads(workflows.workflow_get_summary, "Summarize a workflow"),
    _reads(progress.workflow_next_tasks, "List next tasks"),
    _reads(progress.workflow_progress, "Show progress"),
    _reads(dependencies.task_check_dependencies, "Check dependencies"),
    _tool(workspace_folders.workspace_create, "Create a workspace"),
    _tool(workspace_folders.workspace_update, "Update a workspace", destructive=True),
    _reads(workspaces.workspace_list, "List workspaces"),
    _tool(workspaces.task_assign_workspace, "Assign a workspace", idempotent=True),
    _tool(repositories.repository_register, "Register a repository", idempotent=True),
    _reads(repositories.repository_list, "List repositories"),
    _reads(repositories.repository_get, "Get a repository", output="json"),
    _tool(templates.template_create, "Create a template"),
    _reads(templates.template_list, "List templates"),
    _tool(templates.template_apply, "Apply a template"),
    _tool(agents.agent_register, "Register an agent"),
    _tool(agents.agent_heartbeat, "Send a heartbeat", idempotent=True),
    _tool(departures.agent_update, "Update an agent", idempotent=True),
    _reads(agents.agent_get, "Get an agent"),
    _reads(agents.agent_list, "List agents"),
    _tool(departures.agent_unregister, "Unregister an agent", idempotent=True),
    _tool(claims.task_claim, "Claim a task", idempotent=True),
    _tool(claims.task_release, "Release a task"),
    _reads(claims.task_get_available, "List available tasks"),
    _tool(messages.message_send, "Send a message"),
    _tool(messages.message_broadcast, "Broadcast a message"),
    _reads(messages.message_list, "List messages"),
    _tool(messages.message_get, "Read a message", idempotent=True, repeatable=False),
    _tool(messages.message_mark_read, "Mark messages as read", idempotent=True),
    _tool(messages.message_archive, "Archive messages", idempotent=True),
    _reads(messages.message_count_unread, "Count unread messages"),
)

ALL = tuple(tool.name for tool in TOOLS)
WORKER = (
    "agent_register",
    "agent_heartbeat",
    "agent_unregister",
    "task_get_available",
    "task_claim",
    "task_release",
    "task_load_context",
    "task_get",
    "task_set_plan",
    "task_update_status",
    "task_replan",
    "checkpoint_add",
    "message_send",
    "message_list",
    "message_get",
)
# Those that read and take no agent.
OBSERVER = tuple(
    tool.name for tool in TOOLS if tool.read_only and "agent_id" not in inspect.signature(tool.fn).parameters
)


def tool_set(context: PluginContext) -> ToolSet:
    """Make the tools for a project."""
    database = open_database(context)
    return ToolSet(
        name="orchestration",
        instructions=INSTRUCTIONS,
        subsets={"coordinator": ALL, "worker": WORKER, "observer": OBSERVER},
        tools=[replace(tool, run=partial(_run, database, tool)) for tool in TOOLS],
    )


async def _run(database: PlanDatabase, tool: ToolSpec, call: ToolCall, arguments: Mapping[str, Any]) -> Any:
    """Run the function of a tool in a transaction, or let it run several."""
    values = dict(arguments)
    request_id = values.pop("request_id", None)
    plain = {name: _plain(value) for name, value in values.items() if value is not KEEP}
    check_storable(plain)
    request = _request(tool.name, request_id, plain)
    if inspect.iscoroutinefunction(tool.fn):
        return await tool.fn(database, call, request, **values)
    if tool.read_only:
        return await database.read(call, lambda transaction: tool.fn(transaction, **values))
    return await database.write(call, lambda transaction: tool.fn(transaction, **values), request)


def _request(tool: str, request_id: str | None, arguments: Mapping[str, Any]) -> Request | None:
    if request_id is None:
        return None
    check_storable({"request_id": request_id})
    if len(request_id.encode()) > MAX_BYTES:
        raise invalid_input("request_id", f"may have {MAX_BYTES:,} bytes, not {len(request_id.encode()):,}")
    return Request(tool, request_id, arguments)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_unset=True) if isinstance(value, BaseModel) else value
