"""What quality gates promise, measured: `python tools/figures_gate.py`.

Everything goes through real servers and real processes; the reviewer is the fake `claude` of the plugin's tests, which
does what it is told to. A figure that is missed is printed as missed; the exit code is 1 only when behaviour is broken:
no clear answer, a surviving process, a wrong environment, a cheat that succeeds.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import logging
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import anyio
from rows import Row, show

from deepwork.files.processes import ENVIRONMENT
from deepwork.testing import Agent, DeepworkProject, StdioWire, output, review, start_server, step

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "plugins" / "deepwork_claude_runner" / "tests"
LIMIT = 2
MIB = 1024

OWN = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR")
SECRETS = ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "NPM_TOKEN", "CLAUDE_CODE_OTHER", "SSH_AUTH_SOCK", "DEEPWORK_X")

# Name, what the program does, and a part of what the agent has to read.
MISBEHAVIOURS: list[tuple[str, dict[str, Any], str]] = [
    ("never exits", {"mode": "hang", "leaves_child": True}, f"within {LIMIT} s"),
    ("floods 400 MB", {"mode": "flood", "megabytes": 400}, "printed more than"),
    ("garbage", {"mode": "raw", "bytes": base64.b64encode(b"<html>oops").decode()}, "Claude printed no JSON: <html>"),
    ("child keeps stdout", {"mode": "fail", "leaves_child": True}, "Say more"),
    ("wrong schema", {"mode": "answer", "answer": {"verdict": "good"}}, "the answer is not a verdict"),
    ("exit 1", {"mode": "exit", "code": 1}, "Claude ended with code 1: something broke"),
    ("missing", {"mode": "missing"}, "cannot be started"),
    ("slow", {"mode": "pass", "seconds": 30}, f"within {LIMIT} s"),
    ("non-UTF-8", {"mode": "raw", "bytes": base64.b64encode(b"\xff\xfe{}").decode()}, "Claude printed no JSON"),
    ("killed", {"mode": "killed"}, "Claude was killed by SIGKILL"),
]


def main() -> None:
    """Measure everything and print a table."""
    logging.disable()
    show(chain(anyio.run(pool), anyio.run(cpu), anyio.run(sixty), misbehaviours(), stopped(), cheats(), strict()))


async def pool() -> list[Row]:
    """Let 12 reviews of a second each run in a pool of 4."""
    times = []
    for _ in range(3):
        with reviewed(12) as (project, claude, files):
            claude.behaves(mode="pass", seconds=1)
            async with project.agent(external_runner="claude") as agent:
                times.append(await finish(agent, files))
            assert len(claude.calls) == 12
    middle = statistics.median(times)
    shown = f"{middle:.2f} s = {middle / 3:.2f} x 3 s (median of 3: {', '.join(f'{one:.2f}' for one in times)})"
    return [Row("12 reviews of 1 s, pool of 4", "<= 3.60 s (1.2 x 3 s)", shown, middle <= 3.6)]


async def cpu() -> list[Row]:
    """Compare the gate's own CPU of a review with that of a start of Python."""
    count = 40
    with reviewed(count) as (project, claude, files):
        async with project.agent(external_runner="claude") as agent:
            await agent.start()
            before = time.process_time()
            await agent.finish({"parts": files})
            own = (time.process_time() - before) / count * 1000
        assert len(claude.calls) == count
    started = 30
    before = children()
    for _ in range(started):
        await anyio.run_process([sys.executable, "-c", "pass"])
    python = (children() - before) / started * 1000
    shown = f"{own:.1f} ms of CPU = {own / python:.2f} x {python:.1f} ms (python -c pass)"
    return [Row("the gate's own CPU of one review", "<= 0.50 x python -c pass", shown, own <= 0.5 * python)]


async def sixty() -> list[Row]:
    """Count how many of 60 reviews run at once."""
    with reviewed(60) as (project, claude, files):
        claude.behaves(mode="pass", seconds=0.1)
        async with project.agent(external_runner="claude") as agent:
            seconds = await finish(agent, files)
        spans = [(span["began"], span["ended"]) for span in claude.spans()]
    most = max(sum(began <= moment < ended for began, ended in spans) for moment, _ in spans)
    shown = f"{most} at once, 60 in all, {seconds:.1f} s"
    broken = () if most <= 4 and len(spans) == 60 else (f"60 files in a pool of 4: {shown}",)
    return [Row("60 files, pool of 4", "<= 4 at once", shown, most <= 4, broken)]


def misbehaviours() -> Iterator[Row]:
    """Let a reviewer misbehave in ten ways, in one server."""
    most_rss = 0.0
    strangers: set[str] = set()
    for name, behaviour, expected in MISBEHAVIOURS:
        with reviewed(1, behaviour) as (project, claude, files), started(project) as server:
            base = memory(server, "VmRSS")
            began = time.monotonic()
            answer = server.request("tools/call", name="finished_step", arguments={"outputs": {"parts": files}})
            seconds = time.monotonic() - began
            grown = (memory(server, "VmHWM") - base) / MIB
            survivors = claude.survivors()
            for call in claude.calls:
                strangers |= {one for one in call["env"] if not allowed(one)}
        most_rss = max(most_rss, grown)
        text = "".join(block["text"] for block in answer["result"]["content"])
        clear = expected in text
        fine = clear and not survivors and seconds <= LIMIT + 1
        shown = f"{seconds:.2f} s, {len(survivors)} survive, RSS +{grown:.0f} MiB, {'clear' if clear else text[:60]!r}"
        broken = () if clear and not survivors else (f"{name}: {shown}",)
        yield Row(f"misbehaviour: {name}", f"<= {LIMIT + 1} s, 0 survive", shown, fine, broken)
    yield Row("memory over all ten", "<= 64 MiB more", f"+{most_rss:.0f} MiB", most_rss <= 64)
    shown = f"{len(strangers)} strangers {sorted(strangers)[:3]}" if strangers else "exactly the allow-list"
    broken = (f"the reviewer sees {shown}",) if strangers else ()
    yield Row("environment of the reviewer", "allow-list, no more", shown, not strangers, broken)


def stopped() -> Iterator[Row]:
    """Stop the server in the middle of each of the ten, once and twice."""
    for times in (1, 2):
        survivors, slowest, bad_codes = 0, 0.0, 0
        for _, behaviour, _ in MISBEHAVIOURS:
            with reviewed(1, behaviour) as (project, claude, files), started(project) as server:
                server.send("tools/call", name="finished_step", arguments={"outputs": {"parts": files}})
                time.sleep(0.25)
                began = time.monotonic()
                for _ in range(times):
                    server.process.send_signal(signal.SIGTERM)
                    time.sleep(0.02)
                bad_codes += server.process.wait(20) != 0
                slowest = max(slowest, time.monotonic() - began)
                survivors += len(claude.survivors())
        shown = f"{survivors} survive, slowest end {slowest:.2f} s, {bad_codes} bad exit codes"
        fine = not survivors and not bad_codes
        name = f"server told to stop {'once' if times == 1 else 'twice'}, 10 cases"
        yield Row(name, "0 survive", shown, fine, () if fine else (f"{name}: {shown}",))


def cheats() -> Iterator[Row]:
    """Run the twelve cheats, which are tests."""
    file = "tests/gate/test_cheats.py"
    done = run_tests(file)
    text = (ROOT / file).read_text()
    kinds = len(re.findall(r"^async def test_(?!two_sessions)", text, re.MULTILINE))
    failed = sum(map(int, re.findall(r"(\d+) failed", done.stdout)))
    passed = sum(map(int, re.findall(r"(\d+) passed", done.stdout)))
    shown = f"{failed} succeed of {kinds} kinds ({passed} tests pass)"
    fine = done.returncode == 0 and not failed
    yield Row("twelve cheats", "0 succeed silently", shown, fine, () if fine else (f"cheats: {shown}",))


def strict() -> Iterator[Row]:
    """Run the cheats against a strict gate, which are tests; those through a shell are counted apart."""
    for kind, name in (("cheat", "twenty cheats, strict gate"), ("shell", "strict gate, through a shell")):
        done = run_tests("tests/gate/test_strict.py", "-k", f"test_{kind}")
        failed = sum(map(int, re.findall(r"(\d+) failed", done.stdout)))
        passed = sum(map(int, re.findall(r"(\d+) passed", done.stdout)))
        fine = done.returncode == 0 and not failed
        shown = f"{failed} pass ({passed} tests)" if kind == "cheat" else f"{passed} of 3 are seen"
        broken = () if fine else (f"{name}: {shown}",)
        yield Row(name, "0 pass" if kind == "cheat" else "seen afterwards", shown, fine, broken)


def run_tests(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run tests, and give what pytest says of them."""
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@contextmanager
def started(project: DeepworkProject) -> Iterator[StdioWire]:
    """Start a server whose environment has secrets in it, and a workflow."""
    secrets = dict.fromkeys((*OWN, *SECRETS), "secret")
    options = ("--external-runner", "claude", "--quality-gate-timeout", str(LIMIT), "--log-level", "error")
    server = StdioWire(start_server(project.root, *options, env=secrets))
    try:
        server.greet()
        server.call("start_workflow", goal="g", job_name="demo", workflow_name="main")
        yield server
    finally:
        server.process.kill()
        server.close()


def memory(server: StdioWire, name: str) -> float:
    """Read a value of the process in KiB: `VmRSS` is now, `VmHWM` the most so far."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return float(re.findall(rf"{name}:\s+(\d+)", status)[0])


@contextmanager
def reviewed(count: int, behaviour: dict[str, Any] | None = None) -> Iterator[tuple[DeepworkProject, Any, list[str]]]:
    """Make a project with so many files to be reviewed one by one, and a `claude` on PATH."""
    spec = importlib.util.spec_from_file_location("fake", TESTS / "conftest.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with tempfile.TemporaryDirectory(prefix="deepwork-figures-") as folder:
        for name in ("bin", "project", "config/deepwork"):
            (Path(folder) / name).mkdir(parents=True)
        claude = module.FakeClaude(Path(folder) / "bin")
        claude.behaves(behaviour or {"mode": "pass"})
        missing = (behaviour or {}).get("mode") == "missing"
        command = "/nowhere/claude" if missing else str(claude.program)
        settings = {"plugins": {"settings": {"claude_runner": {"command": command}}}}
        (Path(folder) / "config/deepwork/config.yml").write_text(json.dumps(settings))
        os.environ["XDG_CONFIG_HOME"] = f"{folder}/config"
        project = DeepworkProject(Path(folder) / "project")
        project.write_job(steps=[step("a", outputs={"parts": output("files")}, reviews=[review("parts")])])
        files = [project.write(f"part{number}.md", f"Part {number}\n").name for number in range(count)]
        try:
            yield project, claude, files
        finally:
            for pid in claude.survivors():
                os.kill(pid, signal.SIGKILL)


async def finish(agent: Agent, files: list[str]) -> float:
    """Have the files reviewed, and say how long it took."""
    await agent.start()
    began = time.monotonic()
    reply = await agent.finish({"parts": files})
    assert reply["status"] == "workflow_complete", reply
    return time.monotonic() - began


def children() -> float:
    """Give the CPU seconds of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def allowed(name: str) -> bool:
    """Say whether the reviewer may see a variable."""
    exact = {*(one for one in ENVIRONMENT if not one.endswith("*")), "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"}
    switches = {"CLAUDE_CODE_DISABLE_ATTACHMENTS", "CLAUDE_CODE_DISABLE_FILE_MENTIONS"}
    return name in exact | switches or name.startswith(("LC_", "XDG_", "ANTHROPIC_"))


if __name__ == "__main__":
    main()
