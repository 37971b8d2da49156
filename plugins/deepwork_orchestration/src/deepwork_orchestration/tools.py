"""The 43 tools, as agents see them: which function each is, and which belong to the subsets.

A tool is a function in the module of its group: its parameters are the arguments, its docstring the description. A
function that takes an `Act` is run in a transaction; one that takes a `Desk` and a call runs several, with git between.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from deepwork.api import PluginContext, ToolCall, ToolSet, ToolSpec
from deepwork_orchestration import (
    agents,
    checkpoints,
    context,
    messages,
    orchestration,
    repositories,
    tasks,
    templates,
    workflows,
    workspaces,
)
from deepwork_orchestration.arguments import KEEP, RequestId
from deepwork_orchestration.desk import Desk, Request, check_storable, open_desk

# Null is allowed, and the schema does not say so.
NULL: Any = SkipJsonSchema[None]  # type: ignore[misc]  # pydantic's subscript, which is no generic class for mypy

INSTRUCTIONS = (
    "Plans: a coordinator calls workflow_create and workflow_set_plan. A worker calls agent_register, then loops: "
    "task_get_available, task_claim, task_load_context, task_update_status planning, in_progress, completed. Record "
    "progress with checkpoint_add; after losing your context, call task_load_context. Name your agent_id in every call "
    "that takes one."
)


class Tool(NamedTuple):
    """A tool and what clients are told of it."""

    fn: Callable[..., Any]
    title: str
    read_only: bool = False
    idempotent: bool = False
    destructive: bool = False
    repeatable: bool = True

    @property
    def name(self) -> str:
        return self.fn.__name__


reads = partial(Tool, read_only=True, idempotent=True, repeatable=False)

TOOLS = (
    Tool(workflows.workflow_create, "Create a workflow"),
    reads(workflows.workflow_get, "Get a workflow"),
    reads(workflows.workflow_list, "List workflows"),
    Tool(workflows.workflow_set_plan, "Set the plan"),
    Tool(workflows.workflow_update_status, "Update a workflow's status"),
    Tool(workflows.workflow_set_parallelism, "Set parallelism", idempotent=True),
    reads(tasks.task_get, "Get a task"),
    Tool(tasks.task_set_plan, "Plan a task", idempotent=True),
    Tool(tasks.task_update_status, "Update a task's status"),
    Tool(tasks.task_replan, "Replan a task"),
    Tool(checkpoints.checkpoint_add, "Add a checkpoint"),
    reads(checkpoints.checkpoint_list, "List checkpoints"),
    reads(context.task_load_context, "Load a task's context"),
    reads(workflows.workflow_get_summary, "Summarize a workflow"),
    reads(orchestration.workflow_next_tasks, "List next tasks"),
    reads(orchestration.workflow_progress, "Show progress"),
    reads(orchestration.task_check_dependencies, "Check dependencies"),
    Tool(workspaces.workspace_create, "Create a workspace"),
    Tool(workspaces.workspace_update, "Update a workspace", destructive=True),
    reads(workspaces.workspace_list, "List workspaces"),
    Tool(workspaces.task_assign_workspace, "Assign a workspace", idempotent=True),
    Tool(repositories.repository_register, "Register a repository", idempotent=True),
    reads(repositories.repository_list, "List repositories"),
    reads(repositories.repository_get, "Get a repository"),
    Tool(templates.template_create, "Create a template"),
    reads(templates.template_list, "List templates"),
    Tool(templates.template_apply, "Apply a template"),
    Tool(agents.agent_register, "Register an agent"),
    Tool(agents.agent_heartbeat, "Send a heartbeat", idempotent=True),
    Tool(agents.agent_update, "Update an agent", idempotent=True),
    reads(agents.agent_get, "Get an agent"),
    reads(agents.agent_list, "List agents"),
    Tool(agents.agent_unregister, "Unregister an agent", idempotent=True),
    Tool(workspaces.task_claim, "Claim a task", idempotent=True),
    Tool(agents.task_release, "Release a task"),
    reads(agents.task_get_available, "List available tasks"),
    Tool(messages.message_send, "Send a message"),
    Tool(messages.message_broadcast, "Broadcast a message"),
    reads(messages.message_list, "List messages"),
    Tool(messages.message_get, "Read a message", idempotent=True, repeatable=False),
    Tool(messages.message_mark_read, "Mark messages as read", idempotent=True),
    Tool(messages.message_archive, "Archive messages", idempotent=True),
    reads(messages.message_count_unread, "Count unread messages"),
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
    desk = open_desk(context)
    return ToolSet(
        name="orchestration",
        instructions=INSTRUCTIONS,
        subsets={"coordinator": ALL, "worker": WORKER, "observer": OBSERVER},
        tools=[
            ToolSpec(
                tool.name,
                _served(desk, tool),
                title=tool.title,
                read_only=tool.read_only,
                idempotent=tool.idempotent,
                destructive=tool.destructive,
                output="json" if tool.fn is repositories.repository_get else "object",
            )
            for tool in TOOLS
        ],
    )


def _served(desk: Desk, tool: Tool) -> Callable[..., Any]:
    """Make the function that the server calls: null means left out, and a `request_id` makes a call repeatable."""
    own = list(inspect.signature(tool.fn).parameters.values())
    hints = get_type_hints(tool.fn, include_extras=True)
    arguments = own[2:] if inspect.iscoroutinefunction(tool.fn) else own[1:]
    defaults = {parameter.name: parameter.default for parameter in arguments}

    async def run(call: ToolCall, **values: Any) -> Any:
        plain = {name: _plain(value) for name, value in values.items() if value is not KEEP}
        check_storable(plain)
        request_id = values.pop("request_id", None)
        plain.pop("request_id", None)
        # A parameter whose default is KEEP is cleared by null.
        chosen = {
            name: defaults[name] if value is None and defaults[name] is not KEEP else value
            for name, value in values.items()
        }
        request = Request(tool.name, request_id, plain) if request_id is not None else None
        if inspect.iscoroutinefunction(tool.fn):
            return await tool.fn(desk, call, request=request, **chosen)
        if tool.read_only:
            return await desk.read(call, lambda act: tool.fn(act, **chosen))
        return await desk.write(call, lambda act: tool.fn(act, **chosen), request)

    annotations = {parameter.name: _annotation(parameter, hints[parameter.name]) for parameter in arguments}
    annotations.pop("request", None)
    if tool.repeatable:
        annotations["request_id"] = _left_out(RequestId | None, None)
    signed: Any = run
    signed.__name__ = tool.name
    signed.__doc__ = inspect.getdoc(tool.fn)
    signed.__annotations__ = {"call": ToolCall, **annotations}
    signed.__signature__ = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
            for name, annotation in signed.__annotations__.items()
        ]
    )
    return run


def _annotation(parameter: inspect.Parameter, hint: Any) -> Any:
    if parameter.default is parameter.empty:
        return hint
    if parameter.default is KEEP:
        return Annotated[hint, Field(default_factory=lambda: KEEP)]
    return _left_out(hint, parameter.default)


def _left_out(hint: Any, default: Any) -> Any:
    """Make a parameter optional: it may be null, of which the schema says nothing, because it means left out."""
    field = Field(default_factory=lambda: None) if default is None else Field(default=default)
    members = [member for member in get_args(hint) if member is not NoneType] if default is None else [hint]
    optional: Any = reduce(or_, [*members, NULL])
    return Annotated[optional, field]


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_unset=True) if isinstance(value, BaseModel) else value
