"""Hostile paths, and every place where an agent or a job file may name one.

Each would lead to something that exists outside of the project, or to something other than a regular file, if it were
followed without care.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deepwork.testing import Agent, DeepworkProject, Refused, output, step

SECRET = "what lies outside"

# {up} leads from where the path starts to the folder that holds the project, {target} is what the place looks for,
# {outside} is an absolute folder, {project} the project's absolute folder. `plant` makes what the names say.
PATHS = [
    "{up}/outside/{target}",
    "./{up}/outside/{target}",
    "sub/../{up}/outside/{target}",
    "sub/./../{up}//outside/./{target}",
    "{up}/outside/../outside/{target}",
    "{target}/../{up}/outside/{target}",
    "missing/../{up}/outside/{target}",
    "{outside}/{target}",
    "{outside}/../outside/{target}",
    "/{outside}/{target}",
    "{project}/../outside/{target}",
    "{project}-evil/{target}",
    "{up}/project-evil/{target}",
    "/etc/passwd",
    "/etc",
    "/",
    "/dev/zero",
    "/dev/null",
    "/dev/stdin",
    "/proc/self/environ",
    "/proc/self/fd/0",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/../outside/{target}",
    "..\\outside\\{target}",
    "{up}\\outside\\{target}",
    "C:\\outside\\{target}",
    "C:/outside/{target}",
    "c:{target}",
    "\\\\host\\share",
    "//host/share",
    "\\\\?\\C:\\{target}",
    "%2e%2e/outside/{target}",
    "%2e%2e%2foutside%2f{target}",
    "..%2foutside%2f{target}",
    "..%c0%afoutside/{target}",
    "....//outside/{target}",
    "..;/outside/{target}",
    "file://{outside}/{target}",
    "~/{target}",
    "~root/{target}",
    "$HOME/{target}",
    "$(cat {outside}/{target})",
    "\uff0e\uff0e/outside/{target}",
    "\u2025/outside/{target}",
    "..\u2215outside\u2215{target}",
    "{up}/outside/{target}\0",
    "\0",
    "a\0/../{up}/outside/{target}",
    "\ud800",
    "\udc80",
    "\n{up}/outside/{target}",
    "a" * 5000,
    "a" * 300,
    "a/" * 2400 + "a",
    "../" * 1300 + "etc/passwd",
    "",
    " ",
    ".",
    "..",
    "./",
    "...",
    "-",
    "link_out",
    "link_out/{target}",
    "link_out/../outside/{target}",
    "link_to_target",
    "link_to_link",
    "link_up/outside/{target}",
    "link_to_nothing",
    "link_to_device",
    "loop",
    "loop/{target}",
    "loop_a",
    "folder",
    "folder/",
    "folder/.",
    "fifo",
    "fifo/x",
    "socket",
    "device",
]


@dataclass(frozen=True)
class Tried:
    """One path at one place, and its answer; `accepted` unless that was an error."""

    sink: str
    path: str
    accepted: bool
    answer: str


@dataclass(frozen=True)
class Grounds:
    """A project, with things outside of it that must stay out of reach."""

    project: DeepworkProject
    outside: Path

    def paths(self, base: Path, target: str) -> Iterator[str]:
        """Yield every hostile path in the form that starts in `base` and looks for `target`."""
        up = os.path.relpath(self.outside.parent, base)
        for path in PATHS:
            filled = path.replace("{up}", up).replace("{target}", target).replace("{outside}", str(self.outside))
            yield filled.replace("{project}", str(self.project.root))

    def plant(self, base: Path, target: str) -> None:
        """Put links that lead out, and special files, where paths start."""
        links = {
            "link_out": self.outside,
            "link_to_target": self.outside / target,
            "link_to_link": base / "link_to_target",
            "link_up": self.outside.parent,
            "link_to_nothing": self.outside / "nothing",
            "link_to_device": Path("/dev/zero"),
            "loop": base / "loop",
            "loop_a": base / "loop_b",
            "loop_b": base / "loop_a",
        }
        (base / "sub").mkdir(parents=True)
        (base / "folder").mkdir()
        for name, goal in links.items():
            (base / name).symlink_to(goal)
        os.mkfifo(base / "fifo")
        with suppress(OSError):  # not everybody may, and then there is nothing to find
            os.mknod(base / "socket", stat.S_IFSOCK | 0o600)
        with suppress(OSError):
            os.mknod(base / "device", stat.S_IFCHR | 0o600, os.makedev(1, 5))


Sink = Callable[[Grounds, Agent], AsyncIterator[Tried]]


def make_grounds(folder: Path) -> Grounds:
    """Make a project with a job, and beside it what must not be reached: files, a job, a session."""
    project = DeepworkProject(folder / "project")
    outside = folder / "outside"
    outside.mkdir(parents=True)
    evil = folder / "project-evil"
    project.write_job("files", [step("a", outputs={"one": output(required=False), "many": output("files")})])
    for place in (outside, evil):
        project.write(place / "secret.txt", SECRET)
        project.write_job("job", [step("a")], folder=place)
        project.write(place / "job" / "steps" / "a.md", SECRET)
        project.write(place / "session_x.json", json.dumps(_session("x")))
        project.write(place / "x.json", json.dumps(_session("x")))
    grounds = Grounds(project, outside)
    grounds.plant(project.root, "secret.txt")
    grounds.plant(project.state / "session_", "x")
    project.write("good.md")
    return grounds


def leaks(attempt: Tried, grounds: Grounds) -> bool:
    """True if an answer tells more than it should: content, a resolved path, or something of our insides."""
    resolved = str(grounds.outside) in attempt.answer and str(grounds.outside) not in attempt.path
    return resolved or any(text in attempt.answer for text in (SECRET, "root:", "Traceback", "internal error", "Errno"))


async def _outputs_file(grounds: Grounds, agent: Agent) -> AsyncIterator[Tried]:
    await agent.start("files")
    for path in grounds.paths(grounds.project.root, "secret.txt"):
        yield await _try(agent, "outputs, file", path, "finished_step", outputs={"one": path, "many": ["good.md"]})


async def _outputs_files(grounds: Grounds, agent: Agent) -> AsyncIterator[Tried]:
    await agent.start("files")
    for path in grounds.paths(grounds.project.root, "secret.txt"):
        yield await _try(agent, "outputs, files", path, "finished_step", outputs={"many": ["good.md", path]})


async def _job_name(grounds: Grounds, agent: Agent) -> AsyncIterator[Tried]:
    grounds.plant(grounds.project.jobs, "job")
    for path in grounds.paths(grounds.project.jobs, "job"):
        yield await _try(agent, "job_name", path, "start_workflow", goal="g", job_name=path, workflow_name="main")


async def _instructions_file(grounds: Grounds, agent: Agent) -> AsyncIterator[Tried]:
    for number in range(len(PATHS)):
        job = f"instructions_{number}"
        job_dir = grounds.project.write_job(job, [step("a")])
        grounds.plant(job_dir, "secret.txt")
        path = list(grounds.paths(job_dir, "secret.txt"))[number]
        content = yaml.safe_load((job_dir / "job.yml").read_text())
        content["steps"][0]["instructions_file"] = path
        (job_dir / "job.yml").write_text(yaml.safe_dump(content))
        yield await _try(agent, "instructions_file", path, "start_workflow", goal="g", job_name=job, workflow_name="")


async def _finished_session(grounds: Grounds, agent: Agent) -> AsyncIterator[Tried]:
    for path in _session_ids(grounds):
        yield await _try(agent, "session_id of finished_step", path, "finished_step", session_id=path, outputs={})


async def _aborted_session(grounds: Grounds, agent: Agent) -> AsyncIterator[Tried]:
    for path in _session_ids(grounds):
        yield await _try(agent, "session_id of abort_workflow", path, "abort_workflow", session_id=path, explanation="")


async def _parent_session(grounds: Grounds, agent: Agent) -> AsyncIterator[Tried]:
    start = {"goal": "g", "job_name": "files", "workflow_name": "main"}
    for path in filter(None, _session_ids(grounds)):  # an empty one counts as not given
        yield await _try(agent, "parent_session_id", path, "start_workflow", parent_session_id=path, **start)


SINKS: dict[str, Sink] = {
    "outputs, file": _outputs_file,
    "outputs, files": _outputs_files,
    "job_name": _job_name,
    "instructions_file": _instructions_file,
    "session_id of finished_step": _finished_session,
    "session_id of abort_workflow": _aborted_session,
    "parent_session_id": _parent_session,
}


async def _try(agent: Agent, sink: str, path: str, tool: str, **arguments: Any) -> Tried:
    try:
        answer = await agent.call(tool, **arguments)
    except Refused as error:
        return Tried(sink, path, accepted=False, answer=str(error))
    return Tried(sink, path, accepted=True, answer=json.dumps(answer))


def _session_ids(grounds: Grounds) -> Iterator[str]:
    state = grounds.project.state
    yield from grounds.paths(state, "x")
    # A naive join makes `session_<id>.json` of the id: a folder of that beginning would let these two out.
    up = os.path.relpath(grounds.outside, state)
    for name, session_id in (("y", f"/../{up}/y"), ("z", "/link_out/z")):
        grounds.project.write(grounds.outside / f"{name}.json", json.dumps(_session(session_id)))
        yield session_id


def _session(session_id: str) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "job_name": "files",
        "workflow_name": "main",
        "goal": SECRET,
        "current_step_id": "a",
        "started_at": "2026-01-01T00:00:00.000000+00:00",
    }
