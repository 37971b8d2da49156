"""Servers are told to end at random moments: they go at once, leave nothing behind, and have lost nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import click
from kills import Victim, torment
from ledger import complaints
from report import Report, seed_option
from sample_project import Project, aftermath
from servers import TRANSPORTS, AnyServer, Server

from deepwork.paths.folder import is_leftover
from deepwork.testing import Gone, Refused, review, start_server, step
from deepwork.testing.wire import PATIENCE

LONGEST_START = 1.5
GIVEN_UP = 30.0

WAYS = ("SIGTERM", "SIGINT", "closed stdin")
MOMENTS = ("start-up", "idle", "call", "review")

# Before a server can set up anything, a signal does what it does to every program.
CODES_AT_START = {"SIGTERM": {0, -signal.SIGTERM}, "SIGINT": {0, 130, -signal.SIGINT}, "closed stdin": {0}}

REVIEWER = """
import pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[1:] != ["child"]:
    subprocess.Popen([sys.executable, __file__, "child"])
    pathlib.Path(__file__).with_name("reviewing").touch()
time.sleep(60)
"""


class Stopped(Victim):
    """A project whose servers are told to end, and what that was like."""

    def __init__(self, folder: Path, seed: str, limit: float) -> None:
        root = folder / "project"
        root.mkdir()
        super().__init__(root, seed, logs=folder, transport="mixed")
        self._limit = limit
        self._folder = folder
        self._temporary = folder / "temporary"
        self._temporary.mkdir()
        self.env["TMPDIR"] = str(self._temporary)
        self._reviews = Reviews(folder, self.env)
        self.moment = ""
        self.slowest = 0.0

    def once(self) -> None:
        """Choose a moment, bring a server there, and end it."""
        self.moment = self.dice.choice(MOMENTS)
        self.counts[self.moment] += 1
        if self.moment == "start-up":
            self._end_at_start()
        elif self.moment == "review":
            self._reviews.interrupt(self.dice, self.end)
        elif self.moment == "idle":
            server = self.open()
            self.check(server)
            self.end(server)
        else:
            super().once()

    def end(self, server: AnyServer) -> None:
        """End a server that has said that it is there."""
        way = self.dice.choice(WAYS if isinstance(server, Server) else WAYS[:2])
        self._end(server.process, way, {0})

    def check(self, server: AnyServer | None = None) -> None:
        """Do it for the project of the reviews too."""
        super().check(server)
        for problem in self._reviews.strays():
            self.complain("half-applied", problem)

    def _end_at_start(self) -> None:
        way = self.dice.choice(WAYS)
        options = ["--transport", "http", "--port", "0"] if way != "closed stdin" and self.dice.random() < 0.5 else []
        log = self._folder / f"server-{self.counts['start-up']}.log"
        process = start_server(self.project.root, *options, env=self.env, log=log)
        time.sleep(self.dice.uniform(0, LONGEST_START))
        self._end(process, way, CODES_AT_START[way])
        if process.returncode == -signal.SIGINT:  # Python was still loading, and has told so in its own way
            self.counts["too early"] += 1
            log.unlink()

    def _end(self, process: subprocess.Popen[bytes], way: str, codes: set[int]) -> None:
        about = f"{way} during {self.moment}"
        self.counts[way] += 1
        began = time.monotonic()
        if way == "closed stdin":
            assert process.stdin
            process.stdin.close()
        else:
            process.send_signal(signal.Signals[way])
        try:
            process.wait(GIVEN_UP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        seconds = time.monotonic() - began
        self.slowest = max(self.slowest, seconds)
        if seconds > self._limit:
            self.complain("late", f"{about}: {seconds:.1f} s")
        if process.returncode not in codes:
            self.complain("codes", f"{about}: {process.returncode}")
        for leftover in [*processes_about(self._folder), *self._leftovers()]:
            self.complain("left", f"{about}: {leftover}")

    def _leftovers(self) -> list[str]:
        states = [self.project.state, self._reviews.project.state]
        beside = [file.name for state in states for file in state.glob(".*") if is_leftover(file.name)]
        return [*beside, *(file.name for file in self._temporary.iterdir())]


class Reviews:
    """A project of its own, in which a slow program reviews: its sessions stay where they are."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.project = Project(folder / "reviews")
        self.project.write_job("demo", [step("a", reviews=[review()]), step("b")], {"main": ["a", "b"]})
        self.project.write("a.md")
        # Beside the project: a script of the project would wait for trust.
        program = folder / "slow.py"
        program.write_text(REVIEWER)
        self._marker = folder / "reviewing"
        command = {"run": [sys.executable, str(program)]}
        Project(folder).write(
            "config/deepwork/config.yml", json.dumps({"quality_gate": {"commands": {"slow": command}}})
        )
        self._folder = folder
        self._env = {**env, "XDG_CONFIG_HOME": str(folder / "config"), "DEEPWORK_EXTERNAL_RUNNER": "slow"}
        self._session_id = ""

    def interrupt(self, dice: random.Random, end: Callable[[AnyServer], None]) -> None:
        """End a server while its reviewer is at work."""
        server = dice.choice(TRANSPORTS["mixed"])(self.project.root, env=self._env, logs=self._folder)
        if not self._session_id:
            started = server.call("start_workflow", goal="wait", job_name="demo", workflow_name="main")
            self._session_id = started["begin_step"]["session_id"]
        thread = threading.Thread(target=self._submit, args=[server])
        thread.start()
        deadline = time.monotonic() + PATIENCE
        while not self._marker.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        self._marker.unlink()
        time.sleep(dice.uniform(0, 0.2))
        end(server)
        thread.join()

    def strays(self) -> list[str]:
        """Find what interrupted reviews have changed, besides the history."""
        after = aftermath(self.project)
        unreadable = [*after.unreadable]
        for session in after.sessions.values():
            step = session.step_progress["a"]
            if (session.status, session.current_step_id, step.quality_attempts) != ("active", "a", 0):
                unreadable.append(f"{session.session_id} after a review was interrupted: {session.status}, {step}")
        return unreadable

    def _submit(self, server: AnyServer) -> None:
        arguments = {"outputs": {"a.md": "a.md"}, "session_id": self._session_id, "step_id": "a"}
        with suppress(Gone, Refused):
            server.call("finished_step", **arguments)


def processes_about(folder: Path) -> list[str]:
    """List the processes that work in a folder or were started with something in it."""
    processes = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in command or os.readlink(place / "cwd").startswith(str(folder)):
                processes.append(f"process {place.name}: {command}")
    return processes


@click.command()
@click.option("--count", default=200, show_default=True, help="How many servers to end.")
@click.option("--within", "limit", default=2.0, show_default=True, metavar="SECONDS", help="How long an end may take.")
@seed_option
def stops(count: int, limit: float, seed: int) -> None:
    """End servers in order at random moments: they go at once, and leave nothing behind."""
    report = Report(f"stops: servers told to end at random moments, on stdio and HTTP, seed {seed}")
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # background jobs of a shell ignore it, and so would servers
    victims: list[Stopped] = []

    def victim(folder: Path, chance: str) -> AbstractContextManager[Stopped]:
        victims.append(Stopped(folder, chance, limit))
        return nullcontext(victims[-1])

    torment(report, "stops", count, seed, victim)
    counts = sum((victim.counts for victim in victims), Counter())
    for name in (*MOMENTS, *WAYS):
        report.fact(f"  {'by' if name in WAYS else 'during'} {name}", counts[name])
    report.fact("interrupted before Python had loaded the program", counts["too early"])
    report.fact("seconds that the slowest end took", f"{max(victim.slowest for victim in victims):.2f}")
    report.promise(f"ends that took more than {limit:g} s", complaints(victims, "late"))
    report.promise("wrong exit codes", complaints(victims, "codes"))
    report.promise("processes and temporary files left behind", complaints(victims, "left"))
    report.finish()
