"""The project that is tortured, and what its session files must look like."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from report import Report
from servers import tracebacks
from stores import Files, Store, opened_store

from deepwork.models.sessions import Session
from deepwork.testing import DeepworkProject, step

STEPS = ("a", "b", "c", "d", "e", "f")
ENTRIES = (("a",), ("b", "c"), ("d",), ("e", "f"))


class Project(DeepworkProject):
    """A folder with jobs, the store of its sessions, and the folder of its servers' logs."""

    def __init__(self, root: Path, store: Store | None = None, *, logs: Path | None = None) -> None:
        super().__init__(root)
        self.store = store or Files()
        self.logs = logs or root


def make_project(root: Path, store: Store | None = None, *, logs: Path | None = None) -> Project:
    """Write a job with groups, and all files that its steps want."""
    project = Project(root, store, logs=logs)
    project.write_job("demo", [step(name) for name in STEPS], {"main": [[*entry] for entry in ENTRIES]})
    for name in STEPS:
        project.write(f"{name}.md")
    return project


@contextmanager
def tortured(name: str, store: str = "json") -> Iterator[Project]:
    """Make a project with an empty store in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix=f"deepwork-{name}-") as folder, opened_store(store, Path(folder)) as opened:
        yield make_project(Path(folder), opened)


@dataclass(frozen=True)
class Aftermath:
    """The sessions that servers have left in a project, and what is wrong there."""

    sessions: dict[str, Session]
    unreadable: list[str]
    tracebacks: int

    @cached_property
    def inconsistent(self) -> list[str]:
        """What histories tell that cannot be."""
        return [line for session in self.sessions.values() for line in inconsistencies(session)]


def aftermath(project: Project) -> Aftermath:
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
    return Aftermath(sessions, unreadable, tracebacks(project.logs))


def tell_aftermath(report: Report, afters: Sequence[Aftermath]) -> None:
    """Report the promises about the files of servers."""
    report.promise("histories inconsistent", [line for after in afters for line in after.inconsistent])
    report.promise("session files unreadable", [name for after in afters for name in after.unreadable])
    report.promise("tracebacks in the servers' logs", sum(after.tracebacks for after in afters))


def inconsistencies(session: Session) -> list[str]:
    """Replay a history against the workflow: every transition once, in an order that the workflow allows."""
    name = session.session_id
    problems: list[str] = []
    entries = session.pinned.workflow.entries
    index, to_begin, ended = -1, [], False
    saves = 0
    for event in session.history:
        if ended:
            problems.append(f"{name}: {event.kind} after its end")
        if event.kind == "started":
            saves += 1
            to_begin = [*entries[0]]
        elif event.kind == "step_begun":
            if not to_begin or event.step_id != to_begin.pop(0):
                problems.append(f"{name}: {event.step_id} begun out of order")
            elif not to_begin:
                index += 1
        elif event.kind == "step_completed":
            reported = event.stored.get("reported", True)
            saves += reported
            if event.step_id not in entries[index]:
                problems.append(f"{name}: {event.step_id} completed while {entries[index]} was current")
            elif reported and event.step_id == entries[index][0]:
                to_begin = [*(entries[index + 1] if index + 1 < len(entries) else ())]
        elif event.kind == "review_handed_back":
            saves += 1
        elif event.kind in ("completed", "aborted"):
            saves += event.kind == "aborted"
            ended = True
    completed = [event.step_id for event in session.history if event.kind == "step_completed"]
    problems += [f"{name}: {entry[0]} completed twice" for entry in entries if completed.count(entry[0]) > 1]
    if {*completed} != {step_id for step_id, progress in session.step_progress.items() if progress.completed_at}:
        problems.append(f"{name}: its history has completed {completed}, its progress another set of steps")
    if not ended and session.current_entry_index != index:
        problems.append(f"{name}: at entry {session.current_entry_index}, by its history at {index}")
    if ended == session.is_active:
        problems.append(f"{name}: {session.status}, but its history says otherwise")
    if saves != session.revision:
        problems.append(f"{name}: {session.revision} revisions, but its history tells of {saves}")
    return problems
