"""`deepwork track`: what agents have recorded, for people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import click

from deepwork.api import open_context
from deepwork.commands.options import json_option, path_option
from deepwork.commands.person import at_terminal
from deepwork.commands.terminal import Styled, say, say_json
from deepwork.text import quoted_lines, visible, visible_lines

if TYPE_CHECKING:
    from deepwork_sql import Transaction
    from deepwork_tracking.database import TrackingDatabase

CommandT = TypeVar("CommandT", bound=Callable[..., object])
T = TypeVar("T")

_COLOURS = {"COMPLETED": "green", "SUCCESS": "green", "FAILED": "red", "IN_PROGRESS": "yellow"}


def _limit(command: CommandT) -> CommandT:
    range_ = click.IntRange(1, 10_000)
    return click.option("--limit", default=50, show_default=True, type=range_, help="At most so many.")(command)


@click.group(epilog="Example: deepwork track show tw_0a1b2c3d4e5f")
def track() -> None:
    """Show what agents have recorded of their work: workflows, phases, tasks, files, decisions, blockers."""


@track.command("list")
@_limit
@path_option
@json_option
def list_(limit: int, root: str, *, as_json: bool) -> None:
    """List tracked workflows, the newest first."""
    from deepwork_tracking.report import list_workflows

    workflows = _read(root, lambda transaction: list_workflows(transaction, limit))
    if as_json:
        say_json({"workflows": workflows})
        return
    for row in workflows:
        phase = f"phase {row['current_phase']}/{row['total_phases']}"
        tasks = f"{row['tasks']['total']} tasks ({row['tasks']['in_progress']} running)"
        blockers = [Styled(f"  {row['blockers']} blockers", "red")] if row["blockers"] else []
        say(
            f"{row['workflow_id']}  ",
            _status(row["workflow_status"]),
            f"  {phase}, {tasks}",
            *blockers,
            "  ",
            Styled(row["workflow_name"], bold=True),
        )
    if not workflows:
        say("No workflows. Agents begin them with the tool start_workflow of the set `tracking`.", err=True)


@track.command()
@click.argument("workflow_id")
@path_option
@json_option
def show(workflow_id: str, root: str, *, as_json: bool) -> None:
    """Show all that was recorded of a workflow.

    That is its phases and tasks, the files of each, decisions, milestones and blockers.
    """
    report = _report(root, workflow_id)
    if as_json:
        say_json(report)
        return
    say(Styled(report["workflow_name"], bold=True), "  ", _status(report["workflow_status"]))
    _indented(report["objective"], 3)
    for phase in report["phase_summary"]:
        say(f"{phase['phase_number']}. {phase['phase_name']}  ", _status(phase["status"]))
        for task in report["tasks"]:
            if task["phase_id"] == phase["phase_id"]:
                _show_task(task)
    for decision in reversed(report["decisions"]):
        _indented(f"decision ({visible(decision['task_name'])}): {decision['question']} {decision['chosen']}", 0)
        _indented(decision["reasoning"], 3)
    for milestone in reversed(report["milestones"]):
        progress = "" if milestone["progress"] is None else f" ({milestone['progress']} %)"
        _indented(f"milestone ({visible(milestone['task_name'])}): {milestone['message']}{progress}", 0)
    _show_blockers(report["blockers"])


@track.command()
@_limit
@path_option
@json_option
def blockers(limit: int, root: str, *, as_json: bool) -> None:
    """List the blockers of all workflows, the oldest first."""
    from deepwork_tracking.context import open_blockers

    issues, total = _read(root, lambda transaction: open_blockers(transaction, limit))
    more = total - len(issues)
    if as_json:
        say_json({"blockers": issues, "more": more})
        return
    _show_blockers(issues)
    if more:
        say(f"and {more:,} more; --limit lists more of them", err=True)
    if not issues:
        say("No blockers.", err=True)


@track.command(epilog="Example: deepwork track resolve iss_0a1b2c3d4e5f --note 'The key is in the vault now'")
@click.argument("issue_id")
@click.option("--by", metavar="NAME", help="Who resolves it (default: the user of this terminal).")
@click.option("--note", metavar="TEXT", help="What was done.")
@path_option
@json_option
def resolve(issue_id: str, by: str | None, note: str | None, root: str, *, as_json: bool) -> None:
    """Mark a blocker as resolved. It is no longer listed, and its workflow keeps who has resolved it and when."""
    from deepwork_tracking import log

    person = at_terminal()
    person.check_person("resolve a blocker")
    who = by or person.user or "a person"
    issue = _run(root, lambda database: log.resolve(database, issue_id, who, note))
    if as_json:
        say_json(issue)
    else:
        say(f"{issue['id']} is resolved by {issue['resolved_by']}.")


@track.command()
@click.argument("workflow_id")
@path_option
@json_option
def export(workflow_id: str, root: str, *, as_json: bool) -> None:
    """Print a Markdown report of a workflow."""
    from deepwork_tracking.report import markdown

    report = _report(root, workflow_id)
    if as_json:
        say_json(report)
    else:
        click.echo(visible_lines(markdown(report)), nl=False)


def _report(root: str, workflow_id: str) -> dict[str, Any]:
    from deepwork_tracking.report import workflow_report

    return _read(root, lambda transaction: workflow_report(transaction, workflow_id))


def _read(root: str, query: Callable[[Transaction], T]) -> T:
    return _run(root, lambda database: database.read(query))


def _run(root: str, work: Callable[[TrackingDatabase], Awaitable[T]]) -> T:
    from deepwork_tracking.database import TrackingDatabase

    async def run() -> T:
        async with open_context("tracking", root) as context:
            return await work(TrackingDatabase(context))

    return anyio.run(run)


def _show_task(task: dict[str, Any]) -> None:
    from deepwork_tracking.report import file_lines

    who = task["agent_name"] or task["caller_type"].lower()
    seconds = "" if task["duration_seconds"] is None else f", {task['duration_seconds']} s"
    say("   ", _status(task["status"]), f"  {task['name']}  ({who}{seconds})  {task['id']}")
    _indented(task["summary"], 6)
    for mark, path in file_lines(task["files_changed"]):
        say(f"      {mark} {path}")
    for warning in (task["verification"] or {}).get("warnings", ()):
        _indented(f"warning: {warning}", 6)


def _show_blockers(blockers: list[dict[str, Any]]) -> None:
    for blocker in blockers:
        say(Styled(f"{blocker['id']}  {blocker['type']}", "red"), f"  {blocker['task_name']}  {blocker['created_at']}")
        _indented(blocker["description"], 3)
        _indented(f"tried: {blocker['resolution']}", 3)


def _indented(text: str | None, width: int) -> None:
    """Print a text that an agent wrote: a line of it as it is, several behind bars, so that none looks like ours."""
    if text and len(text.splitlines()) > 1:
        click.echo(quoted_lines(text, " " * width))
    elif text:
        say(f"{' ' * width}{text}")


def _status(word: str) -> Styled:
    return Styled(word, _COLOURS.get(word))
