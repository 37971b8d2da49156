"""What an agent that remembers nothing needs to go on."""

from __future__ import annotations

import json
from datetime import datetime

from deepwork.engine.changes import changes_since
from deepwork.engine.steps import begin_step, concurrent_text, group_text
from deepwork.files.folder import Folder
from deepwork.files.workspace import Workspace
from deepwork.models.replies import ExpectedOutput, ReviewInfo, StepInputInfo
from deepwork.models.sessions import Session, SessionSummary
from deepwork.sessions.standing import handed_back, position
from deepwork.text.age import age
from deepwork.text.foreign import labelled, one_line, visible

MAX_CHARACTERS = 8000
LISTED_SESSIONS = 10
GOAL_LENGTH = 80

UNLISTED = (
    "Without a token no sessions are listed here. If you have a session_id, name it: "
    'finished_step(session_id=..., step_id="?", outputs={}) answers where it is. start_workflow begins a new one.'
)


def resume_text(session: Session, workspace: Workspace) -> str:
    """Tell what is needed to go on; what is too long for a reply is written to a file, and that is named."""
    text = whole_text(session, changes_since(session, workspace))
    if len(text) <= MAX_CHARACTERS:
        return text
    path = workspace.state_dir / f"resume_{session.session_id}.md"
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


def whole_text(session: Session, changes: str = "") -> str:
    """Tell goal, step, changes since, expected outputs, criteria, instructions as begun, and what is completed."""
    step = begin_step(session, session.current_step_id)
    completed = [progress for progress in session.step_progress.values() if progress.completed_at]
    parts = [
        f"# Resume {session.workflow}, session {session.session_id}",
        f"Now at step {step.step_id!r} ({position(session)}). When its outputs are there, call "
        f"{report_call(session.session_id, step.step_id)}.",
        group_text(session, step.step_id),
        labelled("Goal", session.goal),
        changes,
        _outputs(f"Outputs of {step.step_id!r}", step.step_expected_outputs),
        _criteria(step.step_id, step.step_reviews),
        _review(session, step.step_id),
        _inputs(step.step_inputs),
        f"## Instructions for {step.step_id!r}\n\n"
        + step.step_instructions.removesuffix(concurrent_text(session, step.step_id)),
    ]
    for member in step.concurrent_steps:
        parts += [
            f"## Also open in this group: {member.step_id!r}\n\n"
            f"Report it before {step.step_id!r}: {report_call(session.session_id, member.step_id)}.",
            _outputs(f"Outputs of {member.step_id!r}", member.step_expected_outputs),
            _criteria(member.step_id, member.step_reviews),
            _review(session, member.step_id),
            _inputs(member.step_inputs),
            f"## Instructions for {member.step_id!r}\n\n{member.step_instructions}",
        ]
    lines = "\n".join(f"- {progress.step_id}: {json.dumps(progress.outputs)}" for progress in completed)
    parts.append(f"## Done\n\n{lines or 'nothing yet'}")
    parts.append(f"## About the job\n\n{step.common_job_info}\n\nJob folder: {visible(step.job_dir)}")
    return "\n\n".join(part for part in parts if part)


def resume_call(session_id: str) -> str:
    """Give the call that tells where a session is."""
    return f'finished_step(session_id="{session_id}", step_id="?", outputs={{}})'


def report_call(session_id: str, step_id: str) -> str:
    """Give the call that reports a step."""
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


def _review(session: Session, step_id: str) -> str:
    feedback = handed_back(session, step_id)
    return f"## Review of {step_id!r}, asked for when it was reported\n\n{feedback}" if feedback else ""


def _outputs(title: str, outputs: list[ExpectedOutput]) -> str:
    lines = [
        _item(f"{output.name} ({output.syntax_for_finished_step_tool}, {need})", output.description)
        for output in outputs
        for need in ["required" if output.required else "optional"]
    ]
    return "\n".join([f"## {title}", "", *(lines or ["none: outputs={}"])])


def _criteria(step_id: str, reviews: list[ReviewInfo]) -> str:
    lines = [_item(name, question) for review in reviews for name, question in review.quality_criteria.items()]
    return "\n".join([f"## Reviews of {step_id!r} ask", "", *lines]) if lines else ""


def _inputs(inputs: list[StepInputInfo]) -> str:
    lines = [_item(item.name, str(item.path if item.from_step else item.description)) for item in inputs]
    return "\n".join(["## Inputs", "", *lines]) if lines else ""


def _item(name: str, text: str) -> str:
    return f"- {visible(name)}: {visible(' '.join(text.splitlines()))}"
