"""Runs, measured with the real Claude Code and Codex from npm, scripted models and no account.

    python tools/figures.py cuts    a job of 12 steps, cut at random points
    python tools/figures.py idle    what a runner takes while it waits

`cuts` kills the CLI, its server or the runner with SIGKILL, has a vendor refuse for three seconds, or closes its
connections; the vendor that begins changes at every fifth. Each run has to complete, with each step once.
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
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(ROOT / "tools")]
from rows import Row  # noqa: E402
from scripted_vendor import Vendor  # noqa: E402

from deepwork.testing import DeepworkProject, step  # noqa: E402

STEPS = [f"s{number}" for number in range(12)]
CUTS = ("cli", "server", "runner", "limit", "network")
SECONDS = 240
RESET = 3


class Scene:
    """A home without an account, a project, and a model for each vendor."""

    def __init__(self, folder: Path, programs: str) -> None:
        self.project = DeepworkProject(folder / "project")
        self.project.write_job(steps=[step(name) for name in STEPS])
        for name in STEPS:
            self.project.write(f"{name}.md")
        self.vendors = {"claude": Vendor(), "codex": Vendor()}
        codex = folder / "home" / ".codex"
        codex.mkdir(parents=True)
        (codex / "config.toml").write_text(
            'model = "scripted"\nmodel_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\n'
            f'base_url = "{self.vendors["codex"].url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
            "request_max_retries = 0\nstream_max_retries = 0\n"
        )
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")},
            "HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "ANTHROPIC_BASE_URL": self.vendors["claude"].url,
            "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-stub",
            "OPENAI_API_KEY": "stub",
            "CLAUDE_CODE_MAX_RETRIES": "0",
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
            vendor.refuses = (529, {}, {"type": "error", "error": {"type": "overloaded_error", "message": "no"}})
        elif first == "claude":
            names = ("unified-reset", "unified-5h-reset")
            headers = {f"anthropic-ratelimit-{name}": str(int(until) + 1) for name in names}
            headers |= {f"anthropic-ratelimit-unified-{name}": "rejected" for name in ("status", "5h-status")}
            headers |= {"anthropic-ratelimit-unified-representative-claim": "five_hour", "x-should-retry": "false"}
            error = {"type": "rate_limit_error", "message": "This would exceed your rate limit."}
            vendor.refuses = (429, headers, {"type": "error", "error": error})
        else:
            error = {
                "type": "usage_limit_reached",
                "message": "limit",
                "plan_type": "plus",
                "resets_at": int(until) + 1,
            }
            vendor.refuses = (429, {}, {"error": error})
        return until
    return 0.0


def cuts(count: int = 100, seed: int = 1) -> Iterator[Row]:
    """Runs of a job, each cut at a random point."""
    programs = node_programs()
    counts = Counter[str]()
    chance = random.Random(seed)
    for number in range(count):
        kind, first = CUTS[number % len(CUTS)], ("claude", "codex")[number // 5 % 2]
        names = [first, *({"claude", "codex"} - {first})]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            scene = Scene(Path(folder), programs)
            runner = scene.start("demo", "--goal", "figures", "--with", ",".join(names))
            wanted, end = chance.randrange(1, 13), time.monotonic() + SECONDS
            while scene.requests < wanted and runner.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.3))
            is_cut = runner.poll() is None
            until = cut(scene, runner, kind, first) if is_cut else 0.0
            refused_at = len(scene.vendors[first].requests)
            early = 0
            if until:
                # The first refusal is how it learns of the limit; another one before the end would be a call too many.
                while time.time() < until and runner.poll() is None:
                    time.sleep(0.01)
                early = max(0, len(scene.vendors[first].requests) - refused_at - 1)
                scene.vendors[first].refuses = None
            session_id = scene.session().get("session_id", "")
            if kind == "runner" and is_cut:
                runner = scene.start("--continue", session_id)
            code = None
            with suppress(subprocess.TimeoutExpired):
                code = runner.wait(max(1.0, end - time.monotonic()))
            runner.kill()
            session = scene.session()
            done = [entry["step_id"] for entry in session["history"] if entry["kind"] == "step_completed"]
            events = (scene.project.state / "runs" / session_id / "events.jsonl").read_text().splitlines()
            records = [json.loads(line) for line in events if line]
            last = {(event["agent"], event["id"]): event for event in records if event["kind"] == "spent"}
            totals = sum(event["input_tokens"] for event in last.values())
            counts["cut"] += is_cut
            counts["complete"] += code == 0 and session["status"] == "completed"
            counts["steps repeated"] += len(done) - len(set(done))
            counts["calls before a reset"] += early
            counts["more counted than the models served"] += totals > sum(
                vendor.books[0] for vendor in scene.vendors.values()
            )
            problem = "" if code == 0 else f": code {code}, {done[-1:]}"
            where = f"{kind:8} {first:7} at request {wanted:2}"
            print(f"{number + 1:3}  {where}  {'ok' if code == 0 else 'NOT'}{problem}", file=sys.stderr)
            scene.close()
    complete = f"{counts['complete']} of {count}; {counts['cut']} were cut before their end"
    yield Row(f"runs cut, seed {seed}", "all complete", complete, counts["complete"] == count)
    for name in ("steps repeated", "calls before a reset", "more counted than the models served"):
        yield Row(name, "0", str(counts[name]), not counts[name])


def idle() -> Iterator[Row]:
    """A runner that waits for an hour."""
    programs = node_programs()
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder), programs)
        vendor = scene.vendors["claude"]
        headers = {f"anthropic-ratelimit-{name}": str(int(time.time()) + 3600) for name in ("unified-reset",)}
        headers |= {"anthropic-ratelimit-unified-status": "rejected", "x-should-retry": "false"}
        error = {"type": "rate_limit_error", "message": "This would exceed your rate limit."}
        vendor.refuses = (429, headers, {"type": "error", "error": error})
        runner = scene.start("demo", "--goal", "figures", "--with", "claude")
        while not any(entry["kind"] == "waiting" for entry in scene.session().get("history", ())):
            time.sleep(0.1)
        time.sleep(2)
        before, moment = used(runner.pid), time.monotonic()
        time.sleep(30)
        share = (used(runner.pid) - before) / (time.monotonic() - moment)
        lines = Path(f"/proc/{runner.pid}/smaps_rollup").read_text().splitlines()
        private = sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024
        runner.kill()
        runner.wait()
        scene.close()
    yield Row("a runner that waits", "", f"{share:.2%} of a core, {private:.0f} MiB private", reached=True)


def node_programs() -> str:
    """Install the clients that need node, and return the folder of their programs."""
    command = [sys.executable, str(ROOT / "tools" / "clients.py")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def used(pid: int) -> float:
    """Return the processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
