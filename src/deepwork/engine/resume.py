"""What an agent that remembers nothing needs to go on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from deepwork.engine.changes import changes_since
from deepwork.models.outputs import KINDS
from deepwork.models.standing import resume_call
from deepwork.paths.folder import Folder
from deepwork.paths.workspace import Workspace
from deepwork.sessions.notes import Entry, entries_of, entries_of_json, open_texts
from deepwork.text import age, labelled, one_line, visible

if TYPE_CHECKING:
    from deepwork.models.sessions import Session, SessionSummary

MAX_CHARACTERS = 8000
LISTED_SESSIONS = 10
GOAL_LENGTH = 80

UNLISTED = (
    "Without a token no sessions are listed here. If you have a session_id, name it: "
    'finished_step(session_id=..., step_id="?", outputs={}) answers where it is. start_workflow begins a new one.'
)


def resume_text(session: Session, workspace: Workspace, *, is_beside_step: bool = False) -> str:
    """Return what is needed to go on; what is too long for a reply is written to a file, and that is named.

    Beside `begin_step` in the same reply, nothing of that is said here.
    """
    from deepwork.sessions.standing import handed_back, open_steps

    document = session.model_dump(mode="json", exclude={"history"})
    for step_id in open_steps(session):
        document["step_progress"][step_id]["handed_back"] = handed_back(session, step_id)
    return _bounded(document, entries_of(session), workspace, is_beside_step=is_beside_step)


def resume_text_of(session: Mapping[str, Any], workspace: Workspace) -> str:
    """Do the same for the JSON of a session, which hooks read without models.

    Raises:
        LookupError, TypeError, AttributeError: It is not as this release writes it.
    """
    return _bounded(session, entries_of_json(session["history"]), workspace)


def _bounded(
    session: Mapping[str, Any], entries: Sequence[Entry], workspace: Workspace, *, is_beside_step: bool = False
) -> str:
    text = _whole_text(session, entries, changes_since(session, workspace), is_beside_step=is_beside_step)
    if len(text) <= MAX_CHARACTERS:
        return text
    path = workspace.state_dir / f"resume_{session['session_id']}.md"
    try:
        workspace.prepare_state_dir()
        with Folder.open(path.parent, inside=workspace.root) as folder:
            folder.replace(path.name, text.encode())
        where = f"It is in {workspace.shown(path)}"
    except OSError as error:
        where = f"It could not be written to {workspace.shown(path)} ({error.strerror}): fix that, then ask again"
    note = f"\n\n[Cut here; read the whole of it before you go on. {where}.]"
    room = MAX_CHARACTERS - len(note)
    return text[: max(text.rfind("\n", 0, room), room // 2)] + note


def _whole_text(session: Mapping[str, Any], entries: Sequence[Entry], changes: str, *, is_beside_step: bool) -> str:
    """Return step, notes, goal, changes, outputs, criteria, instructions as begun, what is completed, and the job."""
    definition, steps = session["definition"], session["step_progress"]
    session_id, step_id = session["session_id"], session["current_step_id"]
    workflow = [[entry] if isinstance(entry, str) else entry for entry in definition["workflow"]["steps"]]
    primary, *others = workflow[session["current_entry_index"]]
    members = [member for member in others if not steps[member]["completed_at"]]
    completed = {name: progress for name, progress in steps.items() if progress["completed_at"]}
    lines = "\n".join(f"- {name}: {json.dumps(progress['outputs'])}" for name, progress in completed.items())
    section = f"## Done\n\n{lines or 'nothing yet'}"
    parts = [
        visible(f"# Resume {session['job_name']}/{session['workflow_name']}, session {session_id}"),
        f"Now at step {step_id!r} (step {session['current_entry_index'] + 1} of {len(workflow)}). When its outputs are "
        f"there, call {report_call(session_id, step_id)}.",
        members_text(primary, members) if others and not is_beside_step else "",
        *open_texts(entries, [step_id, *members]),
        labelled("Goal", session["goal"]),
        changes,
    ]
    if is_beside_step:
        reviews = [_handed_back(session, name) for name in (step_id, *members)]
        return "\n\n".join(part for part in [*parts, *reviews, section] if part)
    parts += _step(session, step_id)
    for member in members:
        parts += [
            f"## Also open in this group: {member!r}\n\n"
            f"Report it before {step_id!r}: {report_call(session_id, member)}.",
            *_step(session, member),
        ]
    job = f"## About the job\n\n{definition['common_job_info']}\n\nJob folder: {visible(definition['job_dir'])}"
    return "\n\n".join(part for part in [*parts, section, job] if part)


def members_text(primary: str, open_members: Sequence[str]) -> str:
    """Describe which steps of a group are open, and that its primary step ends it."""
    if not open_members:
        return f"Of this group only {primary!r} is still open; reporting it ends the group."
    return (
        f"{len(open_members) + 1} steps are to be done at the same time: {', '.join([primary, *open_members])}. "
        f"Reporting {primary!r} ends the group."
    )


def report_call(session_id: str, step_id: str) -> str:
    """Return the call that reports a step."""
    return f"finished_step(session_id={session_id!r}, step_id={step_id!r}, outputs={{...}})"


def active_sessions(summaries: list[SessionSummary], damaged: list[str], now: datetime) -> str:
    """List the sessions that can be resumed, with the call that resumes one, and damaged files."""
    more = f" and {len(damaged) - LISTED_SESSIONS} more" if len(damaged) > LISTED_SESSIONS else ""
    named = ", ".join(damaged[-LISTED_SESSIONS:])
    aside = [f"Damaged session files were set aside: {named}{more}"] if damaged else []
    if not summaries:
        none = "No session of this project is active. start_workflow begins one; get_workflows lists what there is."
        return "\n".join([none, *aside])
    newest = summaries[:LISTED_SESSIONS]
    lines = [
        f"- {summary.session_id}  {summary.job_name}/{summary.workflow_name}, step {summary.step_id!r}, "
        f"{age(summary.updated_at, now)} ago: {one_line(summary.goal, GOAL_LENGTH)}"
        for summary in newest
    ]
    if len(summaries) > len(newest):
        lines.append(f"- and {len(summaries) - len(newest)} more; `deepwork sessions list --all` shows them")
    call = resume_call(newest[0].session_id)
    return "\n".join(
        ["Active sessions of this project:", *lines, *aside, f"To resume one, call {call}: it answers where you are."]
    )


def _step(session: Mapping[str, Any], step_id: str) -> list[str]:
    """Return what one step needs, its instructions last."""
    step = session["definition"]["steps"][step_id]
    start = _begun(session, step_id)
    return [
        _outputs(f"Outputs of {step_id!r}", step["outputs"]),
        _criteria(step_id, step["reviews"]),
        _handed_back(session, step_id),
        _inputs(start.get("inputs", [])),
        f"## Instructions for {step_id!r}\n\n{start.get('instructions', '')}",
    ]


def _handed_back(session: Mapping[str, Any], step_id: str) -> str:
    feedback = session["step_progress"][step_id].get("handed_back")
    return f"## Review of {step_id!r}, asked for when it was reported\n\n{feedback}" if feedback else ""


def _begun(session: Mapping[str, Any], step_id: str) -> Mapping[str, Any]:
    return session["step_progress"][step_id]["begun"] or {}


def _outputs(title: str, outputs: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        _item(f"{name} ({KINDS[output['type']].syntax}, {need})", output["description"])
        for name, output in outputs.items()
        for need in ["required" if output["required"] else "optional"]
    ]
    return "\n".join([f"## {title}", "", *(lines or ["none: outputs={}"])])


def _criteria(step_id: str, reviews: Sequence[Mapping[str, Any]]) -> str:
    lines = [_item(name, question) for review in reviews for name, question in review["quality_criteria"].items()]
    return "\n".join([f"## Reviews of {step_id!r} ask", "", *lines]) if lines else ""


def _inputs(inputs: Sequence[Mapping[str, Any]]) -> str:
    lines = [_item(item["name"], str(item["path"] if item["from_step"] else item["description"])) for item in inputs]
    return "\n".join(["## Inputs", "", *lines]) if lines else ""


def _item(name: str, text: str) -> str:
    return f"- {visible(name)}: {visible(' '.join(text.splitlines()))}"
