"""Senders of notifications are killed at any moment; everybody is told of everything all the same."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import click
from report import Progress, Report, seed_option
from servers import Server

from deepwork.paths.user_folders import user_config_file
from deepwork.testing import DeepworkProject, Refused, review, step

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from webhook import SECRET, Webhook

CALM_EVENTS = 60
PATIENCE = 60.0


class Scene:
    """A project under a strict gate, an agent that asks for overrides, and senders."""

    def __init__(self, folder: Path) -> None:
        self.receiver = Webhook()
        self._env = {
            **os.environ,
            "DEEPWORK_WEBHOOK_SECRET": SECRET,
            "DEEPWORK_NO_PLUGINS": "deepwork-orchestration,deepwork-tracking,deepwork-sql,deepwork-review,"
            "deepwork-claude-runner",
        }
        config = user_config_file(os.environ)
        config.parent.mkdir(parents=True)
        config.write_text(
            f"quality_gate: {{strict: true, runner: fake, commands: {{fake: {{run: ['{sys.executable}', -c, '']}}}}}}\n"
            f"notifications: {{webhook: '{self.receiver.url}'}}\n"
        )
        self._root = folder / "project"
        project = DeepworkProject(self._root)
        project.write_job(steps=[step("a", reviews=[review()])])
        project.write("a.md")
        self._server = Server(self._root, env=self._env)
        self._senders: list[subprocess.Popen[bytes]] = []
        self.events: dict[str, float] = {}

    def event(self) -> None:
        """Have an agent ask for an override, which only a person can give."""
        begin = self._server.call("start_workflow", goal="g", job_name="demo", workflow_name="main")["begin_step"]
        try:
            self._server.call("finished_step", outputs={"a.md": "a.md"}, quality_review_override_reason="It is fine")
        except Refused:
            self.events[f"sessions:{begin['session_id']}.a"] = time.monotonic()
        else:
            raise RuntimeError("a strict gate has let an override pass")

    def sender(self) -> subprocess.Popen[bytes]:
        """Start `deepwork inbox --watch --notify`."""
        command = [sys.executable, "-m", "deepwork", "inbox", "--watch", "--notify", "--path", str(self._root)]
        sender = subprocess.Popen(command, env=self._env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._senders.append(sender)
        return sender

    def wait(self) -> bool:
        """Wait until the receiver knows of every event."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.events.keys() <= {item_id for item_id, _ in self.receiver.told}:
                return True
            time.sleep(0.1)
        return False

    def close(self) -> None:
        """End everything."""
        for sender in self._senders:
            end(sender)
        self._server.close()
        self.receiver.close()


@click.command()
@click.option("--count", default=200, show_default=True, help="How many senders to kill.")
@click.option("--within", default=2.0, show_default=True, metavar="SECONDS", help="How late they may be (p95).")
@seed_option
def notifications(count: int, within: float, seed: int) -> None:
    """Kill senders of notifications at random moments: nothing may be lost, and only what was sent may come again."""
    report = Report(f"notifications: senders ended by SIGKILL while agents wait for people, seed {seed}")
    with tempfile.TemporaryDirectory(prefix="deepwork-torture-") as folder:
        scene = Scene(Path(folder))
        try:
            _kill_senders(scene, count, random.Random(seed), report)
            _measure(scene, within, report)
        finally:
            scene.close()
    report.finish()


def end(sender: subprocess.Popen[bytes]) -> None:
    """Kill a sender, and wait until it is gone."""
    sender.kill()
    sender.wait()


def _kill_senders(scene: Scene, count: int, chance: random.Random, report: Report) -> None:
    """Keep two senders, one waiting for the other's lease, and kill either of them, again and again."""
    progress = Progress("kills", count)
    senders = [scene.sender(), scene.sender()]
    killed = 0
    while killed < count:
        scene.event()
        victims = [chance.randrange(2)]
        if chance.random() < 0.5:
            # At the moment of a request, before its answer or just after it; which of them has sent it is not known.
            requested, delay = threading.Event(), chance.choice([0.0, 0.001, 0.003, 0.01])
            scene.receiver.at_request = requested.set
            requested.wait(3.0)
            time.sleep(delay)
            victims = [0, 1]
        else:
            time.sleep(chance.uniform(0, 1.5))
        for victim in victims:
            end(senders[victim])
            senders[victim] = scene.sender()
        killed += len(victims)
        scene.receiver.at_request = None
        progress.step()
    is_complete = scene.wait()
    for sender in senders:
        end(sender)
    notices = scene.receiver.told
    lost = [item_id for item_id in scene.events if item_id not in {item_id for item_id, _ in notices}]
    report.fact("senders killed", killed)
    report.fact("things that waited", len(scene.events))
    report.fact("notifications", len(notices))
    report.fact("repeats, each with an id and state sent before", len(notices) - len(set(notices)))
    report.promise("lost", lost if not is_complete else [])
    states = {item_id for item_id, _ in set(notices)}
    report.promise("second states of an unchanged thing", len(set(notices)) - len(states))
    report.promise("forged or unsigned", scene.receiver.forged)


def _measure(scene: Scene, within: float, report: Report) -> None:
    """Measure, with one sender in peace, how long after an event its notification comes."""
    sender = scene.sender()
    scene.event()
    scene.wait()  # until the sender is there
    scene.receiver.requests.clear()
    scene.receiver.times.clear()
    scene.events.clear()
    for number in range(CALM_EVENTS):
        scene.event()
        time.sleep(0.1 + 0.037 * (number % 10))
    scene.wait()
    sender.terminate()
    exit_code = sender.wait()
    told = zip(scene.receiver.told, scene.receiver.times, strict=True)
    at = dict(reversed([(item_id, when) for (item_id, _), when in told]))
    seconds = sorted(at[item_id] - began for item_id, began in scene.events.items() if item_id in at)
    p95 = seconds[int(len(seconds) * 0.95)] if seconds else float("inf")
    report.fact("event to notification, p50 in seconds", f"{statistics.median(seconds):.2f}" if seconds else "-")
    report.fact("event to notification, p95 in seconds", f"{p95:.2f}")
    report.promise(f"p95 over {within:g} s", int(p95 > within))
    report.promise("events without a notification", len(scene.events) - len(seconds))
    report.promise("exit code of a sender that is told to end", exit_code)
