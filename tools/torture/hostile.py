"""Hostile repositories: what a start and each call cost with any content of a repository.

The seconds are the server's processor time: on a machine with other work the clock says more than that.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from deepwork.testing import DeepworkProject, Refused, review, step

START_SECONDS, START_MIB, CALL_SECONDS = 2.0, 150, 5.0
ODD = [None, 0, -1, 10**30, "", "\ud800", "x" * 5000, [], {}, ["a"], {"a": {}}, True, 1.5, "../../x", [[["a"]]]]


def large_jobs(project: DeepworkProject) -> None:
    """Forty jobs with almost as many values as a job may have, which take the most time: b01."""
    steps = json.dumps([step(f"s{item}") for item in range(4_700)])
    for number in range(40):
        head = json.dumps(_job(f"job{number}"))
        project.write(project.jobs / f"job{number}" / "job.yml", head.replace('"steps": []', f'"steps": {steps}'))


def wrong_names(project: DeepworkProject) -> None:
    """One legal job with very many ids and twenty wrong ones: b07 and b08."""
    steps = [step(f"a_step_with_a_long_name_{number}") for number in range(6000)]
    steps[0]["dependencies"] = [f"a_step_with_a_long_nam_{number}" for number in range(30)]
    file = project.write_job("wrong") / "job.yml"
    file.write_text(json.dumps({**_job("wrong"), "steps": steps}))


def shared_instructions(project: DeepworkProject) -> None:
    """One group whose 300 steps name one file of a MiB: b05."""
    steps = [step(f"s{number}", instructions_file="steps/shared.md") for number in range(300)]
    project.write_job("group", steps, {"main": [[item["id"] for item in steps]]})
    project.write(project.jobs / "group" / "steps" / "shared.md", "x" * (1024 * 1024 - 1))


def state_files(project: DeepworkProject) -> None:
    """Sessions of a terabyte, of 33 MiB, and ten thousand small ones: b04."""
    project.write(project.state / "session_big.json", "")
    os.truncate(project.state / "session_big.json", 1 << 40)
    project.write(project.state / "session_zero.json", bytes(33 << 20))
    for number in range(10_000):
        project.write(project.state / f"session_x{number}.json", "{}")


def folders_in_place(project: DeepworkProject) -> None:
    """Folders, pipes and links where files belong."""
    for number in range(16):
        (project.state / f"sessions.{number}.lock").mkdir(parents=True)
    os.mkfifo(project.state / "session_pipe.json")
    (project.state / "session_dev.json").symlink_to("/dev/zero")
    (project.jobs / "odd").mkdir(parents=True)
    (project.jobs / "odd" / "job.yml").symlink_to("/dev/zero")
    os.close(os.open(os.path.join(bytes(project.state), b"\xff.corrupt"), os.O_CREAT))


def settings(project: DeepworkProject) -> None:
    """A configuration that asks for everything that needs trust."""
    project.write("tools/evil.sh", "touch ran\n")
    gate = {"enabled": False, "runner": "evil", "commands": {"evil": {"run": ["bash", "tools/evil.sh"]}}}
    config = {"quality_gate": gate, "allowed_output_roots": ["/"], "tools": {"prefix": {"core": "x"}}}
    project.write(".deepwork/config.yml", json.dumps(config))


ATTACKS: list[Callable[[DeepworkProject], None]] = [
    large_jobs,
    wrong_names,
    shared_instructions,
    state_files,
    folders_in_place,
    settings,
]


def hostile(shapes: int, seed: int, names: Collection[str] = ()) -> int:
    """Start a server on each hostile repository, make every call, and say what it cost."""
    failed = False
    for attack in ATTACKS:
        if names and attack.__name__ not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            project = DeepworkProject(Path(folder) / "project")
            project.write_job(steps=[step("a", reviews=[review()]), step("b")])
            project.write("a.md")
            attack(project)
            facts = asyncio.run(_costs(project))
            ran = list(project.root.rglob("ran"))
            ok = facts["start"] <= START_SECONDS and facts["mib"] <= START_MIB and facts["call"] <= CALL_SECONDS
            failed |= not ok or bool(ran) or bool(facts["internal"])
            print(
                f"{attack.__name__:22} start {facts['start']:5.2f} s {facts['mib']:4.0f} MiB   slowest call "
                f"{facts['call']:5.2f} s ({facts['slowest']})   peak {facts['peak']:4.0f} MiB   "
                f"internal errors {facts['internal']}   programs run {len(ran)}",
                flush=True,
            )
    internal = asyncio.run(_odd_shapes(shapes, seed))
    print(f"{shapes} odd shapes of a session file: internal errors {internal}")
    failed |= internal > 0
    print("a promise was broken" if failed else "every promise was kept")
    return int(failed)


async def _costs(project: DeepworkProject) -> dict[str, Any]:
    facts: dict[str, Any] = {"call": 0.0, "slowest": "", "internal": 0}
    async with project.stdio_agent() as agent:
        pid = _server_pid(project)
        facts["start"] = _processor_seconds(pid)
        facts["mib"] = _memory(pid, "VmHWM")
        for tool, arguments in [*_calls(), *_calls()]:
            before = _processor_seconds(pid)
            try:
                await agent.call(tool, **arguments)
            except Refused as error:
                facts["internal"] += "internal error" in str(error)
            seconds = _processor_seconds(pid) - before
            if seconds > facts["call"]:
                facts.update(call=seconds, slowest=tool)
        facts["peak"] = _memory(pid, "VmHWM")
    return facts


def _calls() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "get_workflows", {}
    for job in ("demo", "group", "wrong", "job0", "nothing"):
        yield "start_workflow", {"goal": "g", "job_name": job, "workflow_name": "main"}
    yield "finished_step", {"outputs": {}, "step_id": "?"}
    yield "finished_step", {"outputs": {"a.md": "a.md"}}
    yield "finished_step", {"outputs": {}, "session_id": "big"}
    yield "finished_step", {"outputs": {}, "session_id": "zero"}
    yield "abort_workflow", {"explanation": "x"}


async def _odd_shapes(count: int, seed: int) -> int:
    """Change a session file at random places, and count internal errors."""
    chance = random.Random(seed)
    internal = 0
    with tempfile.TemporaryDirectory() as folder:
        project = DeepworkProject(Path(folder) / "project")
        project.write_job()
        project.write("a.md")
        async with project.agent() as agent:
            session_id = (await agent.start())["session_id"]
            file = project.state / f"session_{session_id}.json"
            session = json.loads(file.read_text())
            places = [place for place in _places(session) if place]
            for _ in range(count):
                changed = json.loads(json.dumps(session))
                *parents, last = chance.choice(places)
                value = changed
                for key in parents:
                    value = value[key]
                value[last] = chance.choice(ODD)
                file.write_text(json.dumps(changed, indent=2) + "\n")
                for tool, arguments in (
                    ("get_workflows", {}),
                    ("finished_step", {"outputs": {}, "step_id": "?", "session_id": session_id}),
                    ("finished_step", {"outputs": {"a.md": "a.md"}, "session_id": session_id}),
                    ("abort_workflow", {"explanation": "x", "session_id": session_id}),
                ):
                    try:
                        await agent.call(tool, **arguments)
                    except Refused as error:
                        internal += "internal error" in str(error)
    return internal


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from _places(child, (*path, key))


def _job(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "version": "1.0.0",
        "summary": name,
        "common_job_info_provided_to_all_steps_at_runtime": name,
        "steps": [],
        "workflows": [],
    }


def _server_pid(project: DeepworkProject) -> int:
    """Find the server that this process has started for a project."""
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", str(project.root)], capture_output=True, text=True, check=True
    )
    return int(found.stdout.split()[0])


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    sys.exit(f"no {field} of {pid}")
