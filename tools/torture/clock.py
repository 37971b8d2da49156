"""The clock of a server is wrong, or jumps: agents must get the same answers, in the same order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click
from report import Report
from sample_project import aftermath, make_project, tell_aftermath
from servers import Server

from deepwork.testing import Refused, step

DAY = 86400
BACK, AHEAD = -400 * DAY, 30 * 365 * DAY
RIGHT, JUMPING = "as it is", "jumping between them"
CLOCKS = {RIGHT: [0], "400 days back": [BACK], "30 years ahead": [AHEAD], JUMPING: [0, BACK, AHEAD]}

INJECTED = Path(__file__).parent / "injected" / "clock"
ID = re.compile(r"\b[0-9a-f]{32}\b")
MOMENT = re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.+Z]+|\b\d{8}\b|\b\d+ (s|min|h|d) ago\b")


class Clock:
    """Makes the clocks of processes wrong, by libfaketime where it is installed."""

    def __init__(self, folder: Path, *, injected: bool) -> None:
        self._file = folder / "clock"
        library = None if injected else _libfaketime()
        self.name = "libfaketime" if library else "a clock injected into Python"
        if library:
            self.env = {
                "LD_PRELOAD": str(library),
                "FAKETIME_TIMESTAMP_FILE": str(self._file),
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        else:
            path = os.pathsep.join(filter(None, [str(INJECTED), os.environ.get("PYTHONPATH")]))
            self.env = {"PYTHONPATH": path, "DEEPWORK_CLOCK": str(self._file)}
        self.set(0)

    def set(self, shift: int) -> None:
        """Let all clocks be wrong by this, from now on."""
        beside = self._file.with_suffix(".new")
        beside.write_text(f"{shift:+d}")
        beside.replace(self._file)


class Life:
    """The same calls in every project; only the clock differs."""

    def __init__(self, root: Path, clock: Clock, shifts: list[int]) -> None:
        root.mkdir()
        self.project = make_project(root)
        self._clock = clock
        self._shifts = shifts
        self._used: set[int] = set()
        self._names: dict[str, str] = {}
        self._server = self._opened()
        self.transcript: list[str] = []
        for number, ask in enumerate(self._calls()):
            shift = shifts[number % len(shifts)]
            self._used.add(shift)
            clock.set(shift)
            self.transcript.append(self.named(self._answer(ask)))
        self._listing = self._listed()
        self._server.close()
        self.after = aftermath(self.project)

    def _calls(self) -> Iterator[Callable[[], Any]]:
        """Yield one action after the other to be done under a clock."""
        first = yield from self._started()
        yield lambda: self._finish(first, "a")
        second = yield from self._started()
        yield lambda: self._finish(second, "a")
        yield lambda: self._finish(first, "a")  # a repeat
        yield lambda: self._server.call("abort_workflow", explanation="enough", session_id=second)
        for workflow in ("first", "second"):
            yield partial(self._edited, workflow)
        yield lambda: self._server.call("finished_step", outputs={}, session_id=first, step_id="?")
        yield self._restart
        third = yield from self._started()
        for name in ("c", "b", "d"):
            yield partial(self._finish, first, name)
        yield self._restart
        for name in ("f", "e"):
            yield partial(self._finish, first, name)
        yield lambda: self._finish(third, "a")
        yield lambda: self._finish(first, "e")  # a repeat of the last
        yield lambda: self._server.call("finished_step", outputs={}, session_id="f" * 32, step_id="a")

    def _started(self) -> Generator[Callable[[], Any], None, str]:
        ids: list[str] = []

        def start() -> dict[str, Any]:
            reply = self._server.call("start_workflow", goal="in time", job_name="demo", workflow_name="main")
            ids.append(reply["begin_step"]["session_id"])
            self._names[ids[0]] = f"session {len(self._names) + 1}"
            return reply

        yield start
        return ids[0]

    def _finish(self, session_id: str, name: str) -> dict[str, Any]:
        outputs = {f"{name}.md": f"{name}.md"}
        return self._server.call("finished_step", outputs=outputs, session_id=session_id, step_id=name)

    def _edited(self, workflow: str) -> list[str]:
        """Edit a job, and see what the server makes of it at once."""
        self.project.write_job("other", [step("a")], {workflow: ["a"]})
        jobs = self._server.call("get_workflows")["jobs"]
        return [flow["name"] for job in jobs for flow in job["workflows"]]

    def _restart(self) -> str:
        self._server.close()
        self._server = self._opened()
        return "restarted"

    def _opened(self) -> Server:
        return Server(self.project.root, env=self._clock.env)

    def _answer(self, ask: Callable[[], Any]) -> str:
        try:
            return json.dumps(ask(), sort_keys=True)
        except Refused as refused:
            return str(refused)

    def named(self, text: str) -> str:
        """Replace ids by their names, and make times and folders look alike everywhere."""
        text = MOMENT.sub("TIME", text.replace(str(self.project.root), "ROOT"))
        return ID.sub(lambda match: self._names.get(match[0], "unknown"), text)

    def _listed(self) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "deepwork", "sessions", "list", "--all", "--json"]
        env = {**os.environ, **self._clock.env}
        ended = subprocess.run(
            [*command, "--path", str(self.project.root)], capture_output=True, text=True, check=True, env=env
        )
        sessions: list[dict[str, Any]] = json.loads(ended.stdout)["sessions"]
        return sessions

    def listed(self) -> list[str]:
        """Return the sessions as `deepwork sessions list` has them."""
        return [self.named(session["session_id"]) for session in self._listing]

    def disorder(self) -> list[str]:
        """Find what is wrong with the listing as such: not in order of the times that it shows, or not complete."""
        times = [row["updated_at"] for row in self._listing]
        stored = sorted((name, session.status) for name, session in self.after.sessions.items())
        listed = sorted((row["session_id"], row["status"]) for row in self._listing)
        return [
            f"{listing}"
            for listing, right in ((times, sorted(times, reverse=True)), (listed, stored))
            if listing != right
        ]

    def histories(self) -> dict[str, list[tuple[str, str | None]]]:
        """Return the entries of each session, in the order of its file."""
        return {
            self.named(name): [(event.kind, event.step_id) for event in session.history]
            for name, session in self.after.sessions.items()
        }

    def untimely(self) -> list[str]:
        """Find what carries a time that the clock never showed."""
        now = datetime.now(UTC)
        moments = [now + timedelta(seconds=shift) for shift in self._used]
        return [
            f"{self.named(name)}: {event.kind} at {event.at}"
            for name, session in self.after.sessions.items()
            for event in session.history
            if all(abs(datetime.fromisoformat(event.at) - moment) > timedelta(days=1) for moment in moments)
        ]


@click.command()
@click.option("--injected", is_flag=True, help="Inject a wrong clock into Python even where libfaketime is installed.")
def clock(*, injected: bool) -> None:
    """Set clocks 400 days back and 30 years ahead: answers, histories and listings stay the same."""
    with tempfile.TemporaryDirectory(prefix="deepwork-clock-") as folder:
        shifted = Clock(Path(folder), injected=injected)
        report = Report(f"clock: the same calls under wrong and jumping clocks, by {shifted.name}")
        lives: dict[str, Life] = {}
        for name, shifts in CLOCKS.items():
            print(f"clock: {name}", file=sys.stderr, flush=True)
            lives[name] = Life(Path(folder, name), shifted, shifts)
    right = lives[RIGHT]
    report.fact("calls and restarts in each life", len(right.transcript))
    report.fact("clocks", len(lives))
    answers: list[str] = []
    histories: list[str] = []
    listings: list[str] = []
    for name, life in lives.items():
        pairs = zip(right.transcript, life.transcript, strict=True)
        answers += [f"{name}: {answer[:300]}, not {expected[:300]}" for expected, answer in pairs if answer != expected]
        if life.histories() != right.histories():
            histories.append(f"{name}: {life.histories()}")
        listings += life.disorder()
        if name == JUMPING:
            report.note(f"listed after the jumps, by the times that the clock showed: {', '.join(life.listed())}")
        elif life.listed() != right.listed():
            listings.append(f"{name}: {life.listed()}, not {right.listed()}")
    report.promise("answers that differ", answers)
    report.promise("histories that differ", histories)
    report.promise("listings that differ", listings)
    report.promise("times that no clock has shown", [line for life in lives.values() for line in life.untimely()])
    tell_aftermath(report, [life.after for life in lives.values()])
    report.finish()


def _libfaketime() -> Path | None:
    return next(iter(sorted(Path("/usr/lib").glob("**/faketime/libfaketime.so.1"))), None)
