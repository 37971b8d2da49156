"""Runs of agents, cut at random points, with the real Claude Code and Codex from npm, scripted models and no account.

A cut kills the CLI, its server or the runner with SIGKILL, has a vendor refuse for three seconds, closes its
connections, or has it say that the context is full, which headless programs do not compact; the vendor that begins
changes at every sixth. Each run has to complete, with each step once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from bench.ours import count as tokens_of
from report import Report
from scripted_vendor import Vendor, full_context, limit, make_home
from spending import histories

from deepwork.testing import DeepworkProject, step

ROOT = Path(__file__).parents[2]

STEPS = [f"s{number}" for number in range(12)]
CUTS = ("cli", "server", "runner", "limit", "network", "context")
# Runs that hang end some time; a busy machine needs minutes for one.
SECONDS = 900
RESET = 3
MOST_TOKENS = 1500
MOST_PERCENT = 0.5


class Scene:
    """A home without an account, a project, and a model for each vendor."""

    def __init__(self, folder: Path, programs: str) -> None:
        self.project = DeepworkProject(folder / "project")
        self.project.write_job(steps=[step(name) for name in STEPS])
        for name in STEPS:
            self.project.write(f"{name}.md")
        self.vendors = {"claude": Vendor(), "codex": Vendor()}
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")},
            **make_home(folder / "home", programs, **self.vendors),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-stub",
        }

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "deepwork", "run", *words, "--path", str(self.project.root)]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def requests(self) -> int:
        return sum(len(vendor.requests) for vendor in self.vendors.values())

    def session(self) -> dict:
        files = [*self.project.state.glob("session_*.json")]
        return json.loads(files[0].read_text()) if files else {}

    def close(self) -> None:
        for vendor in self.vendors.values():
            vendor.close()


def marked(session_id: str, words: tuple[str, ...]) -> list[int]:
    """Return the processes of a session whose command has one of these words."""
    pids = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if (
                folder.name.isdecimal()
                and f"DEEPWORK_WORKER={session_id}".encode() in (folder / "environ").read_bytes()
            ):
                command = (folder / "cmdline").read_bytes().decode(errors="replace")
                if "supervisor.py" not in command and any(word in command for word in words):
                    pids.append(int(folder.name))
    return pids


def cut(scene: Scene, runner: subprocess.Popen[bytes], kind: str, first: str) -> float:
    """Cut a run, and return when the vendor that refuses may be asked again."""
    session_id = scene.session()["session_id"]
    if kind == "runner":
        runner.kill()
        runner.wait()
    elif kind in ("cli", "server"):
        words = ("\x00serve\x00",) if kind == "server" else ("stream-json", "exec\x00--json")
        for pid in marked(session_id, words):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    else:
        vendor, until = scene.vendors[first], time.time() + RESET
        if kind == "network":
            vendor.closes = True
        elif kind == "context":
            vendor.refuses = full_context(first)
        else:
            vendor.refuses = limit(first, int(until) + 1)
        return until
    return 0.0


class Book:
    """What the runs come to."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.prompts: list[int] = []
        self.pauses: list[float] = []
        self.problems: list[str] = []

    def tell(self, report: Report, count: int) -> None:
        """Report what was measured."""
        report.fact("runs cut before their end", self.counts["cut"])
        report.promise("runs completed", self.counts["complete"], count)
        for name in ("steps repeated", "calls before a reset", "usage counted twice"):
            report.promise(name, self.counts[name])
        report.fact("tokens of the longest prompt to go on (o200k)", max(self.prompts, default=0))
        report.promise(
            f"prompts of more than {MOST_TOKENS:,} tokens", sum(tokens > MOST_TOKENS for tokens in self.prompts)
        )
        report.fact("seconds from an end to the next start, at most", f"{max(self.pauses, default=0):.2f}")
        report.promise("starts of the next agent after more than 1 s", sum(pause > 1 for pause in self.pauses))


def wait_for_request(scene: Scene, process: subprocess.Popen[bytes], chance: random.Random, end: float) -> int:
    """Wait until a random request and a moment after it, and return its number."""
    number = chance.randrange(1, 13)
    while scene.requests < number and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(chance.uniform(0, 0.3))
    return number


def end_refusal(vendor: Vendor, until: float, kind: str, process: subprocess.Popen[bytes]) -> int:
    """Let a vendor work again when its time has come; return how often a limit was asked again before."""
    while time.time() < until and process.poll() is None:
        time.sleep(0.01)
    # The first refusal is how a runner learns of the limit; another one before the end would be a call too many. What
    # was asked before the limit and is only now answered is none, so refusals are counted, and not requests.
    early = max(0, len(vendor.refused) - 1) if kind == "limit" else 0
    vendor.refuses, vendor.closes = None, False
    return early


def cuts(count: int, seed: int) -> None:
    """Cut runs of a job, each at a random point."""
    report = Report(f"runs: a job of {len(STEPS)} steps, each run cut at a random request, seed {seed}")
    programs, chance, book = node_programs(), random.Random(seed), Book()
    for number in range(count):
        kind, first = CUTS[number % len(CUTS)], ("claude", "codex")[number // len(CUTS) % 2]
        names = [first, *({"claude", "codex"} - {first})]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            scene, end = Scene(Path(folder), programs), time.monotonic() + SECONDS
            runner = scene.start("demo", "--goal", "figures", "--with", ",".join(names))
            request = wait_for_request(scene, runner, chance, end)
            is_cut = runner.poll() is None
            if until := cut(scene, runner, kind, first) if is_cut else 0.0:
                book.counts["calls before a reset"] += end_refusal(scene.vendors[first], until, kind, runner)
            if kind == "runner" and is_cut:
                runner = scene.start("--continue", scene.session()["session_id"])
            code = None
            with suppress(subprocess.TimeoutExpired):
                code = runner.wait(max(1.0, end - time.monotonic()))
            runner.kill()
            book.counts["cut"] += is_cut
            outcome = count_run(scene, book, code)
            where = f"{kind:8} {first:7} at request {request:2}"
            print(f"{number + 1:3}  {where}  {'ok' if code == 0 else 'NOT'}{outcome}", file=sys.stderr, flush=True)
            scene.close()
    book.tell(report, count)
    report.finish()


def count_run(scene: Scene, book: Book, code: int | None) -> str:
    """Add a run that has ended, and return what is strange about it."""
    session = scene.session()
    completed_steps = [entry["step_id"] for entry in session["history"] if entry["kind"] == "step_completed"]
    file = scene.project.state / "runs" / session["session_id"] / "events.jsonl"
    events = [json.loads(line) for line in file.read_text().splitlines() if line]
    last = {(event["agent"], event["id"]): event for event in events if event["kind"] == "spent"}
    counted = [sum(event[name] for event in last.values()) for name in ("input_tokens", "output_tokens")]
    served = [sum(vendor.books[index] for vendor in scene.vendors.values()) for index in (0, 1)]
    book.counts["complete"] += code == 0 and session["status"] == "completed"
    book.counts["steps repeated"] += len(completed_steps) - len(set(completed_steps))
    book.counts["usage counted twice"] += counted[0] > served[0] or counted[1] > served[1]
    prompts = [text for vendor in scene.vendors.values() for text in vendor.prompts]
    book.prompts += [tokens_of(text) for text in prompts]
    for before, after in pairwise(events):
        if (before["kind"], after["kind"]) == ("worker_ended", "worker"):
            moments = [datetime.fromisoformat(event["at"]).timestamp() for event in (before, after)]
            book.pauses.append(moments[1] - moments[0])
    ends = [f"{event['number']} {event['end']}" for event in events if event["kind"] == "worker_ended"]
    return "" if code == 0 else f": code {code}, last step {completed_steps[-1:]}, agents: {'; '.join(ends)}"


def spending(count: int, seed: int) -> None:
    """Compare what is counted with the programs' own books, over random histories of spending."""
    report = Report(f"runs: histories of spending against scripted programs, seed {seed}")
    counts = histories(count, seed)
    report.fact("tokens", counts["tokens"])
    report.promise("histories counted to the token and cent", counts["equal"], count)
    report.promise("runs stopped later than the request", counts["stopped late"])
    report.finish()


def waits(seconds: int, _seed: int) -> None:
    """Measure a runner that waits for the limit of an agent, without a database."""
    report = Report(f"runs: a runner that waits for a limit, over {seconds} s")
    with tempfile.TemporaryDirectory() as folder:
        project = DeepworkProject(Path(folder) / "project")
        project.write_job(steps=[step(name) for name in STEPS])
        program = Path(folder) / "claude"
        result = {"type": "result", "is_error": True, "result": f"usage limit reached|{int(time.time()) + 86400}"}
        program.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps(result)}'\nexit 1\n")
        program.chmod(0o755)
        names = {"XDG_STATE_HOME": f"{folder}/state", "XDG_CONFIG_HOME": f"{folder}/config"}
        environment = {**os.environ, **names, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
        command = [sys.executable, "-m", "deepwork", "run", "demo", "--goal", "figures", "--with", "claude"]
        command += ["--path", str(project.root)]
        runner = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        while "may go on at" not in runner.stderr.readline() and runner.poll() is None:
            pass
        before = cpu_seconds(runner.pid)
        time.sleep(seconds)
        share = 100 * (cpu_seconds(runner.pid) - before) / seconds
        rows = [row.split() for row in Path(f"/proc/{runner.pid}/smaps_rollup").read_text().splitlines()]
        private = sum(int(row[1]) for row in rows if row[0].startswith("Private_")) / 1024
        runner.terminate()
        runner.wait()
    report.fact("MiB of private memory", f"{private:.1f}")
    report.fact("percent of a core", f"{share:.2f}")
    report.promise("more than half a percent of a core", share > MOST_PERCENT)
    report.finish()


def cpu_seconds(pid: int) -> float:
    """Return the time that a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def node_programs() -> str:
    """Install the clients that need node, and return the folder of their programs."""
    command = [sys.executable, str(ROOT / "tools" / "clients.py")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


SCENARIOS = {"cuts": cuts, "spending": spending, "waits": waits}
