"""Every call that writes something, each in a situation of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sample_project import Project
from servers import Server, answer_text
from stores import Files, Store

from deepwork.testing import review, step

LONG = "Do it with care.\n" * 800


class Stage:
    """A project with jobs for all situations, the server under test, and an undisturbed one."""

    def __init__(self, root: Path, store: Store, env: Mapping[str, str]) -> None:
        self.project = Project(root, store)
        self.project.write_job(
            "demo",
            [step("a"), step("b"), step("m"), step("g", reviews=[review()])],
            {"main": ["a", "b"], "one": ["a"], "grouped": [["a", "m"], "b"], "reviewed": ["g", "b"]},
        )
        self.project.write_job("long", [step("a"), step("b")], {"main": ["a", "b"]})
        for name in "ab":
            self.project.write(f".deepwork/jobs/long/steps/{name}.md", LONG + name)
        for name in "abgm":
            self.project.write(f"{name}.md")
        self.server = Server(root, env={**store.env, **env})
        self.other = Server(root, env=store.env)

    def started(self, workflow: str = "main", *, job: str = "demo", server: Server | None = None) -> str:
        """Start a workflow and give its session_id."""
        reply = (server or self.server).call("start_workflow", goal="g", job_name=job, workflow_name=workflow)
        session_id: str = reply["begin_step"]["session_id"]
        return session_id

    def report(self, session_id: str, step_id: str, **more: Any) -> dict[str, Any]:
        """Make the arguments of `finished_step`."""
        return {"outputs": {f"{step_id}.md": f"{step_id}.md"}, "session_id": session_id, "step_id": step_id, **more}

    def clear(self) -> None:
        """End all sessions and remove what they have left."""
        store = self.project.store
        for _, document, _ in store.documents(self.project.state):
            session = json.loads(document)
            if session["status"] == "active":
                self.server.call("abort_workflow", explanation="next", session_id=session["session_id"])
        store.forget(self.project.state)
        for file in self.project.state.glob("*_*"):
            file.unlink()

    def close(self) -> None:
        self.server.close()
        self.other.close()

    @property
    def scenes(self) -> Sequence[Scene]:
        """The calls that write something to the store of this project."""
        is_files = isinstance(self.project.store, Files)
        return [scene for scene in SCENES if is_files or scene is not FIRST_START]


@dataclass(frozen=True)
class Scene:
    """A call to be made, once its situation is there; `answers` if its answer tells of a write that failed."""

    name: str
    tool: str
    prepare: Callable[[Stage], dict[str, Any]]
    answers: bool = False


def _start(**more: str) -> dict[str, Any]:
    return {"goal": "g", "job_name": "demo", "workflow_name": "main", **more}


def _first_start(stage: Stage) -> dict[str, Any]:
    shutil.rmtree(stage.project.state)
    return _start()


def _nested(stage: Stage) -> dict[str, Any]:
    stage.started()
    return _start()


def _last_step(stage: Stage) -> dict[str, Any]:
    stage.started()
    return stage.report(stage.started("one"), "a")


def _second_review(stage: Stage) -> dict[str, Any]:
    session_id = stage.started("reviewed")
    stage.server.call("finished_step", **stage.report(session_id, "g"))
    return stage.report(session_id, "g", notes="Now with more care")


def _override(stage: Stage) -> dict[str, Any]:
    return stage.report(stage.started("reviewed"), "g", quality_review_override_reason="All passed")


def _long(stage: Stage) -> dict[str, Any]:
    return {"outputs": {}, "session_id": stage.started(job="long"), "step_id": "?"}


def _long_again(stage: Stage) -> dict[str, Any]:
    question = _long(stage)
    answer_text(stage.server, "finished_step", **question)
    stage.server.call("finished_step", **stage.report(question["session_id"], "a"))
    return question


def _abort(stage: Stage) -> dict[str, Any]:
    return {"explanation": "enough", "session_id": stage.started()}


def _abort_nested(stage: Stage) -> dict[str, Any]:
    stage.started()
    return _abort(stage)


FIRST_START = Scene("start, the first of the project", "start_workflow", _first_start)

SCENES = (
    Scene("get_workflows", "get_workflows", lambda _stage: {}),
    Scene("start", "start_workflow", lambda _stage: _start()),
    FIRST_START,
    Scene("start, nested", "start_workflow", _nested),
    Scene(
        "start, under a session of another server",
        "start_workflow",
        lambda stage: _start(parent_session_id=stage.started(server=stage.other)),
    ),
    Scene("finish a step", "finished_step", lambda stage: stage.report(stage.started(), "a")),
    Scene("finish the last step", "finished_step", _last_step),
    Scene("finish a step with an override", "finished_step", _override),
    Scene("review handed back", "finished_step", lambda stage: stage.report(stage.started("reviewed"), "g")),
    Scene("review handed back again", "finished_step", _second_review),
    Scene("finish a member of a group", "finished_step", lambda stage: stage.report(stage.started("grouped"), "m")),
    Scene("finish a group", "finished_step", lambda stage: stage.report(stage.started("grouped"), "a")),
    Scene(
        "finish a step of another server's session",
        "finished_step",
        lambda stage: stage.report(stage.started(server=stage.other), "a"),
    ),
    Scene("ask for a long resume text", "finished_step", _long, answers=True),
    Scene("ask for another long resume text", "finished_step", _long_again, answers=True),
    Scene("abort", "abort_workflow", _abort),
    Scene("abort, nested", "abort_workflow", _abort_nested),
)
