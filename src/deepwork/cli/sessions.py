"""`deepwork sessions`, and its command `list`, which imports the store only where it has to."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from deepwork.cli.extended import ExtendedGroup
from deepwork.commands.options import NEWEST, json_option, path_option
from deepwork.commands.terminal import say, say_json
from deepwork.project.heads import newest_heads
from deepwork.text import age, no_agent, paused

if TYPE_CHECKING:
    from deepwork.models.sessions import SessionStatus
    from deepwork.models.standing import Standing
    from deepwork.ports.state_store import StateStore

STATUSES = ("active", "completed", "aborted")


class SessionCommands(ExtendedGroup):
    """Names `list` first, which most people look for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List all commands by name, `list` before the others."""
        return sorted(super().list_commands(ctx), key=lambda name: (name != "list", name))


@click.group(
    cls=SessionCommands, epilog="Example: deepwork sessions resume-text 3f2a  (the beginning of an id is enough)"
)
def sessions() -> None:
    """Show, verify, abort, reopen or archive the sessions of this project."""


class Listing(NamedTuple):
    """What a list shows: sessions, where each stands as far as that is known, and damaged files."""

    summaries: list[dict[str, Any]]
    standings: dict[str, Standing | None]
    damaged: list[str]


@sessions.command("list")
@path_option
@click.option("--all", "everything", is_flag=True, help=f"All sessions, not the {NEWEST} newest.")
@click.option("--status", type=click.Choice(STATUSES), help="Only sessions with this status.")
@click.option("--archived", is_flag=True, help="The sessions that `clean` has archived, instead.")
@json_option
def list_sessions(root: str, everything: bool, status: str | None, archived: bool, as_json: bool) -> None:
    """List sessions, the last changed first."""
    summaries, standings, damaged = _listing(root, sys.maxsize if everything else NEWEST, status, archived=archived)
    if as_json:
        say_json({"sessions": summaries, "damaged": damaged})
        return
    now = datetime.now(UTC)
    for summary in summaries:
        name = f"{summary['job_name']}/{summary['workflow_name']}"
        when = f"{age(summary['updated_at'], now)} ago"
        goal = " ".join(summary["goal"].split())[:60]
        standing = standings.get(summary["session_id"])
        place = ", ".join(filter(None, [summary["step_id"], standing.position if standing else None]))
        at = f" at {place}" if summary["status"] != "completed" else ""
        remark = _remark(standing, now) if standing and summary["status"] == "active" else ""
        say(f"{summary['session_id']}  {summary['status']:9}  {when:>10}  {name}{at}{remark}: {goal}")
    for name in damaged:
        say(f"damaged   {name}")
    if not (summaries or damaged):
        say("No sessions.", err=True)


def _remark(standing: Standing, now: datetime) -> str:
    """Return why an active session does not go on, if that can be seen."""
    pause = paused(standing.pause.until, standing.pause.cause, now) if standing.pause else ""
    text = "waits for a person" if standing.waits else pause or no_agent(standing.last_call_at, standing.gone_at, now)
    return f"  {text}" if text else ""


def _listing(root: str, limit: int, status: str | None, *, archived: bool) -> Listing:
    """List the files of the store `json`, or ask any other store."""
    if not archived and limit == NEWEST:
        heads = newest_heads(Path(os.path.realpath(root)), os.environ, status=status, limit=limit)
        if heads is not None:
            rows = [{name: value for name, value in vars(head).items() if name != "standing"} for head in heads]
            return Listing(rows, {head.session_id: head.standing for head in heads}, [])
    return _stored(root, limit, status, archived=archived)


def _stored(root: str, limit: int, status: str | None, *, archived: bool) -> Listing:
    from deepwork.models.sessions import SessionStatus
    from deepwork.project.unopened import project_at

    find = _find_archived if archived else _find
    return project_at(root).with_store(lambda store: find(store, SessionStatus(status) if status else None, limit))


async def _find(store: StateStore, status: SessionStatus | None, limit: int) -> Listing:
    from deepwork.sessions.manager import standing_in

    summaries = await store.find(status=status, limit=limit)
    standings = {summary.session_id: await standing_in(store, summary) for summary in summaries}
    return Listing([summary.model_dump(mode="json") for summary in summaries], standings, await store.damaged())


async def _find_archived(store: StateStore, status: SessionStatus | None, limit: int) -> Listing:
    archived = [summary for summary in await store.archived() if status in (None, summary.status)]
    return Listing([summary.model_dump(mode="json") for summary in archived[:limit]], {}, [])
