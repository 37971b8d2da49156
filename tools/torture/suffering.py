"""Calls while something is in trouble: each says why it fails, leaves everything as it was, and works again later."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from report import TOLD_EVERY
from sample_project import aftermath
from scenes import FIRST_START, Scene, Stage
from servers import tracebacks
from stores import Files

from deepwork.builtin.json_store.changes import CHANGES
from deepwork.paths.folder import is_leftover
from deepwork.testing import Refused, result_of

# Longer than any server tries again before it gives up, for all calls that wait behind each other.
LONGEST = 300.0

Reply = dict[str, Any]


@dataclass
class Trouble:
    """What happens to a call.

    Attributes:
        name: What it is, for complaints.
        causes: One of these texts is in each refusal; without any the call has to get over it.
        during: Makes the context that is in trouble.
    """

    name: str
    causes: Sequence[str]
    during: Callable[[], AbstractContextManager[Any]]


class Situation:
    """A call that is to be made, and what is stored before."""

    def __init__(self, stage: Stage, scene: Scene) -> None:
        self._stage = stage
        self.scene = scene
        self._arguments = scene.prepare(stage)
        self.before = self.contents()
        self.sessions = self._count()

    def send(self) -> Future[dict[str, Any]]:
        """Make the call."""
        return self._stage.server.send("tools/call", name=self.scene.tool, arguments=self._arguments)

    def call(self) -> tuple[Reply | None, str]:
        """Make the call, and wait for it."""
        return self.read(self.send())

    def read(self, answer: Future[dict[str, Any]]) -> tuple[Reply | None, str]:
        """Wait for an answer as long as it takes; return the reply, or the text of the refusal."""
        try:
            reply = result_of(answer.result(LONGEST))
        except Refused as refused:
            return None, str(refused)
        return reply, str(reply.get("feedback")) if self.scene.answers else ""

    def contents(self) -> dict[str, Any]:
        """Read everything that is stored, review and resume files included; not locks, notes, nor what was cut off."""
        own = {"filler", CHANGES, *([".gitignore"] if self.scene is FIRST_START else [])}
        files = {
            file.name: file.read_bytes()
            for file in self._stage.project.state.glob("*")
            if not is_leftover(file.name) and file.suffix != ".lock" and file.name not in own
        }
        return files | self._stage.project.store.contents()

    def excess(self) -> list[str]:
        """Return what was done more or less often than once, now that the call was made."""
        after = aftermath(self._stage.project)
        new = self._count() - self.sessions
        wrong = [] if new == (self.scene.tool == "start_workflow") else [f"{new} sessions were started"]
        return wrong + after.inconsistent + after.unreadable

    def _count(self) -> int:
        return len(self._stage.project.store.documents(self._stage.project.state))


class Suffering:
    """What was done to calls, and what came of it."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.unnamed: list[str] = []
        self.changed: list[str] = []
        self.stuck: list[str] = []
        self.not_once: list[str] = []
        self._told = time.monotonic()

    def suffer(self, stage: Stage, scene: Scene, trouble: Trouble) -> tuple[bool, str]:
        """Make a call in trouble, and again without if it failed; return whether it did, and the stack afterwards."""
        situation = Situation(stage, scene)
        with trouble.during():
            reply, text = situation.call()
        failed = self._judge(stage, situation, trouble, reply, text)
        if failed:
            reply, _ = situation.call()
        self._check_success(stage, situation, trouble, reply)
        stage.clear()
        return failed, str(reply and reply.get("stack"))

    def suffer_each(self, stage: Stage, scenes: Sequence[Scene], *troubles: Trouble) -> int:
        """Make calls in one trouble after the other, and return how many failed."""
        return sum(self.suffer(stage, scene, trouble)[0] for scene in scenes for trouble in troubles)

    def suffer_together(self, stage: Stage, scenes: Sequence[Scene], trouble: Trouble) -> str:
        """Make calls at once in a trouble that lasts longer than servers wait; tell how long they took to say so."""
        situations = [Situation(stage, scene) for scene in scenes]
        before = situations[-1].contents()
        with trouble.during():
            began = time.monotonic()
            answers = [situation.send() for situation in situations]
            results = [situation.read(answer) for situation, answer in zip(situations, answers, strict=True)]
            taken = time.monotonic() - began
        for situation, (reply, text) in zip(situations, results, strict=True):
            situation.before = before
            self._judge(stage, situation, trouble, reply, text)
        for situation, (reply, _) in zip(situations, results, strict=True):
            if reply is None and situation.call()[0] is None:
                self.stuck.append(f"{situation.scene.name}, after {trouble.name}")
        self.not_once += aftermath(stage.project).inconsistent
        stage.clear()
        refused = sum(reply is None for reply, _ in results)
        return f"{trouble.name}: {refused} of {len(results)} calls at once were refused, the last after {taken:.0f} s"

    def close(self, stage: Stage) -> None:
        """End the servers of a stage, and look into their logs."""
        stage.close()
        self.counts["tracebacks"] += tracebacks(stage.project.root)

    def _judge(self, stage: Stage, situation: Situation, trouble: Trouble, reply: Reply | None, text: str) -> bool:
        """Look at what became of a call in trouble; return whether it failed."""
        scene = situation.scene
        self.counts["calls"] += 1
        if time.monotonic() - self._told > TOLD_EVERY:
            self._told = time.monotonic()
            print(f"faults: {self.counts['calls']:,} calls, now {trouble.name}", file=sys.stderr, flush=True)
        if reply is not None and not any(cause in text for cause in trouble.causes):
            return False
        self.counts["refused"] += 1
        if not any(cause in text for cause in trouble.causes):
            self.unnamed.append(f"{scene.name}, {trouble.name}: {text[:200]!r}")
        home = stage.project.state.parent
        if trouble.name == f"fsync {home}" and stage.project.state.exists():
            self.changed.append(f"{scene.name}: a folder that could not be synced is trusted from then on")
        before, after = situation.before, situation.contents()
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                self.changed.append(f"{scene.name}, {trouble.name}: {name}")
        return True

    def _check_success(self, stage: Stage, situation: Situation, trouble: Trouble, reply: Reply | None) -> None:
        where = f"{situation.scene.name}, after {trouble.name}"
        if reply is None:
            self.stuck.append(where)
            return
        self.not_once += [f"{where}: {text}" for text in situation.excess()]
        is_first = situation.scene is FIRST_START and isinstance(stage.project.store, Files)
        if is_first and (stage.project.state / ".gitignore").read_text() != "*\n":
            self.stuck.append(f"{where}: the state is in git's sight")
