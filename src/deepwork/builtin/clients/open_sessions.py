"""What is open, for an agent that has forgotten it."""

from __future__ import annotations

from collections.abc import Sequence

from deepwork.models.standing import Head
from deepwork.text import visible_lines

# About 1,500 tokens.
MAX_CHARACTERS = 6_000
LISTED = 10
_LEAD = "You are in the middle of this workflow of deepwork. Go on with it."


def what_is_open(own: Sequence[Head], others: Sequence[Head], resume: str) -> str:
    """Tell the own sessions with the resume text of the last one, and of the others a line each, as much as fits."""
    lines = [_line(session) for session in others[:LISTED]]
    if len(others) > LISTED:
        lines.append(f"- and {len(others) - LISTED} more; `deepwork sessions list` shows them")
    listing = "\n".join(
        [
            "Open in this project, started earlier or by another agent; leave them alone unless the user asks for one:",
            *lines,
        ]
    )
    parts = [listing] if lines else []
    room = MAX_CHARACTERS - sum(map(len, parts)) - 2
    # The session that was used last comes with everything, those below it on the stack with where they are.
    for session in reversed(own):
        text = reminder(session)
        if session is own[-1] and resume:
            text = _cut(visible_lines(f"{_LEAD}\n\n{resume}"), room - 2, session)
        if len(text) + 2 <= room:
            parts.insert(0, text)
            room -= len(text) + 2
    return "\n\n".join(parts)


def _cut(text: str, room: int, session: Head) -> str:
    """Return as many lines of a text as there is room for; the last then says how to get the rest."""
    if len(text) <= room:
        return text
    call = f"finished_step(session_id={session.session_id!r}, step_id='?', outputs={{}})"
    note = f"\n\n[Cut here; {call} tells what the step needs.]"
    room -= len(note)
    return text[: max(text.rfind("\n", 0, room), room // 2)] + note


def reminder(session: Head) -> str:
    """Remind an agent of the open step of a session."""
    where = f"step {session.step_id!r}" + (f" ({session.position})" if session.position else "")
    return (
        f"The workflow {session.workflow} of deepwork is not finished: it is at {where}, session "
        f"{session.session_id}. Goal: {session.goal}\n"
        f"Go on with that step and report it with finished_step(session_id={session.session_id!r}, "
        f"step_id={session.step_id!r}, outputs={{...}}); step_id='?' with outputs={{}} tells what it needs. "
        "abort_workflow ends a workflow that cannot be completed. If you wait for the user's answer, end your turn "
        "again: this is said once for each step."
    )


def _line(session: Head) -> str:
    waits = ", waits for a person" if session.waits_for_person else ""
    return f"- {session.session_id}  {session.workflow}, step {session.step_id!r}{waits}: {session.goal}"
