"""Texts to agents at random moments, while the servers that hand them over are killed."""

from __future__ import annotations

import json
import random
import re
import tempfile
import time
import uuid
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import click
from people import PERSON, in_project
from report import Progress, Report, seed_option
from sample_project import Project, make_project
from servers import Restarted

from deepwork.api import Project as OpenedProject

TEXTS = re.compile(r"^\[([^\],]+)(, again)?\] (.*(?:\n\|.*)*)", re.MULTILINE)
# So many texts fit into the quota of one client session.
EACH = 20
# A server gives a plugin less than this; what the machine delays for longer comes with the next call.
WAITED = 700.0
ABOUT = {"paths": ["", ""], "arguments": "", "response": "", "stop_hook_active": ""}


class Window:
    """A client session with a session of ours and an agent, and what it was sent and has read."""

    def __init__(self, server: Restarted, project: Project) -> None:
        self._server = server
        self._project = project
        self.session = uuid.uuid4().hex
        self.expected: dict[str, str] = {}
        self.read: Counter[str] = Counter()
        self.late: list[str] = []
        self.unmarked: list[str] = []
        self.milliseconds: list[float] = []
        started = {"goal": "g", "job_name": "demo", "workflow_name": "main"}
        self.session_id = self.call("start_workflow", **started)["begin_step"]["session_id"]
        self.agent = self.call("agent_register", name=f"agent {self.session[:6]}", runtime="custom")["id"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool of ours, with its hook after it."""
        text = self._server.text(tool, **arguments)
        self.breathe(f"mcp__deepwork__{tool}", arguments=json.dumps(arguments), response=text)
        reply: dict[str, Any] = json.loads(text)
        return reply

    def breathe(self, tool: str = "Bash", **about: Any) -> None:
        """Let the client tell of a tool, and read what the next request of the model has."""
        waiting = {number for number in self.expected if not self.read[number]}
        started = time.perf_counter()
        text = self._server.text("hook", event="PostToolUse", session=self.session, tool=tool, **{**ABOUT, **about})
        self.milliseconds.append((time.perf_counter() - started) * 1000)
        context = json.loads(text).get("hookSpecificOutput", {}).get("additionalContext", "")
        for _, again, content in TEXTS.findall(context):
            for number, words in self.expected.items():
                if words in content:
                    if self.read[number] and not again:
                        self.unmarked.append(number)
                    self.read[number] += 1
        if self.milliseconds[-1] < WAITED:
            self.late += [number for number in waiting if not self.read[number]]

    def end(self) -> None:
        """Read what still waits, and end the workflow: nothing can start on top of a paused one."""
        self.breathe()
        self._server.text("abort_workflow", explanation="over", session_id=self.session_id)

    def cut(self) -> None:
        """Send the call of a hook, and kill the server before its answer is read."""
        self._server.cut(
            random.random() * 0.02, "hook", event="PostToolUse", session=self.session, tool="Bash", **ABOUT
        )

    def send(self, kind: str, number: str, sender: str) -> None:
        """Let a person or an agent say something to it, in another process than its server's."""
        words = f"Text {number}."
        if kind == "mail":
            message = {"sender_id": sender, "recipient_id": self.agent, "message_type": "query", "body": words}
            self._server.text("message_send", **message)
        elif kind == "collision":
            words = f"{number}.txt was changed by"
            path = str(self._project.root / f"{number}.txt")
            event = {**ABOUT, "event": "PostToolUse", "session": f"other-{number}", "tool": "Write", "paths": [path]}
            self._server.text("hook", **event)
            self.expected[number] = words
            self.breathe("Edit", paths=[path, ""])
            return
        else:
            in_project(self._project.root, partial(self._intervene, kind, words))
        self.expected[number] = words

    async def _intervene(self, kind: str, words: str, project: OpenedProject) -> None:
        interventions = project.interventions()
        session = await interventions.named(self.session_id)
        await (interventions.pause if kind == "pause" else interventions.say)(session, words, PERSON)


@click.command()
@click.option("--count", default=1000, show_default=True, help="How many texts.")
@click.option("--kills", default=50, show_default=True, help="How many servers to kill.")
@seed_option
def deliveries(count: int, kills: int, seed: int) -> None:
    """Send texts to agents while servers are killed: each text is in the next request, and repeated only if marked."""
    dice = random.Random(seed)
    report = Report(f"{count} texts, {kills} kills")
    with tempfile.TemporaryDirectory() as folder:
        project = make_project(Path(folder) / "project")
        server = Restarted(project.root)
        windows = _run(server, project, dice, count, kills)
        server.wire.close()
    lost = [number for window in windows for number in window.expected if not window.read[number]]
    repeated = sum(window.read[number] - 1 for window in windows for number in window.expected if window.read[number])
    times = sorted(time for window in windows for time in window.milliseconds)
    report.fact("texts", sum(len(window.expected) for window in windows))
    report.fact("repeated after a kill, marked", repeated)
    report.fact("hook p50 / p95, ms", f"{times[len(times) // 2]:.1f} / {times[len(times) * 95 // 100]:.1f}")
    report.fact("hooks that took longer than 0.7 s", sum(time >= WAITED for time in times))
    report.promise("lost", lost)
    report.promise("later than the next request", [number for window in windows for number in window.late])
    report.promise("repeated without a mark", [number for window in windows for number in window.unmarked])
    report.promise("more repetitions than kills allow", max(0, repeated - kills * EACH))
    report.finish()


def _run(server: Restarted, project: Project, dice: random.Random, count: int, kills: int) -> list[Window]:
    numbers = [*range(count)]
    killed = {*dice.sample(numbers, min(kills, count))}
    progress = Progress("texts", count)
    sender = json.loads(server.text("agent_register", name="sender", runtime="custom"))["id"]
    windows: list[Window] = []
    for number in numbers:
        if number % (EACH // 2) == 0:  # half of the quota, so that repetitions fit, too
            if windows:
                windows[-1].end()
            windows.append(Window(server, project))
        window = windows[-1]
        is_paused = any(words.startswith("Pause") for words in window.expected.values())
        kinds = ["mail", "say", "collision", *([] if is_paused or number % EACH else ["pause"])]
        window.send(dice.choice(kinds), f"{number:05}", sender)
        if number in killed:
            window.cut() if dice.random() < 0.5 else server.restart()
        window.breathe()
        progress.step()
    for window in windows:
        window.breathe()
    return windows
