"""What a start and each call cost with any content of a repository, in the processor time and memory of the server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from deepwork.testing import Refused, StdioWire, review, start_server, step

pytestmark = pytest.mark.slow

START_SECONDS, START_MIB, CALL_SECONDS = 2.0, 150, 5.0


def large_jobs(project):
    """Forty jobs with almost as many values as a job may have, which take the most time: b01."""
    steps = json.dumps([step(f"s{item}") for item in range(4_700)])
    for number in range(40):
        head = json.dumps(_job(f"job{number}"))
        project.write(project.jobs / f"job{number}" / "job.yml", head.replace('"steps": []', f'"steps": {steps}'))


def wrong_names(project):
    """One legal job with very many ids and twenty wrong ones: b07 and b08."""
    steps = [step(f"a_step_with_a_long_name_{number}") for number in range(6000)]
    steps[0]["dependencies"] = [f"a_step_with_a_long_nam_{number}" for number in range(30)]
    file = project.write_job("wrong") / "job.yml"
    file.write_text(json.dumps({**_job("wrong"), "steps": steps}))


def shared_instructions(project):
    """One group whose 300 steps name one file of a MiB: b05."""
    steps = [step(f"s{number}", instructions_file="steps/shared.md") for number in range(300)]
    project.write_job("group", steps, {"main": [[item["id"] for item in steps]]})
    project.write(project.jobs / "group" / "steps" / "shared.md", "x" * (1024 * 1024 - 1))


def state_files(project):
    """Sessions of a terabyte, of 33 MiB, and ten thousand small ones: b04."""
    project.write(project.state / "session_big.json", "")
    os.truncate(project.state / "session_big.json", 1 << 40)
    project.write(project.state / "session_zero.json", bytes(33 << 20))
    for number in range(10_000):
        project.write(project.state / f"session_x{number}.json", "{}")


def folders_in_place(project):
    """Folders, pipes and links where files belong."""
    for number in range(16):
        (project.state / f"sessions.{number}.lock").mkdir(parents=True)
    os.mkfifo(project.state / "session_pipe.json")
    (project.state / "session_dev.json").symlink_to("/dev/zero")
    (project.jobs / "odd").mkdir(parents=True)
    (project.jobs / "odd" / "job.yml").symlink_to("/dev/zero")
    os.close(os.open(os.path.join(bytes(project.state), b"\xff.corrupt"), os.O_CREAT))


def settings(project):
    """A configuration that asks for everything that needs trust."""
    project.write("tools/evil.sh", "touch ran\n")
    gate = {"enabled": False, "runner": "evil", "commands": {"evil": {"run": ["bash", "tools/evil.sh"]}}}
    config = {"quality_gate": gate, "allowed_output_roots": ["/"], "tools": {"prefix": {"core": "x"}}}
    project.write(".deepwork/config.yml", json.dumps(config))


def _job(name):
    return {
        "name": name,
        "version": "1.0.0",
        "summary": name,
        "common_job_info_provided_to_all_steps_at_runtime": name,
        "steps": [],
        "workflows": [],
    }


@pytest.mark.parametrize(
    "attack", [large_jobs, wrong_names, shared_instructions, state_files, folders_in_place, settings]
)
def test_a_start_and_each_call_are_bounded_and_nothing_fails_inside_or_is_run(project, attack):
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md")
    attack(project)
    internal, costs = [], {}
    # With a variable that Python reads, it is a start of its own, and not a fork whose imports are done.
    wire = StdioWire(start_server(project.root, env={"PYTHONHASHSEED": "0"}))
    with wire.process:
        wire.greet()
        pid = wire.process.pid
        start, peak = processor_seconds(pid), memory(pid)
        for number, (tool, arguments) in enumerate([*calls(), *calls()]):
            before = processor_seconds(pid)
            try:
                wire.call(tool, **arguments)
            except Refused as error:
                internal += [str(error)] if "internal error" in str(error) else []
            costs[f"{number} {tool}"] = processor_seconds(pid) - before
        wire.process.kill()
    assert (start <= START_SECONDS, peak <= START_MIB) == (True, True), (start, peak)
    assert internal == []
    assert {call: cost for call, cost in costs.items() if cost > CALL_SECONDS} == {}
    assert list(project.root.rglob("ran")) == []


def calls():
    yield "get_workflows", {}
    for job in ("demo", "group", "wrong", "job0", "nothing"):
        yield "start_workflow", {"goal": "g", "job_name": job, "workflow_name": "main"}
    yield "finished_step", {"outputs": {}, "step_id": "?"}
    yield "finished_step", {"outputs": {"a.md": "a.md"}}
    yield "finished_step", {"outputs": {}, "session_id": "big"}
    yield "finished_step", {"outputs": {}, "session_id": "zero"}
    yield "abort_workflow", {"explanation": "x"}


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    """Return the most memory that a process has had, in MiB."""
    [peak] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(peak.split()[1]) / 1024
