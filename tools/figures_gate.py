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
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self

import anyio

from deepwork.files.processes import ENVIRONMENT
from deepwork.testing import Agent, DeepworkProject, output, review, step

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
    ("wrong schema", {"mode": "answer", "answer": {"verdict": "good"}}, "the answer holds no verdict"),
    ("exit 1", {"mode": "exit", "code": 1}, "Claude ended with code 1: something broke"),
    ("missing", {"mode": "missing"}, "cannot be started"),
    ("slow", {"mode": "pass", "seconds": 30}, f"within {LIMIT} s"),
    ("non-UTF-8", {"mode": "raw", "bytes": base64.b64encode(b"\xff\xfe{}").decode()}, "Claude printed no JSON"),
    ("killed", {"mode": "killed"}, "Claude was killed by signal 9"),
]


@dataclass(frozen=True)
class Row:
    """One figure."""

    figure: str
    goal: str
    measured: str
    reached: bool
    broken: bool = False


def main() -> int:
    """Measure everything and print a table."""
    logging.disable()
    rows: list[Row] = []
    print(f"{'figure':<38}  {'goal':<24}  {'measured':<58}  result")
    for row in chain(anyio.run(pool), anyio.run(cpu), anyio.run(sixty), misbehaviours(), stopped(), cheats()):
        rows.append(row)
        result = "BROKEN" if row.broken else "reached" if row.reached else "missed"
        print(f"{row.figure:<38}  {row.goal:<24}  {row.measured:<58}  {result}", flush=True)
    return int(any(row.broken for row in rows))


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
    return [Row("60 files, pool of 4", "<= 4 at once", shown, most <= 4, broken=most > 4 or len(spans) != 60)]


def misbehaviours() -> Iterator[Row]:
    """Let a reviewer misbehave in ten ways, in one server."""
    most_rss = 0.0
    strangers: set[str] = set()
    for name, behaviour, expected in MISBEHAVIOURS:
        with reviewed(1, behaviour) as (project, claude, files), Server(project) as server:
            server.call("start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main"})
            base = server.memory("VmRSS")
            began = time.monotonic()
            answer = server.call("finished_step", {"outputs": {"parts": files}})
            seconds = time.monotonic() - began
            grown = (server.memory("VmHWM") - base) / MIB
            survivors = claude.survivors()
            for call in claude.calls:
                strangers |= {one for one in call["env"] if not allowed(one)}
        most_rss = max(most_rss, grown)
        clear = expected in answer
        fine = clear and not survivors and seconds <= LIMIT + 1
        shown = (
            f"{seconds:.2f} s, {len(survivors)} survive, RSS +{grown:.0f} MiB, {'clear' if clear else answer[:60]!r}"
        )
        yield Row(
            f"misbehaviour: {name}", f"<= {LIMIT + 1} s, 0 survive", shown, fine, broken=not clear or bool(survivors)
        )
    yield Row("memory over all ten", "<= 64 MiB more", f"+{most_rss:.0f} MiB", most_rss <= 64)
    shown = f"{len(strangers)} strangers {sorted(strangers)[:3]}" if strangers else "exactly the allow-list"
    yield Row("environment of the reviewer", "allow-list, no more", shown, not strangers, broken=bool(strangers))


def stopped() -> Iterator[Row]:
    """Stop the server in the middle of each of the ten, once and twice."""
    for times in (1, 2):
        survivors, slowest, bad_codes = 0, 0.0, 0
        for _, behaviour, _ in MISBEHAVIOURS:
            with reviewed(1, behaviour) as (project, claude, files), Server(project) as server:
                server.call("start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main"})
                server.send("tools/call", {"name": "finished_step", "arguments": {"outputs": {"parts": files}}}, 99)
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
        yield Row(name, "0 survive", shown, fine, broken=not fine)


def cheats() -> Iterator[Row]:
    """Run the twelve cheats, which are tests."""
    file = "tests/gate/test_cheats.py"
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    text = (ROOT / file).read_text()
    kinds = len(re.findall(r"^async def test_(?!two_sessions)", text, re.MULTILINE))
    failed = sum(map(int, re.findall(r"(\d+) failed", done.stdout)))
    passed = sum(map(int, re.findall(r"(\d+) passed", done.stdout)))
    shown = f"{failed} succeed of {kinds} kinds ({passed} tests pass)"
    fine = done.returncode == 0 and not failed
    yield Row("twelve cheats", "0 succeed silently", shown, fine, broken=not fine)


class Server:
    """`deepwork serve` as a process, spoken to line by line."""

    def __init__(self, project: DeepworkProject) -> None:
        secret = dict.fromkeys((*OWN, *SECRETS), "secret")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "deepwork", "serve", "--path", str(project.root)),
                *("--external-runner", "claude", "--quality-gate-timeout", str(LIMIT), "--log-level", "error"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **secret},
        )
        self._number = 0

    def __enter__(self) -> Self:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "figures", "version": "1"}}
        self.ask("initialize", hello)
        self.send("notifications/initialized", {})
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()

    def send(self, method: str, params: dict[str, Any], number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        line = json.dumps(message if number is None else {**message, "id": number})
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self.send(method, params, self._number)
        assert self.process.stdout
        while True:
            answer: dict[str, Any] = json.loads(self.process.stdout.readline())
            if answer.get("id") == self._number:
                return answer

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool, and give all that the agent reads."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return "".join(block["text"] for block in answer["result"]["content"])

    def memory(self, name: str) -> float:
        """Read a value of the process in KiB: `VmRSS` is now, `VmHWM` the most so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
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
    return name in exact or name.startswith(("LC_", "XDG_", "ANTHROPIC_"))


if __name__ == "__main__":
    sys.exit(main())
