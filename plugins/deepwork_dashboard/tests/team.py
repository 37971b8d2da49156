"""A project on which agents have worked, told by calls of real agents over MCP: for tests and pictures.

    python plugins/deepwork_dashboard/tests/team.py FOLDER     make one, to look at it with `deepwork dashboard`

What an agent would think is written down here. The reviewer is a program that passes what has a line of sources.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from deepwork.testing import DeepworkProject, Refused, StdioWire, output, start_server, step

Mapped = dict[str, Any]

REVIEWER = '''"""Passes what names its sources."""
import json
import sys
from pathlib import Path

request = json.load(sys.stdin)
text = "\\n".join(Path(path).read_text() for path in request["files"])
checks = {"Sources": "Source:" in text, "Length": len(text) > 40, "Dates": "2026" in text}
words = {"Sources": "Two figures in the second paragraph have no source.", "Length": "It is a heading and no more.",
         "Dates": "The month is named, the year is not."}
results = [{"criterion": name, "passed": checks[name], **({} if checks[name] else {"feedback": words[name]})}
           for name in request["criteria"]]
passed = all(result["passed"] for result in results)
feedback = "" if passed else " ".join(words[result["criterion"]] for result in results if not result["passed"])
json.dump({"passed": passed, "feedback": feedback, "criteria_results": results, "usage": {"model": "claude-sonnet-5",
           "input_tokens": 4100 + len(text), "output_tokens": 310, "cost_usd": 0.0312}}, sys.stdout)
'''
CRITERIA = {
    "Sources": "Does every figure name the source it comes from?",
    "Dates": "Does every period say month and year?",
    "Length": "Is there enough for a reader who was not there?",
}
GOOD = """# Report of May 2026

Revenue grew by 12 %. Source: ledger of May 2026, page 4.

Churn fell to 1.9 %. Source: billing export.
"""
BAD = "# Report of May\n\nRevenue grew by 12 %.\n"
JOB = {
    "name": "quarterly_report",
    "summary": "Writes the report that the board reads",
    "steps": [
        step("gather", name="Gather figures", outputs={"facts": output("file")}),
        step(
            "draft",
            name="Draft the report",
            outputs={"report": output("file")},
            reviews=[{"run_each": "report", "quality_criteria": CRITERIA}],
            inputs=[{"file": "facts", "from_step": "gather"}],
            dependencies=["gather"],
        ),
        step("charts", name="Draw charts", outputs={"charts": output("files", required=False)}),
        step("summary", name="Summarise for the board", outputs={"summary": output("file")}),
        step("publish", name="Publish", outputs={"page": output("file")}),
    ],
    "workflows": {"monthly": ["gather", "draft", "charts", "summary", "publish"]},
}


class Team:
    """A project and the agents on it. Each agent is a server of its own, over stdio."""

    def __init__(self, root: Path, *, settings: Mapped | None = None) -> None:
        self.project = DeepworkProject(root)
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        (root / "tools").mkdir(exist_ok=True)
        (root / "tools" / "review.py").write_text(REVIEWER)
        self.project.write_job(**JOB)
        gate = {
            "runner": "reviewer",
            "max_attempts": 3,
            "commands": {"reviewer": {"run": [sys.executable, "tools/review.py"]}},
        }
        (root / ".deepwork" / "config.yml").write_text(yaml.safe_dump({"quality_gate": gate, **(settings or {})}))
        self._deepwork("trust", "--yes")

    def _deepwork(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(self.root)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    @contextmanager
    def agent(self, *options: str) -> Iterator[StdioWire]:
        """Connect an agent to a server of its own."""
        process = start_server(self.root, *options)
        try:
            wire = StdioWire(process)
            wire.greet()
            yield wire
        finally:
            process.stdin.close()  # type: ignore[union-attr]  # it was opened as a pipe
            process.wait(30)

    # Sessions.

    def start(self, agent: StdioWire, goal: str, steps: int = 0) -> str:
        """Start a session, take it this many steps on, and return its id."""
        reply = agent.call("start_workflow", goal=goal, job_name="quarterly_report", workflow_name="monthly")
        session_id: str = reply["begin_step"]["session_id"]
        for number in range(steps):
            self.finish(agent, session_id, number)
        return session_id

    def finish(self, agent: StdioWire, session_id: str, number: int) -> Mapped:
        """Finish the step of this number as it should be."""
        step_id = JOB["steps"][number]["id"]
        outputs = {
            "gather": lambda: {"facts": self._file("facts.md", "Revenue: +12 % (ledger)\nChurn: 1.9 % (billing)\n")},
            "draft": lambda: {"report": self._file(f"report-{session_id[:4]}.md", GOOD)},
            "charts": lambda: {
                "charts": [self._file("charts/revenue.svg", "<svg/>\n"), self._file("charts/churn.svg", "<svg/>\n")]
            },
            "summary": lambda: {
                "summary": self._file(
                    "summary.md", "Growth without new debt. Two risks: churn in the north, a late audit.\n"
                )
            },
            "publish": lambda: {"page": self._file("public/report.html", "<h1>Report</h1>\n")},
        }[step_id]()
        return agent.call("finished_step", outputs=outputs, step_id=step_id, session_id=session_id)

    def fail_draft(self, agent: StdioWire, session_id: str, attempts: int = 3) -> None:
        """Report a draft that does not pass, until the gate asks for a person."""
        for attempt in range(1, attempts + 1):
            path = self._file(f"report-{session_id[:4]}.md", BAD + f"\nDraft {attempt}.\n")
            try:
                agent.call("finished_step", outputs={"report": path}, step_id="draft", session_id=session_id)
            except Refused:
                assert attempt == attempts

    def _file(self, path: str, text: str) -> str:
        self.project.write(path, text)
        return path

    # Plans.

    def plan(self, agent: StdioWire, name: str, tasks: list[Mapped]) -> tuple[str, dict[str, str]]:
        """Make a plan; return its id, and those of its tasks by name."""
        source = {
            "source_type": "prompt",
            "source_content": "Move billing to the new service without a night of downtime.",
        }
        plan_id = agent.call("workflow_create", name=name, max_parallel_tasks=4, **source)["id"]
        agent.call(
            "workflow_set_plan", id=plan_id, plan={"summary": name, "approach": "in small steps", "tasks": tasks}
        )
        listed = agent.call("workflow_get", id=plan_id, include_tasks=True)["tasks"]
        return plan_id, {task["name"]: task["id"] for task in listed}

    def register(self, agent: StdioWire, name: str, role: str = "worker", **more: Any) -> str:
        """Register an agent, and return its id."""
        return str(agent.call("agent_register", name=name, runtime="claude_code", role=role, **more)["id"])

    def move(self, agent: StdioWire, task_id: str, *statuses: str, **more: Any) -> None:
        """Take a task through statuses."""
        for status in statuses:
            needed = {
                "completed": {"outcome": "Done, and the tests pass."},
                "failed": {"error": "The port is in use on the build machine."},
            }.get(status, {})
            agent.call(
                "task_update_status",
                id=task_id,
                status=status,
                **{**needed, **(more if status in ("completed", "failed") else {})},
            )


def task(name: str, *needs: str, sequence: int = 1, **more: Any) -> Mapped:
    """Make a task of a plan."""
    return {
        "name": name,
        "description": f"{name}, so that the team can go on.",
        "sequence": sequence,
        "depends_on": list(needs),
        **more,
    }


MIGRATION = [
    task("Write the schema", sequence=1),
    task("Set up the test cluster", sequence=1),
    task("Import accounts", "Write the schema", sequence=2, parallel_group="import"),
    task("Import invoices", "Write the schema", sequence=2, parallel_group="import"),
    task("Import payments", "Write the schema", "Set up the test cluster", sequence=2, parallel_group="import"),
    task("Reconcile sums", "Import accounts", "Import invoices", "Import payments", sequence=3),
    task("Replay a day of traffic", "Set up the test cluster", "Import accounts", sequence=3),
    task("Port the nightly job", "Import invoices", sequence=3),
    task("Load test", "Replay a day of traffic", sequence=4),
    task("Sign the contract with the bank", sequence=4, required_capabilities=["human"]),
    task("Switch reads", "Reconcile sums", "Load test", sequence=5),
    task("Switch writes", "Switch reads", "Port the nightly job", "Sign the contract with the bank", sequence=6),
    task("Turn the old service off", "Switch writes", sequence=7),
]


def tell(root: Path) -> Team:
    """Make the whole story: sessions, a plan, tracked work, messages."""
    (root / "src").mkdir(parents=True, exist_ok=True)
    team = Team(root)
    _repository(root)
    with team.agent("--tools", "core") as agent:
        for month in ("January", "February", "March", "April"):
            team.start(agent, f"Report of {month} 2026 for the board", steps=5)
        stuck = team.start(agent, "Report of May 2026 for the board", steps=1)
        team.fail_draft(agent, stuck)
        aborted = team.start(agent, "Compare our prices with those of three competitors", steps=1)
        agent.call(
            "abort_workflow", explanation="The price lists are behind a login that nobody has.", session_id=aborted
        )
        second = team.start(agent, "Explain the growth of storage costs", steps=1)
        team.fail_draft(agent, second, attempts=2)
        team.finish(agent, second, 1)
        team.start(agent, "Report of June 2026 for the board", steps=3)
    _migration(team)
    _tracked(team)
    return team


def _migration(team: Team) -> None:
    with team.agent("--tools", "orchestration") as agent:
        plan_id, tasks = team.plan(agent, "Move billing to the new service", MIGRATION)
        lead = team.register(agent, "Lead", role="coordinator")
        workers = {
            name: team.register(agent, name, capabilities=["python", "sql"]) for name in ("Ada", "Grace", "Linus")
        }

        def work(name: str, who: str, *statuses: str, **more: Any) -> None:
            agent.call("task_claim", task_id=tasks[name], agent_id=workers[who])
            team.move(agent, tasks[name], *statuses, **more)

        work(
            "Write the schema",
            "Ada",
            "planning",
            "in_progress",
            "completed",
            outcome="14 tables, reviewed by Grace. Money is in minor units everywhere.",
        )
        work("Set up the test cluster", "Grace", "planning", "in_progress", "completed")
        work(
            "Import accounts",
            "Ada",
            "planning",
            "in_progress",
            "completed",
            outcome="1,204,331 accounts in 11 minutes.",
        )
        work("Import invoices", "Linus", "planning", "in_progress")
        agent.call(
            "checkpoint_add",
            task_id=tasks["Import invoices"],
            type="progress",
            summary="Years 2019 to 2023 are in; sums agree to the cent.",
            files_changed=["src/import_invoices.py"],
        )
        agent.call(
            "checkpoint_add",
            task_id=tasks["Import invoices"],
            type="decision",
            summary="Credit notes become negative invoices, because the old service has no type for them.",
            detail={"considered": ["own table", "negative invoices"]},
        )
        work(
            "Import payments",
            "Grace",
            "planning",
            "in_progress",
            "failed",
            error="The dump of 2021 is truncated: 3.1 of 4.0 GiB, and its checksum is missing.",
        )
        work("Replay a day of traffic", "Ada", "planning", "in_progress")
        agent.call(
            "message_send",
            sender_id=workers["Grace"],
            recipient_id=lead,
            message_type="query",
            subject="Dump of 2021",
            body="The dump of 2021 is truncated. Can somebody with access to the archive copy it again?",
            workflow_id=plan_id,
            task_id=tasks["Import payments"],
            priority="high",
        )
        agent.call(
            "message_send",
            sender_id=lead,
            recipient_id=workers["Linus"],
            message_type="task_assignment",
            body={"order": ["2024", "2025"], "reason": "auditors ask for 2025 first"},
            workflow_id=plan_id,
        )
        team.plan(
            agent,
            "Upgrade the build machines",
            [
                task("List them", sequence=1),
                task("Drain one", "List them", sequence=2),
                task("Upgrade it", "Drain one", sequence=3),
            ],
        )


def _tracked(team: Team) -> None:
    with team.agent("--tools", "tracking") as agent:
        workflow = agent.call(
            "start_workflow",
            name="Login without passwords",
            objective="Every user can sign in with a passkey, and nobody is locked out.",
            profile="standard",
            scope="Web and mobile; not the command line.",
        )["workflow_id"]
        design = agent.call("start_phase", workflow_id=workflow, number=1, name="Design")["phase_id"]
        chosen = _task(
            agent, workflow, design, "Choose a library", "architect", "Know which library verifies assertions."
        )
        agent.call(
            "log_decision",
            task_id=chosen,
            category="library_choice",
            question="Which library verifies passkeys?",
            chosen="py_webauthn",
            options_considered=["py_webauthn", "fido2", "our own"],
            reasoning="It is the only one with tests of the newest attestation formats.",
            trade_offs="Its API changes with every release.",
        )
        _end(agent, chosen, "py_webauthn, with a thin layer of our own.")
        agent.call(
            "complete_phase", phase_id=design, status="completed", summary="One library, one table, no new service."
        )
        build = agent.call("start_phase", workflow_id=workflow, number=2, name="Build", is_parallel=True)["phase_id"]
        table = _task(
            agent, workflow, build, "Add the table of keys", "builder", "Keys of a user are stored and listed."
        )
        (team.root / "src" / "passkeys.py").write_text("KEYS = {}\n")
        (team.root / "src" / "users.py").write_text("USERS = {'ada': 1}\n")
        (team.root / "src" / "old_login.py").unlink()
        agent.call("log_milestone", task_id=table, message="The first key was stored and found again.", progress=60)
        _end(
            agent,
            table,
            "A table, a migration and twelve tests.",
            achievements=["Works on SQLite and PostgreSQL"],
            limitations=["No limit of keys per user yet"],
        )
        running = _task(agent, workflow, build, "Sign in with a key", "builder", "A browser with a key signs in.")
        agent.call(
            "log_issue",
            task_id=running,
            type="unclear_requirement",
            description="May a user who has lost all keys come back by e-mail alone?",
            resolution="The form is built, and switched off until somebody decides.",
            requires_human_review=True,
        )
        _task(
            agent,
            workflow,
            build,
            "Form for lost keys",
            "designer",
            "A user who has lost a key finds help.",
            parent=running,
        )


def _task(
    agent: StdioWire, workflow: str, phase: str, name: str, who: str, goal: str, parent: str | None = None
) -> str:
    more = {"parent_task_id": parent} if parent else {}
    reply = agent.call(
        "start_task",
        workflow_id=workflow,
        phase_id=phase,
        caller_type="subagent",
        agent_name=who,
        name=name,
        goal=goal,
        areas=["src"],
        **more,
    )
    return str(reply["task_id"])


def _end(agent: StdioWire, task_id: str, summary: str, **outcome: Any) -> None:
    agent.call(
        "complete_task",
        task_id=task_id,
        status="success",
        outcome={"summary": summary, **outcome},
        metadata={"tests_status": "passed"},
    )


def _repository(root: Path) -> None:
    git = ["git", "-C", str(root), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    (root / "src" / "users.py").write_text("USERS = {}\n")
    (root / "src" / "old_login.py").write_text("def login(): ...\n")
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "First"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)


if __name__ == "__main__":
    os.environ.setdefault("DEEPWORK_NO_PLUGINS", "")
    tell(Path(sys.argv[1]).absolute())
    print(f"Look at it: deepwork dashboard --open --path {sys.argv[1]}")
