"""The project that is tortured, and what its session files must look like."""

from __future__ import annotations

from pathlib import Path

from stores import Files, Store

from deepwork.models.sessions import Session
from deepwork.testing import DeepworkProject, step

STEPS = ("a", "b", "c", "d", "e", "f")
ENTRIES = (("a",), ("b", "c"), ("d",), ("e", "f"))


class Project(DeepworkProject):
    """A folder with jobs, and the store of its sessions."""

    def __init__(self, root: Path, store: Store | None = None) -> None:
        super().__init__(root)
        self.store = store or Files()


def make_project(root: Path, store: Store | None = None) -> Project:
    """Write a job with groups, and all files that its steps want."""
    project = Project(root, store)
    project.write_job("demo", [step(name) for name in STEPS], {"main": [[*entry] for entry in ENTRIES]})
    for name in STEPS:
        project.write(f"{name}.md")
    return project


def stored_sessions(project: Project) -> tuple[dict[str, Session], list[str]]:
    """Read every session as a server would; name the unreadable ones."""
    sessions: dict[str, Session] = {}
    unreadable = [file.name for file in project.state.glob("*.corrupt")]
    for name, document, revision in project.store.documents(project.state):
        try:
            session = Session.model_validate_json(document)
        except ValueError as error:
            unreadable.append(f"{name}: {error}")
        else:
            beside = {} if revision is None else {"revision": revision}
            sessions[session.session_id] = session.model_copy(update=beside)
    return sessions, unreadable


def inconsistencies(session: Session) -> list[str]:
    """Replay a history against the workflow: every transition once, in an order that the workflow allows."""
    name = session.session_id
    wrong: list[str] = []
    entries = session.pinned.workflow.entries
    index, begun, ended = -1, [], False
    saves = 0
    for event in session.history:
        if ended:
            wrong.append(f"{name}: {event.kind} after its end")
        if event.kind == "started":
            saves += 1
            begun = [*entries[0]]
        elif event.kind == "step_begun":
            if not begun or event.step_id != begun.pop(0):
                wrong.append(f"{name}: {event.step_id} begun out of order")
            elif not begun:
                index += 1
        elif event.kind == "step_completed":
            reported = event.stored.get("reported", True)
            saves += reported
            if event.step_id not in entries[index]:
                wrong.append(f"{name}: {event.step_id} completed while {entries[index]} was current")
            elif reported and event.step_id == entries[index][0]:
                begun = [*(entries[index + 1] if index + 1 < len(entries) else ())]
        elif event.kind == "review_handed_back":
            saves += 1
        elif event.kind in ("completed", "aborted"):
            saves += event.kind == "aborted"
            ended = True
    for primary in (entry[0] for entry in entries):
        times = sum(event.kind == "step_completed" and event.step_id == primary for event in session.history)
        if times > 1:
            wrong.append(f"{name}: {primary} completed {times} times")
    if ended == session.is_active:
        wrong.append(f"{name}: {session.status}, but its history says otherwise")
    if saves != session.revision:
        wrong.append(f"{name}: {session.revision} revisions, but its history tells of {saves}")
    return wrong
