"""`deepwork status`: what is open, where it stands, and what waits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from deepwork.api import Project, project_at
from deepwork.commands.options import json_option, path_option
from deepwork.commands.terminal import say, say_json, say_text
from deepwork.models.standing import Head
from deepwork.text import no_agent

if TYPE_CHECKING:
    from deepwork.ports.inbox import InboxContents


@click.command(epilog="Example of a status line: deepwork status --statusline --path /projects/demo")
@path_option
@click.option(
    "--statusline", is_flag=True, help="Print one line for the status line of a client; nothing if nothing is open."
)
@json_option
def status(root: str, statusline: bool, as_json: bool) -> None:
    """Show what is open in this project, where it stands, and what waits for a person."""
    project = project_at(root)
    sessions = project.standings().open()
    if statusline and not as_json:
        if sessions:
            say(_short(sessions))
        return
    waiting = _waiting_count(project)
    if as_json:
        say_json({"sessions": [_facts(session) for session in sessions], "inbox": {"count": waiting}})
        return
    for session in sessions:
        _show(session)
    if not sessions:
        say("Nothing is open.", err=True)
    if waiting:
        say(f"{waiting:,} {'thing waits' if waiting == 1 else 'things wait'} for a person: deepwork inbox")


def _facts(session: Head) -> dict[str, object]:
    return {
        "session_id": session.session_id,
        "workflow": session.workflow,
        "step_id": session.step_id,
        "goal": session.goal,
        "updated_at": session.updated_at,
        "position": session.position,
        "waits_for_person": session.waits_for_person,
        "review": _review(session) or None,
        "last_call_at": session.standing.last_call_at if session.standing else None,
        "gone_at": (session.standing.gone_at or None) if session.standing else None,
    }


def _waiting_count(project: Project) -> int:
    """Return how many waiting items are free, as far as every source can tell.

    Raises:
        DeepWorkError: The project's configuration cannot be used.
    """
    import anyio

    from deepwork.commands.person import at_terminal
    from deepwork.programs.stdout import stdout_on_stderr

    async def look() -> InboxContents:
        try:
            with stdout_on_stderr():  # sources are code of plugins
                return await project.inbox().items(at_terminal())
        finally:
            await project.close()

    contents = anyio.run(look)
    for failure in contents.failures:
        say_text(f"{failure.source} cannot say what waits: {failure.error}", "Note: ", err=True)
    return sum(item.held_by is None for item in contents.items) + contents.more


def _show(session: Head) -> None:
    remark = f"  {text}" if (text := _remark(session)) else ""
    where = f"{session.step_id} ({session.position})" if session.position else session.step_id
    say(f"{session.session_id}  {session.workflow} at {where}{remark}: {session.goal}")


def _remark(session: Head) -> str:
    """Return how the last review of a session's step has ended, and why it does not go on, if that can be seen."""
    if session.waits_for_person:
        return "; ".join(filter(None, (_review(session), "waits for a person")))
    standing = session.standing
    absence = no_agent(standing.last_call_at, standing.gone_at, datetime.now(UTC)) if standing else ""
    return "; ".join(filter(None, (_review(session), absence)))


def _review(session: Head) -> str:
    return session.standing.review if session.standing else ""


def _short(sessions: list[Head]) -> str:
    first = sessions[0]
    waiting = sum(session.waits_for_person for session in sessions)
    more = f" +{len(sessions) - 1}" if len(sessions) > 1 else ""
    waits = f" ({remark.replace('a person', 'you')})" if (remark := _remark(first)) else ""
    others = f" ({waiting} wait for you)" if waiting and not first.waits_for_person else ""
    return f"{first.workflow} @ {first.step_id}{waits}{more}{others}"
