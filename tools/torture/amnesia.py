"""An agent whose memory is wiped after every call completes workflows that it has never seen."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import click
from report import Report, seed_option
from sample_project import Project, aftermath, inconsistencies, tell_aftermath, tortured
from servers import Server, answer_text
from stores import store_option

from deepwork.models.sessions import Session
from deepwork.testing import Refused, review, step

MOST_CALLS = 150
LIMIT = 8000

RESUME_CALL = re.compile(r'call finished_step\(session_id="([^"]+)", step_id="\?", outputs=\{\}\)')
REPORT_CALL = re.compile(r"finished_step\(session_id='(\w+)', step_id='(\w+)', outputs=\{\.\.\.\}\)")
OUTPUT_LINE = re.compile(r"- (.+) \((filepath|array of filepaths for all individual files), (required|optional)\): ")
RESUMED = re.compile(r"# Resume \S+, session (\w+)")
REST_OF_TEXT = re.compile(r"It is in (\.deepwork/tmp/\S+\.md)")


class Agent:
    """Knows how to read and write files, and what it has just been told; nothing else."""

    def __init__(self, root: Path, dice: random.Random) -> None:
        self._root = root
        self._dice = dice

    def next_call(self, text: str) -> dict[str, Any] | None:
        """Find in a text what to report; None if there is nothing left to do."""
        if resume := RESUME_CALL.search(text):
            return {"session_id": resume[1], "step_id": "?", "outputs": {}}
        if file := REST_OF_TEXT.search(text):
            text = (self._root / file[1]).read_text()
        calls = REPORT_CALL.findall(text)
        if not calls:
            return None
        session_id, step_id = calls[-1]  # members of a group come before the step that ends it
        if len(calls) > 1:
            session_id, step_id = self._dice.choice(calls[1:])
        call = {"session_id": session_id, "step_id": step_id, "outputs": self._make(text, session_id, step_id)}
        if f"## Review of {step_id!r}" in text:
            call["quality_review_override_reason"] = "A sub-agent found that all criteria are met"
        return call

    def _make(self, text: str, session_id: str, step_id: str) -> dict[str, str | list[str]]:
        section = text.split(f"## Outputs of {step_id!r}\n", 1)[1].split("\n## ", 1)[0]
        outputs: dict[str, str | list[str]] = {}
        for name, syntax, needed in OUTPUT_LINE.findall(section):
            if needed == "optional" and self._dice.random() < 0.5:
                continue
            path = f"made/{session_id}/{step_id}/{len(outputs)}.md"
            file = self._root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{name}\n")
            outputs[name] = path if syntax == "filepath" else [path]
        return outputs


class World:
    """A project with random jobs, and two servers: either may answer or vanish."""

    def __init__(self, project: Project, seed: int) -> None:
        self.project = project
        self._dice = random.Random(seed)
        self._agent = Agent(project.root, self._dice)
        self._servers = [self._new_server(), self._new_server()]
        self.counts: Counter[str] = Counter()
        self.complaints: list[str] = []
        self.stuck: list[str] = []

    def live_through(self, number: int) -> None:
        """Start a random workflow, and have it completed by an agent that does not know of it."""
        job = f"job{number}"
        names = self._write_job(job)
        self._start(self._server(), job, "main")
        nested = [self._dice.choice(names) for _ in range(self._dice.randint(0, 2))]
        for _ in range(MOST_CALLS):
            server = self._server()
            text = self._where(server)
            while call := self._agent.next_call(text):
                if nested and "# Resume" in text and self._dice.random() < 0.3:
                    self._start(server, job, nested.pop())
                    break
                text = self._told(server, call)
                if text is None:
                    break
            if call is None:
                break
        else:
            self.stuck.append(f"{job}: {(text or 'the last call was accepted')[:300]}")

    def _where(self, server: Server) -> str:
        """Ask where the session is; in one text, what the answer says beside it in `begin_step` included."""
        text = answer_text(server, "finished_step", outputs={}, step_id="?")
        session = RESUMED.match(text)
        if session is None:
            return text
        [content] = server.request("resources/read", uri=f"deepwork://sessions/{session[1]}")["result"]["contents"]
        return str(content["text"])

    def _start(self, server: Server, job: str, workflow: str) -> None:
        server.call("start_workflow", goal="Do as the job says", job_name=job, workflow_name=workflow)
        self.counts["nested" if workflow != "main" else "workflows"] += 1

    def _told(self, server: Server, call: dict[str, Any]) -> str | None:
        """Make a call; only what a refusal says is kept, every other reply is forgotten."""
        self.counts["calls"] += 1
        try:
            server.call("finished_step", **call)
        except Refused as refused:
            text = str(refused)
            if len(text[text.find("# Resume") :]) > LIMIT:
                self.complaints.append(f"a resume text of {len(text)} characters")
            if call["step_id"] != "?":
                self.complaints.append(f"{call}: {text[:300]}")
            self.counts["long texts"] += "Cut here" in text
            return text
        return None

    def _server(self) -> Server:
        """Pick a server; now and then it is a new one, for the old one was killed or closed."""
        place = self._dice.randrange(2)
        if self._dice.random() < 0.04:
            self._dice.choice([Server.kill, Server.close])(self._servers[place])
            self._servers[place] = self._new_server()
            self.counts["replaced"] += 1
        return self._servers[place]

    def _new_server(self) -> Server:
        return Server(self.project.root, env=self.project.store.env)

    def _write_job(self, name: str) -> list[str]:
        """Write a job with random steps and three workflows; return the names of those to nest."""
        dice = self._dice
        steps = [self._step(f"s{number}") for number in range(dice.randint(2, 7))]
        ids = [item["id"] for item in steps]
        workflows = {"main": self._entries(ids), "nested": self._entries(ids[:2]), "other": self._entries(ids[-1:])}
        self.project.write_job(name, steps, workflows)
        for item in steps:
            if dice.random() < 0.15:
                text = "A long line of instructions.\n" * 400
                self.project.write(f".deepwork/jobs/{name}/{item['instructions_file']}", text)
        return ["nested", "other"]

    def _entries(self, ids: list[str]) -> list[str | list[str]]:
        entries: list[str | list[str]] = []
        remaining = [*ids]
        while remaining:
            size = self._dice.choice([1, 1, 2, 3])
            group, remaining = remaining[:size], remaining[size:]
            entries.append(group if len(group) > 1 or self._dice.random() < 0.1 else group[0])
        return entries

    def _step(self, step_id: str) -> dict[str, Any]:
        dice = self._dice
        outputs = {
            f"{step_id} out {number}.md": {
                "type": dice.choice(["file", "files"]),
                "description": "Something",
                "required": dice.random() < 0.7,
            }
            for number in range(dice.randint(0, 3))
        }
        reviews = [review(dice.choice(["step", *outputs]))] if dice.random() < 0.3 else []
        return step(step_id, outputs=outputs, reviews=reviews)

    def close(self) -> None:
        for server in self._servers:
            server.close()


def shortcomings(session: Session) -> list[str]:
    """Return what is missing in a session that should be completed, with every step reported."""
    problems = inconsistencies(session)
    if session.status != "completed":
        problems.append(f"{session.session_id} of {session.workflow} is {session.status} at {session.current_step_id}")
    for name, declared in session.pinned.steps.items():
        progress = session.step_progress.get(name)
        if progress is None or progress.reply is None:
            problems.append(f"{session.session_id}: {name} was never reported")
            continue
        required = {output for output, spec in declared.outputs.items() if spec.required}
        if not required <= progress.outputs.keys():
            problems.append(f"{session.session_id}: {name} lacks outputs")
        needed_reviews = [
            rule for rule in declared.reviews if rule.run_each == "step" or progress.outputs.get(rule.run_each)
        ]
        if needed_reviews and not progress.override_reason:
            problems.append(f"{session.session_id}: {name} passed its review unseen")
    return problems


@click.command()
@click.option("--count", default=200, show_default=True, help="How many random workflows.")
@store_option
@seed_option
def amnesia(count: int, store: str, seed: int) -> None:
    """Have an agent that forgets everything after each call complete random workflows."""
    report = Report(f"amnesia: an agent that remembers nothing, {count} random workflows ({store}), seed {seed}")
    with tortured("amnesia", store) as project:
        world = World(project, seed)
        for number in range(count):
            world.live_through(number)
        world.close()
        after = aftermath(project)
    sessions = after.sessions
    completed = [session for session in sessions.values() if not shortcomings(session)]
    groups = sum(len(entry) > 1 for session in sessions.values() for entry in session.pinned.workflow.entries)
    overrides = sum(
        bool(step.override_reason) for session in sessions.values() for step in session.step_progress.values()
    )
    report.fact("workflows started, nested ones included", len(sessions))
    report.fact("  nested", world.counts["nested"])
    report.fact("  groups in them", groups)
    report.fact("  reviews overridden in them", overrides)
    report.fact("calls, each forgotten at once", world.counts["calls"])
    report.fact("resume texts too long, read from their file", world.counts["long texts"])
    report.fact("servers replaced meanwhile", world.counts["replaced"])
    report.promise("workflows completed, every step reported", len(completed), len(sessions))
    report.promise(
        "what is missing in the others", [line for session in sessions.values() for line in shortcomings(session)]
    )
    report.promise("workflows given up", world.stuck)
    report.promise("reports refused, resume texts over 8,000 characters", world.complaints)
    tell_aftermath(report, [after])
    report.finish()
