"""`deepwork plan`: how people look at plans, and carry them from one database to another."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import anyio
import click

from deepwork.api import Answerer, PluginContext, ToolCall, open_context
from deepwork.commands.options import check_text, json_option, path_option
from deepwork.commands.person import at_terminal
from deepwork.commands.terminal import Styled, say, say_json
from deepwork.errors import ConfigError
from deepwork.text import age, one_line, quoted_lines, visible
from deepwork_orchestration import (
    agents,
    dependencies,
    interventions,
    mermaid,
    messages,
    plan_file,
    progress,
    removed,
    tasks,
    views,
    workflows,
)
from deepwork_orchestration.graph import grouped
from deepwork_orchestration.limits import omitted
from deepwork_orchestration.models import Agent, Mapped, Task, Workflow
from deepwork_orchestration.names import SYSTEM, body_text, shown_agent
from deepwork_orchestration.opening import open_database
from deepwork_orchestration.sql import Filters
from deepwork_orchestration.transaction import PlanTransaction

MAX_DEPTH = 100

ResultT = TypeVar("ResultT")


@click.group(epilog="Example: deepwork plan show wf_0123456789ab")
def plan() -> None:
    """Look at the plans of agents, and carry them to another database."""


@plan.command()
@click.argument("workflow_id", metavar="[PLAN]", required=False)
@path_option
@json_option
def show(workflow_id: str | None, root: str, *, as_json: bool) -> None:
    """Show a plan and its progress, or list all plans."""
    if workflow_id is None:
        _list(root, as_json=as_json)
        return

    def query(transaction: PlanTransaction) -> Mapped:
        workflow = workflows.workflow_get(transaction, workflow_id, include_tasks=True)
        return {"workflow": workflow, "progress": progress.workflow_progress(transaction, workflow_id)}

    answer = _read(root, query)
    if as_json:
        say_json(answer)
        return
    workflow, counts = answer["workflow"], answer["progress"]
    completed = counts["total_tasks"] - counts["estimated_remaining"]
    say(Styled(f"{workflow['name']}  ({workflow['id']})", bold=True))
    say(f"{workflow['status']}, {completed} of {counts['total_tasks']} tasks done")
    if workflow["plan_summary"]:
        say(workflow["plan_summary"])
    _table(("task", "status", "seq", "group", "name"), [_task_row(task) for task in workflow["tasks"]])


def _list(root: str, *, as_json: bool) -> None:
    answer = _read(root, lambda transaction: workflows.workflow_list(transaction, limit=1000))
    if as_json:
        say_json(answer)
        return
    rows = [(row["id"], row["status"], _ago(row["updated_at"]), row["name"]) for row in answer["workflows"]]
    _table(("plan", "status", "changed", "name"), rows, "No plans.")


@plan.command("next")
@click.argument("workflow_id", metavar="PLAN")
@path_option
@json_option
def next_tasks(workflow_id: str, root: str, *, as_json: bool) -> None:
    """List the tasks that can be started now."""
    answer = _read(root, lambda transaction: progress.workflow_next_tasks(transaction, workflow_id))
    if as_json:
        say_json(answer)
        return
    rows = [_task_row(task) for task in answer["tasks"]]
    _table(("task", "status", "seq", "group", "name"), rows, "Nothing can be started now.")
    say(f"{answer['free_slots']} of {answer['max_parallel']} places are free.", err=True)


@plan.command()
@click.argument("task_id", metavar="TASK")
@path_option
@json_option
def why_blocked(task_id: str, root: str, *, as_json: bool) -> None:
    """Show what a task waits for, and what that waits for in turn."""

    def query(transaction: PlanTransaction) -> Mapped:
        task = tasks.task_get(transaction, task_id)
        names = ("id", "name", "status", "assigned_agent_id")
        return {**{name: task[name] for name in names}, "waits_for": _waits_for(transaction, task_id, set())}

    answer = _read(root, query)
    if as_json:
        say_json(answer)
        return
    say(Styled(f"{answer['name']}  ({answer['id']})  {answer['status']}", bold=True))
    if not answer["waits_for"]:
        say("It waits for no other task.")
    _say_tree(answer["waits_for"], 1)


def _waits_for(transaction: PlanTransaction, task_id: str, seen: set[str], depth: int = 0) -> list[Mapped] | None:
    """Return the open dependencies of a task with theirs; what was shown before is not opened again.

    None stands for levels that are too deep to be read.
    """
    if depth > MAX_DEPTH:
        return None
    open_tasks = dependencies.task_check_dependencies(transaction, task_id)["pending"]
    nodes = []
    for task in open_tasks:
        is_new = task["id"] not in seen
        seen.add(task["id"])
        holder = transaction.get(Task, task["id"]).assigned_agent_id
        waits_for = _waits_for(transaction, task["id"], seen, depth + 1) if is_new else []
        nodes.append({**task, "assigned_agent_id": holder, "waits_for": waits_for})
    return nodes


def _say_tree(nodes: Sequence[Mapped], depth: int) -> None:
    for node in nodes:
        holder = f", held by {node['assigned_agent_id']}" if node["assigned_agent_id"] else ""
        say(f"{'  ' * depth}{node['name']}  ({node['id']})  {node['status']}{holder}")
        if node["waits_for"] is None:
            say(f"{'  ' * (depth + 1)}…")
        else:
            _say_tree(node["waits_for"], depth + 1)


@plan.command("tasks")
@click.argument("workflow_id", metavar="PLAN")
@path_option
@json_option
def list_tasks(workflow_id: str, root: str, *, as_json: bool) -> None:
    """List the tasks of a plan with their holders and outcomes."""

    def query(transaction: PlanTransaction) -> list[Mapped]:
        transaction.get(Workflow, workflow_id)
        of_plan = tasks.of_workflow(transaction, workflow_id)
        failed = [task.id for task in of_plan if task.status == "failed"]
        culprits = views.ended_by(transaction.stored, workflow_id, failed)
        return [{**task.reply(), "failed_by": culprits.get(task.id)} for task in of_plan]

    answer = _read(root, query)
    if as_json:
        say_json({"tasks": answer})
        return
    rows = [(*_task_row(task)[:3], _worker(task), task["name"], _said(task)) for task in answer]
    _table(("task", "status", "seq", "agent", "name", "outcome"), rows, "No tasks.")


def _worker(task: Mapped) -> str:
    failed_by = task["failed_by"]
    return f"{failed_by['name']} ({failed_by['id']})" if failed_by else task["assigned_agent_id"] or ""


@plan.command("agents")
@path_option
@json_option
def list_agents(root: str, *, as_json: bool) -> None:
    """List the agents and what each works on."""
    answer = _read(root, _agents)
    if as_json:
        say_json(answer)
        return
    rows = [
        (row["id"], row["status"], row["role"], _ago(row["last_heartbeat"]), row["current_task_id"] or "", _named(row))
        for row in answer["agents"]
    ]
    _table(("agent", "status", "role", "heard of", "task", "name"), rows, "No agents.")


def _agents(transaction: PlanTransaction) -> Mapped:
    listed, left_out = agents.listed(transaction, Filters())
    rows = [{**agent.reply(), "person": agent.is_person, "says_person": agent.says_person} for agent in listed]
    return {"agents": rows, **omitted("agents", left_out)}


def _named(agent: Mapped) -> str:
    return f"{agent['name']} (says that it is a person)" if agent["says_person"] else str(agent["name"])


@plan.command("messages")
@click.argument("workflow_id", metavar="[PLAN]", required=False)
@click.option("--agent", "agent_id", metavar="AGENT", help="Only those that this agent has sent or received.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many.")
@path_option
@json_option
def list_messages(workflow_id: str | None, agent_id: str | None, limit: int, root: str, *, as_json: bool) -> None:
    """List messages, newest first."""
    answer = _read(root, lambda transaction: _messages(transaction, workflow_id, agent_id, limit))
    if as_json:
        say_json({"messages": answer})
        return
    for message in answer:
        sender = shown_agent(message["sender_id"], message["sender_name"]) if message["sender_id"] else SYSTEM
        recipient = shown_agent(message["recipient_id"], message["recipient_name"])
        head = f"{_ago(message['created_at'])}  {sender} -> {recipient}  {message['status']}"
        say(Styled(f"{head}  {one_line(message['subject'] or message['message_type'])}", bold=True))
        click.echo(quoted_lines(body_text(message["body"]), "    "))
    if not answer:
        say("No messages.", err=True)


def _messages(transaction: PlanTransaction, workflow_id: str | None, agent_id: str | None, limit: int) -> list[Mapped]:
    if workflow_id is not None:
        transaction.get(Workflow, workflow_id)
    if agent_id is not None:
        transaction.get(Agent, agent_id)
    newest = messages.about(transaction, workflow_id, agent_id, limit)
    ids = {message.sender_id for message in newest} | {message.recipient_id for message in newest}
    names = {agent_id: transaction.get(Agent, agent_id).name for agent_id in ids if agent_id}
    return [
        {
            **message.reply(),
            "sender_name": names.get(message.sender_id or ""),
            "recipient_name": names[message.recipient_id],
        }
        for message in newest
    ]


@plan.command("pause")
@click.argument("workflow_id", metavar="PLAN")
@click.option("--reason", required=True, metavar="TEXT", help="Why; agents that hold a task of it are told.")
@path_option
@json_option
def pause_plan(workflow_id: str, reason: str, root: str, *, as_json: bool) -> None:
    """Hand out no task of a plan until `unpause`. For people: it needs a terminal."""
    check_text(reason, "--reason")
    _intervene("paused", root, partial(interventions.pause, workflow_id=workflow_id, reason=reason), as_json=as_json)


@plan.command("unpause")
@click.argument("workflow_id", metavar="PLAN")
@click.option("--text", metavar="TEXT", help="What agents that hold a task of it are told besides.")
@path_option
@json_option
def unpause_plan(workflow_id: str, text: str | None, root: str, *, as_json: bool) -> None:
    """Hand out the tasks of a paused plan again. For people: it needs a terminal."""
    if text is not None:
        check_text(text, "--text")
    _intervene("unpaused", root, partial(interventions.unpause, workflow_id=workflow_id, text=text), as_json=as_json)


def _intervene(
    word: str, root: str, act: Callable[[PluginContext, Answerer], Awaitable[Workflow]], *, as_json: bool
) -> None:
    workflow = _within(root, lambda context: act(context, at_terminal()))
    if as_json:
        say_json(workflow.summary())
    else:
        say(f"{word}  {workflow.id}  {workflow.name}")


@plan.command()
@click.argument("workflow_id", metavar="PLAN")
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print a Mermaid flowchart.")
@path_option
@json_option
def graph(workflow_id: str, root: str, *, as_mermaid: bool, as_json: bool) -> None:
    """Show which task waits for which."""
    nodes = _read(root, lambda transaction: _graph(transaction, workflow_id))
    if as_json:
        say_json(nodes)
    elif as_mermaid:
        click.echo(mermaid.flowchart(nodes["tasks"], nodes["dependencies"]))
    else:
        names = {task["id"]: task["name"] for task in nodes["tasks"]}
        needed = grouped((edge["task_id"], names[edge["depends_on_id"]]) for edge in nodes["dependencies"])
        rows = [(task["status"], task["name"], ", ".join(needed.get(task["id"], ()))) for task in nodes["tasks"]]
        _table(("status", "task", "waits for"), rows, "No tasks.")


def _graph(transaction: PlanTransaction, workflow_id: str) -> Mapped:
    transaction.get(Workflow, workflow_id)
    edges = dependencies.edges(transaction, workflow_id)
    return {
        "tasks": [task.brief() for task in tasks.of_workflow(transaction, workflow_id)],
        "dependencies": [{"task_id": task, "depends_on_id": needed} for task, needed in edges],
    }


@plan.command("export")
@click.argument("workflow_ids", metavar="[PLAN]...", nargs=-1)
@path_option
def export_plans(workflow_ids: tuple[str, ...], root: str) -> None:
    """Print plans as JSON, for `deepwork plan import`.

    It has all that was planned and done, but no agents, claims or messages. Without PLAN, it is all plans.
    """
    say_json(_read(root, lambda transaction: plan_file.export_plans(transaction, workflow_ids)))


@plan.command("import")
@click.argument("file", type=click.File("rb"))
@path_option
def import_plans(file: Any, root: str) -> None:
    """Store the plans of a FILE that `plan export` has printed.

    They keep their ids; `-` reads stdin. If one of them is there already, nothing is stored.
    """
    plans = plan_file.read_plans(file.read())

    def change(transaction: PlanTransaction) -> Mapped:
        return plan_file.import_plans(transaction, plans)

    counts = _within(root, lambda context: open_database(context).write(ToolCall(), change))
    say(f"{counts['workflows']} plans with {counts['tasks']} tasks and {counts['templates']} templates stored.")
    under_way = sum(task.status in ("planning", "in_progress", "paused") for task in plans.tasks)
    if under_way:
        say(f"{under_way} tasks were begun and are unclaimed here; task_claim takes one over.", err=True)


@plan.command()
@click.option("--removed", "is_removed", is_flag=True, help="Remove worktrees that were moved aside.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@path_option
def clean(root: str, *, is_removed: bool, yes: bool) -> None:
    """Remove what agents have left, for good.

    With --removed, the worktrees in .deepwork/worktrees/.removed. Shows what would be lost with each, and asks one by
    one.
    """
    if not is_removed:
        raise click.UsageError("nothing is chosen: add --removed")
    if not yes and not _is_terminal():
        raise ConfigError("nothing was removed: stdin is not a terminal", hint="Add --yes to remove them unasked.")
    _within(root, lambda context: _clean(context, yes=yes))


def _is_terminal() -> bool:
    return sys.stdin.isatty()


async def _clean(context: PluginContext, *, yes: bool) -> None:
    places = removed.places(context.project_root)
    git = await open_database(context).git() if places else None
    if git is None:
        say("No worktree was moved aside.", err=True)
        return
    for place in places:
        say(Styled(str(place), bold=True))
        worktree = await removed.look(git, place)
        for line in worktree.reasons or ["everything in it is committed"]:
            say(f"    {worktree.obstacle or line}")
        if worktree.obstacle is None and (yes or click.confirm("Remove it for good?")):
            await removed.remove(git, place)
            say("    removed")


def _read(root: str, query: Callable[[PlanTransaction], ResultT]) -> ResultT:
    return _within(root, lambda context: open_database(context).read(ToolCall(), query))


def _within(root: str, work: Callable[[PluginContext], Awaitable[ResultT]]) -> ResultT:
    async def run() -> ResultT:
        async with open_context("orchestration", root) as context:
            return await work(context)

    return anyio.run(run)


# What is printed.


def _task_row(task: Mapped) -> tuple[str, ...]:
    return task["id"], task["status"], str(task["sequence"]), task["parallel_group"] or "", task["name"]


def _said(task: Mapped) -> str:
    text = str(task["error"] or task["outcome"] or "")
    return " ".join(text.split())[:60]


def _ago(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{age(moment.isoformat(), datetime.now(UTC))} ago"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "No tasks.") -> None:
    """Print rows in columns; without rows, a note on stderr."""
    if not rows:
        say(empty, err=True)
        return
    lines = [[visible(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[column]) for row in lines) for column in range(len(heads))]
    for number, row in enumerate(lines):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        say(Styled(line, bold=True) if number == 0 else line)
