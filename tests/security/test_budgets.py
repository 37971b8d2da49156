"""The total cost of a repository is bounded, and a server ends while its threads compute.

The costs of whole hostile repositories are in `test_hostile_repositories.py`.
"""

from __future__ import annotations

import signal
import time

import pytest

from deepwork.api import Job, JobReader
from deepwork.testing import step
from deepwork.text import nearest

pytestmark = pytest.mark.anyio

BUSY = '''
from deepwork import hookimpl
from deepwork.api import ToolSet, ToolSpec

def compute() -> str:
    """Compute for ever, in a thread."""
    number = 0
    print("computing", flush=True)
    while True:
        number += 1

class Plugin:
    @hookimpl
    def deepwork_tool_sets(self):
        yield ToolSet(name="busy", tools=[ToolSpec("compute", compute, title="Compute", output="text")])

plugin = Plugin()
'''
CALL = '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "compute", "arguments": {}}}\n'
HELLO = (
    '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", '
    '"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}\n'
    '{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
)


@pytest.fixture
def busy(project, serve, tmp_path):
    """Start a server in which a thread computes for ever."""
    project.write(tmp_path / "busy" / "acme_busy.py", BUSY)
    info = tmp_path / "busy" / "acme_busy-1.0.dist-info"
    project.write(info / "METADATA", "Metadata-Version: 2.1\nName: acme-busy\nVersion: 1.0\n")
    project.write(info / "entry_points.txt", "[deepwork]\nbusy = acme_busy:plugin\n")
    process = serve(PYTHONPATH=str(tmp_path / "busy"))
    process.stdin.write(HELLO + CALL)
    process.stdin.flush()
    while "computing" not in (line := process.stderr.readline()):
        assert line
    return process


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, None], ids=["SIGTERM", "SIGINT", "closed stdin"])
def test_a_server_ends_though_a_thread_computes_for_ever(busy, end):
    """F10, c04 and b08: it went on for 10 to 20 s, until it was killed. It ends within a second on a quiet machine."""
    if end is None:
        busy.stdin.close()
    else:
        busy.send_signal(end)
    assert busy.wait(100) == 0


async def test_the_steps_of_a_group_share_one_budget_of_instructions(project):
    """F10, b05: 300 steps that named one file of 1 MiB made a session of 300 MiB."""
    steps = [step(f"s{number}", instructions_file="steps/shared.md") for number in range(20)]
    project.write_job(steps=steps, workflows={"main": [[job_step["id"] for job_step in steps]]})
    project.write(project.jobs / "demo" / "steps" / "shared.md", "x" * (1024 * 1024 - 1))
    async with project.agent() as agent:
        text = await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main")
    assert "have more than 4,194,304 characters together; nothing was changed" in text
    assert not list(project.state.glob("session_*"))


def large(project, name, size):
    file = project.write_job(name) / "job.yml"
    file.write_text(f"{file.read_text()}# {'x' * size}\n")


def test_one_call_parses_for_so_many_seconds_and_later_ones_go_on(project, monkeypatch):
    """F10, b01: a few hundred kilobytes of git can be very many job files that take seconds each."""
    monkeypatch.setattr("deepwork.jobs.reader.PARSE_SECONDS", 1e-9)
    monkeypatch.setattr("deepwork.jobs.reader.REFILL_SECONDS", 1e9)
    for number in range(5):
        project.write_job(f"job{number}")
    reader = JobReader(project.jobs)

    def count():
        return [isinstance(item, Job) for item in reader.read_all()].count(True)

    assert count() == count() == 1
    assert "not read yet, because others are very large" in str(reader.read("job4"))
    monkeypatch.setattr("deepwork.jobs.reader.PARSE_SECONDS", 1e9)
    monkeypatch.setattr("deepwork.jobs.reader.REFILL_SECONDS", 1e-9)
    assert count() == 5


def test_jobs_beyond_the_limit_of_a_folder_are_errors_and_harm_no_other(project, monkeypatch):
    monkeypatch.setattr("deepwork.jobs.reader.REFILL_SECONDS", 1e-9)
    project.write_job("a_good_one")
    for number in range(6):
        large(project, f"job{number}", 3_500_000)
    reader = JobReader(project.jobs)
    items = reader.read_all()
    assert isinstance(items[0], Job)
    assert "the jobs of this folder have more than 16,777,216 bytes" in str(items[-1])


@pytest.mark.parametrize("count", [300, 200_000])
def test_a_suggestion_costs_little_however_many_names_are_valid(count):
    """F10, b07 and b08: 12,500 ids and twenty problems took 47 s."""
    valid = [f"a_step_with_a_long_name_{number}" for number in range(count)]
    start = time.process_time()
    text = nearest("a_step_with_a_long_nam_7", valid)
    assert time.process_time() - start < 5
    assert "did you mean" in text if count == 300 else "; valid: " in text
