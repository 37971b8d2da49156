"""People review texts that agents edit, while servers and people are killed; and two people decide at once."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import anyio
import click
from people import PERSON, in_project
from report import Progress, Report, seed_option
from servers import Restarted

from deepwork.api import Project
from deepwork.errors import ItemChanged
from deepwork.ports.inbox import Answer
from deepwork.testing import DeepworkProject, review, step
from deepwork.testing.wire import PATIENCE

sys.path.append(str(Path(__file__).parents[2] / "tests" / "sessions"))
from edited_text import EditedText

FILE = "text.txt"
OUTPUTS = {FILE: FILE}
# A person who can be killed is a process of its own.
PROCESSES = get_context("spawn")


class Agent(Restarted):
    """An agent whose server may be killed at any call, which it then makes again."""

    def __init__(self, root: Path, dice: random.Random) -> None:
        super().__init__(root)
        self._dice = dice

    def call(self, tool: str, *, killed: bool = False, **arguments: Any) -> dict[str, Any]:
        """Call a tool; if the server is to be killed meanwhile, call it twice."""
        if killed:
            self.cut(self._dice.random() * 0.15, tool, **arguments)
        reply: dict[str, Any] = json.loads(self.text(tool, **arguments))
        return reply


class Reviewed:
    """One step under review: its text, its comments, and what its agent was told."""

    def __init__(self, project: DeepworkProject, agent: Agent, dice: random.Random, attempts: int) -> None:
        self._project = project
        self._agent = agent
        self._dice = dice
        self._share = dice.choice((0.01, 0.02, 0.04))
        self.text = EditedText(dice, dice.randint(200, 600))
        self.attempts = attempts
        self.written: dict[str, tuple[int, int, int]] = {}  # attempt, first line, last line
        self.told: Counter[str] = Counter()
        self.broken: list[str] = []
        project.write(FILE, self.text.content)
        started = agent.call("start_workflow", goal="g", job_name="demo", workflow_name="main")
        self.session = started["begin_step"]["session_id"]

    def run(self, comments: int, kills: int) -> None:
        """Report, comment and edit, attempt by attempt, with so many kills."""
        killed = {*self._dice.sample(range(2 * self.attempts - 1), kills)}
        notes: str | None = None
        for attempt in range(1, self.attempts + 1):
            reply = self._report(notes, killed=2 * attempt - 2 in killed)
            if "waits_for" not in reply or reply.get("comments"):
                self.broken.append(f"{self.session}: attempt {attempt} was answered by {json.dumps(reply)[:200]}")
            if attempt == self.attempts:
                return
            share = comments * attempt // (self.attempts - 1) - comments * (attempt - 1) // (self.attempts - 1)
            items = [self._comment() for _ in range(share)]
            self._decide(items, killed=2 * attempt - 1 in killed)
            new = self._known(attempt, items)
            reply = self._report(notes)
            ids = [comment["id"] for comment in self._all_told(reply)]
            self.told.update(ids)
            if sorted(ids) != sorted(new):
                self.broken.append(
                    f"{self.session}: of attempt {attempt} {len(ids)} comments were told, not {len(new)}"
                )
            self.text.edit(self._share)
            self._project.write(FILE, self.text.content)
            notes = "\n".join(f"{comment_id}: seen" for comment_id in new)

    def piece(self) -> dict[str, Any]:
        """Read the piece of work as pages do."""
        root, session = self._project.root, self.session
        return dict(in_project(root, lambda project: project.pieces().piece(session, "a")).as_json())

    def _report(self, notes: str | None, *, killed: bool = False) -> dict[str, Any]:
        more = {"notes": notes} if notes else {}
        return self._agent.call("finished_step", killed=killed, outputs=OUTPUTS, session_id=self.session, **more)

    def _comment(self) -> dict[str, Any]:
        lines = len(self.text.lines)
        first = self._dice.randint(1, lines)
        last = min(lines, first + self._dice.choice((0, 0, 0, 1, 3)))
        must = self._dice.random() < 0.5
        return {"file": FILE, "line": first, "end_line": last, "text": f"No {self._dice.random()}", "must": must}

    def _decide(self, items: list[dict[str, Any]], *, killed: bool) -> None:
        """Ask for changes; who is killed while they do it looks whether they have, and does it again if not."""
        if killed:
            begun = PROCESSES.Event()
            person = PROCESSES.Process(target=_decide, args=(self._project.root, self.session, items, begun))
            person.start()
            begun.wait(PATIENCE)
            time.sleep(self._dice.random() * 0.3)
            person.kill()
            person.join()
            self._agent.kills += 1
            if self.piece()["waiting"] is None:
                return
        _decide(self._project.root, self.session, items)

    def _known(self, attempt: int, items: list[dict[str, Any]]) -> list[str]:
        """Note the comments that were written just now; what is missing or doubled is lost."""
        comments = [comment for comment in self.piece()["comments"] if comment["attempt"] == attempt]
        expected = [(item["line"], item["end_line"], item["text"]) for item in items]
        if [(comment["line"], comment["end_line"], comment["text"]) for comment in comments] != expected:
            self.broken.append(f"{self.session}: {len(comments)} of {len(items)} comments are there")
        for comment in comments:
            self.written[comment["id"]] = attempt, comment["line"], comment["end_line"]
        return [comment["id"] for comment in comments]

    def _all_told(self, reply: dict[str, Any]) -> list[dict[str, Any]]:
        for notice in reply.get("notices", ()):
            if " comments, the first " in notice:
                path = notice.rpartition(" in ")[2].rstrip(".")
                comments: list[dict[str, Any]] = json.loads((self._project.root / path).read_text())
                return comments
        return list(reply.get("comments", ()))


def _decide(root: Path, session: str, comments: list[dict[str, Any]], begun: Event | None = None) -> None:
    """Ask for changes, and say when that begins."""

    async def act(project: Project) -> None:
        pieces = project.pieces()
        if begun:
            begun.set()
        await pieces.decide(session, "a", Answer("changes", comments=comments), PERSON)

    in_project(root, act)


@click.command()
@click.option("--count", default=200, show_default=True, help="How many reviews.")
@click.option("--comments", default=2000, show_default=True, help="How many comments each; none with the last attempt.")
@click.option(
    "--attempts", type=click.IntRange(2), default=5, show_default=True, help="How often the work of each is reported."
)
@click.option("--kills", default=100, show_default=True, help="How many servers and people to kill, in all.")
@click.option("--races", default=500, show_default=True, help="How often two people decide at once.")
@seed_option
def reviews(count: int, comments: int, attempts: int, kills: int, races: int, seed: int) -> None:
    """Comment on texts that agents edit: none is lost, told twice or on a wrong line; of two people one decides.

    Without options this is the whole figure: 400,000 comments, in about half an hour if nothing else runs. With
    `--comments 10` it is 2,000 comments in all. Runs with other seeds add up; a tenth of the whole is
    `--count 20 --kills 10 --races 50 --seed 7`.
    """
    if kills > count * (2 * attempts - 1):
        raise click.UsageError(f"There are {count * (2 * attempts - 1)} moments for {kills} kills: see --count.")
    dice = random.Random(seed)
    report = Report(
        f"{count} reviews with {comments:,} comments over {attempts} attempts, {kills} kills, {races} races"
    )
    with tempfile.TemporaryDirectory() as folder:
        project = DeepworkProject(Path(folder) / "project")
        project.write_job(steps=[step("a", outputs=_declared(), reviews=[review()])])
        project.write(".deepwork/config.yml", "quality_gate: {runner: person}\n")
        agent = Agent(project.root, dice)
        facts: Counter[str] = Counter()
        broken: dict[str, list[str]] = {"broken": [], "wrong": [], "lost": [], "twice": [], "races": []}
        progress = Progress("reviews", count)
        for number in range(count):
            share = kills * (number + 1) // count - kills * number // count
            reviewed = Reviewed(project, agent, dice, attempts)
            reviewed.run(comments, share)
            _checked(reviewed, facts, broken)
            progress.step()
        _races(project, agent, races, broken["races"])
        agent.wire.close()
    report.fact("comments", facts["comments"])
    report.fact("whose lines survived", facts["survived"])
    report.fact("of them still on their lines", facts["placed"])
    report.fact("kills", agent.kills)
    report.promise("lost", broken["lost"])
    report.promise("on a wrong line", broken["wrong"])
    report.promise("told twice", broken["twice"])
    report.promise("answers that were not right", broken["broken"])
    report.promise("percent still on their lines, less than 95", int(facts["placed"] < 0.95 * facts["survived"]))
    report.promise("races with another end than one decision", broken["races"])
    report.finish()


def _declared() -> dict[str, Any]:
    return {FILE: {"type": "file", "description": "The text", "required": True}}


def _checked(reviewed: Reviewed, facts: Counter[str], broken: dict[str, list[str]]) -> None:
    """Compare where the comments stand with where their lines are."""
    piece = reviewed.piece()
    states = {comment["id"]: comment for comment in piece["comments"]}
    broken["broken"] += reviewed.broken
    broken["lost"] += [comment_id for comment_id in reviewed.written if not reviewed.told[comment_id]]
    broken["lost"] += [comment_id for comment_id in reviewed.written if comment_id not in states]
    broken["twice"] += [comment_id for comment_id, times in reviewed.told.items() if times > 1]
    for comment_id, (attempt, first, last) in reviewed.written.items():
        lines = reviewed.text.versions[attempt - 1][first - 1 : last]
        true = reviewed.text.where([number for number, _ in lines], [text for _, text in lines])
        comment = states[comment_id]
        place = comment["place"] if comment["state"] == "open" else None
        facts["comments"] += 1
        facts["survived"] += true is not None
        facts["placed"] += place is not None and place["line"] == true
        if place and place["line"] != true:
            broken["wrong"].append(f"{reviewed.session} {comment_id}: on line {place['line']}, not on {true}")


def _races(project: DeepworkProject, agent: Agent, count: int, broken: list[str]) -> None:
    """Have two people decide at the same moment, one of them passing and one asking for changes."""
    session = ""
    progress = Progress("races", count)
    for number in range(count):
        project.write(FILE, f"Race {number}\n")
        if not session:
            started = agent.call("start_workflow", goal="g", job_name="demo", workflow_name="main")
            session = started["begin_step"]["session_id"]
        question = agent.call("finished_step", outputs=OUTPUTS, session_id=session)
        if "waits_for" not in question:
            broken.append(f"race {number}: nobody was asked: {json.dumps(question)[:500]}")
            continue
        ends = _race(project.root, session)
        reply = agent.call("finished_step", outputs=OUTPUTS, session_id=session)
        is_passed = reply["status"] == "workflow_complete"
        winners = [action for action, error in ends.items() if error is None]
        refusals = [error for error in ends.values() if isinstance(error, ItemChanged)]
        if len(winners) != 1 or len(refusals) != 1 or (winners[0] == "pass") != is_passed:
            broken.append(f"race {number}: {ends} ended with {reply['status']}")
        if is_passed:
            session = ""
        progress.step()


def _race(root: Path, session: str) -> dict[str, Exception | None]:
    ends: dict[str, Exception | None] = {}
    start = threading.Barrier(2)

    async def answer(action: str, project: Project) -> None:
        contents = await project.inbox().items(PERSON)
        item = next((item for item in contents.items if item.id == f"sessions:{session}.a"), None)
        if item is None:
            raise LookupError(f"the item is not listed: {contents.as_json()}")
        await anyio.to_thread.run_sync(start.wait)
        await project.inbox().answer(item.id, Answer(action, "Both at once", state=item.state), PERSON)

    def decide(action: str) -> None:
        try:
            in_project(root, partial(answer, action))
            ends[action] = None
        except Exception as error:  # noqa: BLE001 - it is compared with the expected one
            ends[action] = error

    with ThreadPoolExecutor(2) as people:
        people.map(decide, ("pass", "changes"))
    return ends
