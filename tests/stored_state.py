"""Everything that one release stores, kept as a fixture: every later release has to open it and go on with it.

    python tests/stored_state.py tests/data/stored/RELEASE-COMMIT    make the fixture of the release that runs this

Run it once for every release, with the Python in which that release is installed with all its plugins, and commit the
folder. PostgreSQL has to be installed. `restored` of `stored_fixtures.py`, beside it, is the way back.

A fixture has three files. `cases.json` tells what is there. `files.tar.gz` has four folders: `project`, with sessions
of the store `json` and the SQLite database, and `config`, `state` and `home` of its user. `postgresql.sql` is what
`pg_dump` wrote of a database with the same content. No path of the machine is in them: `@FOLDER@` stands for the folder
in which the four lie, `@KEY@` for the name that the user's state folder has for the project.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import anyio

from deepwork.testing import Agent, DeepworkProject, Refused, output, review, step
from stored_fixtures import (
    STEPS,
    database,
    emptied,
    environment,
    key,
    replace_in_database,
    report,
)

FOLDERS = ("project", "config", "state", "home")
NOTES_SECONDS = 60
# Only what a release stores belongs into its fixture: no locks, no logs, no caches of its commands.
LEFT_OUT = (".git", "__pycache__", "home")

JUDGE = '''"""Passes what has nothing left to do; gives no verdict on what is broken."""
import json
import sys

request = json.load(sys.stdin)
if "BROKEN" in request["payload"]:
    sys.exit("the judge is broken")
passed = "TODO" not in request["payload"]
feedback = "" if passed else "Something is left to do."
results = [{"criterion": name, "passed": passed, "feedback": feedback} for name in request["criteria"]]
json.dump({"passed": passed, "feedback": feedback, "criteria_results": results}, sys.stdout)
'''
USER_CONFIG = """\
notifications: {command: ["true"]}
plugins: {settings: {sql: {machine: laptop}}}
"""
PROJECT_CONFIG = """\
state: {{store: {store}}}
quality_gate:
  strict: {strict}
  commands:
    judge: {{run: [python3, .deepwork/judge.py]}}
"""
RULE = """\
texts:
  description: Texts have no errors
  match: {include: ["*.md"]}
  review: {strategy: individual, instructions: Look for errors.}
"""
# The form of release 0.9, whose sessions had nothing else.
OLD_ID = "ab12cd34"
OLD_STEP = {"started_at": "2026-02-01T10:00:00.000001+00:00", "completed_at": None, "outputs": {}, "notes": None}
OLD_SESSION: dict[str, Any] = {
    "session_id": OLD_ID,
    "job_name": "book",
    "workflow_name": "write",
    "instance_id": None,
    "goal": "a goal of release 0.9",
    "current_step_id": "draft",
    "current_entry_index": 0,
    "step_progress": {"draft": {"step_id": "draft", **OLD_STEP, "quality_attempts": 0}},
    "started_at": OLD_STEP["started_at"],
    "completed_at": None,
    "status": "active",
    "abort_reason": None,
}


class Writer:
    """Does in a project what agents and their users do, with one store for sessions."""

    def __init__(self, project: DeepworkProject, store: str) -> None:
        self.project = project
        self.store = store
        self.sessions: dict[str, str] = {}

    @asynccontextmanager
    async def agent(self, **options: Any) -> AsyncIterator[Agent]:
        """Connect to a new server, as another session of an agent does."""
        chosen = {"external_runner": "judge", "state_store": self.store, **options}
        async with self.project.agent(**chosen) as agent:
            yield agent

    def configure(self, *, strict: bool = False) -> None:
        """Write the configuration of the project."""
        text = PROJECT_CONFIG.format(store=self.store, strict=str(strict).lower())
        self.project.write(".deepwork/config.yml", text)

    def deepwork(self, *arguments: str) -> str:
        """Run a command of the project's user."""
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(self.project.root)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    async def start(self, agent: Agent, name: str, workflow: str = "write", **more: Any) -> str:
        """Start a workflow, and remember its session by this name."""
        reply = await agent.start("book", workflow, **more)
        self.sessions[name] = str(reply["session_id"])
        return self.sessions[name]

    async def attempt(self, agent: Agent, session_id: str, **more: Any) -> None:
        """Report a draft that may be refused."""
        with suppress(Refused):
            await report(agent, session_id, "draft", **more)

    async def write_sessions(self) -> None:
        """Leave a session in every state."""
        self.configure()
        async with self.agent() as agent:
            await self.start(agent, "at the first step")
            await self._mid_group(agent)
            await self._reviewed(agent)
            await self._over(agent)
            parent = await self.start(agent, "with one inside")
            await self.start(agent, "inside of another", "outline", parent_session_id=parent)
        async with self.agent(external_runner="self") as agent:
            await report(agent, await self.start(agent, "handed back"), "draft")
            session_id = await self.start(agent, "reviewed by its agent", "outline")
            await report(agent, session_id, "draft")
            await report(agent, session_id, "draft", quality_review_override_reason="it passed")
        async with self.agent(enable_quality_gate=False) as agent:
            await report(agent, await self.start(agent, "gate off", "outline"), "draft")
        await self._strict()
        self.deepwork("sessions", "reopen", self.sessions["reopened"], "draft", "--reason", "A figure is wrong.")
        await self._archive(self.sessions["archived"])

    async def _mid_group(self, agent: Agent) -> None:
        session_id = await self.start(agent, "in a group")
        await report(agent, session_id, "draft", notes="It is short.")
        await report(agent, session_id, "talk")

    async def _reviewed(self, agent: Agent) -> None:
        """Leave sessions whose draft was judged, or was not."""
        draft = self.project.root / "draft.md"
        good = draft.read_text()
        try:
            draft.write_text("BROKEN\n")
            await report(agent, await self.start(agent, "without a verdict"), "draft")
            draft.write_text("TODO\n")
            await report(agent, await self.start(agent, "failed once"), "draft")
            session_id = await self.start(agent, "waits for a person")
            for _ in range(3):
                draft.write_text(draft.read_text() + "TODO\n")
                await self.attempt(agent, session_id)
            overridden = await self.start(agent, "overridden by its agent")
            await report(agent, overridden, "draft", quality_review_override_reason="The user wants it so.")
        finally:
            draft.write_text(good)

    async def _over(self, agent: Agent) -> None:
        for name in ("completed", "reopened", "archived"):
            session_id = await self.start(agent, name)
            for step_id in STEPS["write"]:  # `page` is never reported
                await report(agent, session_id, step_id)
        await self.start(agent, "aborted")
        await agent.call("abort_workflow", explanation="Not needed.", session_id=self.sessions["aborted"])

    async def _strict(self) -> None:
        """Leave a session of a strict gate that waits for its user's word."""
        self.configure(strict=True)
        async with self.agent() as agent:
            session_id = await self.start(agent, "asks a person")
            await self.attempt(agent, session_id, quality_review_override_reason="It is urgent.")
        self.configure()

    async def _archive(self, session_id: str) -> None:
        """Archive one session; the command archives only old ones."""
        from deepwork.project.project import Project

        project = Project(self.project.root)
        try:
            await (await project.engine(None, store=self.store).sessions.store()).archive(session_id)
        finally:
            await project.close()

    async def write_plans(self) -> dict[str, str]:
        """Leave plans, agents, messages and what tracking keeps, and return the ids of what tests go on with."""
        async with self.agent(tools=["orchestration"]) as agent:
            ids = await _plan(agent)
        async with self.agent(tools=["tracking"]) as agent:
            return {**ids, **await _tracked(agent)}


async def _plan(agent: Agent) -> dict[str, str]:
    call = agent.call
    await call("repository_register", path=str(Path.cwd()), name="book")
    source = {"source_type": "prompt", "source_content": "Publish it."}
    workflow = await call("workflow_create", **source, name="publish", repository_path=str(Path.cwd()), request_id="r1")
    tasks = [
        {"name": "print", "description": "Print it", "sequence": 1, "depends_on": []},
        {"name": "bind", "description": "Bind it", "sequence": 2, "depends_on": ["print"]},
        {"name": "sell", "description": "Sell it", "sequence": 3, "depends_on": ["bind"]},
        {
            "name": "sign", "description": "Sign it", "sequence": 2, "depends_on": ["print"],
            "required_capabilities": ["human"],
        },
    ]  # fmt: skip
    await call("workflow_set_plan", id=workflow["id"], plan={"summary": "s", "approach": "a", "tasks": tasks})
    listed = (await call("workflow_get", id=workflow["id"], include_tasks=True))["tasks"]
    by_name = {task["name"]: task["id"] for task in listed}
    leader = (await call("agent_register", name="leader", runtime="custom", role="coordinator"))["id"]
    worker = (await call("agent_register", name="ada", runtime="claude_code"))["id"]
    person = (await call("agent_register", name="eve", runtime="custom", metadata={"human": True}))["id"]
    await call("task_claim", task_id=by_name["print"], agent_id=worker)
    for status, more in (("planning", {}), ("in_progress", {}), ("completed", {"outcome": "Printed."})):
        await call("task_update_status", id=by_name["print"], status=status, **more)
    await call("task_claim", task_id=by_name["bind"], agent_id=worker)
    await call("task_update_status", id=by_name["bind"], status="planning")
    await call("task_update_status", id=by_name["bind"], status="in_progress")
    await call("checkpoint_add", task_id=by_name["bind"], type="decision", summary="Linen", detail={"colour": "red"})
    where = {"workflow_id": workflow["id"], "path": str(Path.cwd() / "copy"), "branch": "binding"}
    await call("workspace_create", **where, task_ids=[by_name["bind"]])
    await call("template_create", name="publishing", from_workflow_id=workflow["id"])
    message = {"sender_id": leader, "recipient_id": worker, "workflow_id": workflow["id"]}
    await call("message_send", **message, message_type="task_assignment", body="Use linen.", priority="urgent")
    await call(
        "message_send", sender_id=worker, recipient_id=person, message_type="query", body="Which red?", subject="Red"
    )
    await call("message_broadcast", sender_id=leader, message_type="status_update", body="We print today.")
    return {"plan": workflow["id"], "bind": by_name["bind"], "sell": by_name["sell"], "worker": worker}


async def _tracked(agent: Agent) -> dict[str, str]:
    call = agent.call
    workflow = (await call("start_workflow", name="research", objective="Know it", profile="complex"))["workflow_id"]
    phase = (await call("start_phase", workflow_id=workflow, number=1, name="Read"))["phase_id"]
    who = {"caller_type": "subagent", "agent_name": "ada", "goal": "know"}
    started = await call("start_task", workflow_id=workflow, phase_id=phase, name="first", areas=["*.md"], **who)
    await call("log_milestone", task_id=started["task_id"], message="half", progress=50)
    outcome = {"summary": "read", "achievements": ["all"]}
    await call("complete_task", task_id=started["task_id"], status="success", outcome=outcome)
    second = (await call("start_task", workflow_id=workflow, phase_id=phase, name="second", **who))["task_id"]
    await call("log_decision", task_id=second, category="architecture", question="Paper?", chosen="Yes", reasoning="r")
    blocker = {"type": "other", "description": "No access", "resolution": "Ask", "requires_human_review": True}
    await call("log_issue", task_id=second, **blocker)
    return {"tracked": workflow, "phase": phase, "tracked task": second}


async def _reviews(writer: Writer) -> str:
    """Have a rule's review pass, and return the answer of the tool that lists reviews."""
    async with writer.agent(tools=["review"]) as agent:
        answer = await agent.text("get_review_instructions", files=["draft.md"])
        [review_id] = re.findall(r"review_instructions/(.+)\.md", answer)
        await agent.text("mark_review_as_passed", review_id=review_id, summary="No errors.")
        return review_id


def _client_session(writer: Writer) -> None:
    """Let the hook of a client note that its session has started one of ours."""
    started = {"begin_step": {"session_id": writer.sessions["at the first step"], "step_id": "draft"}, "stack": []}
    event = {
        "session_id": "window-1",
        "cwd": str(writer.project.root),
        "hook_event_name": "PostToolUse",
        "tool_name": "mcp__deepwork__start_workflow",
        "tool_input": {},
        "tool_response": [{"type": "text", "text": json.dumps(started)}],
    }
    command = [sys.executable, "-m", "deepwork", "hook", "PostToolUse", "--client", "claude"]
    subprocess.run(command, input=json.dumps(event), text=True, check=True, env={**os.environ, **PATIENCE})


PATIENCE = {"DEEPWORK_HOOK_SECONDS": "60"}


def _notify(writer: Writer, state: Path) -> None:
    """Send notifications of what waits, until it is noted that they were sent."""
    command = [sys.executable, "-m", "deepwork", "inbox", "--watch", "--notify", "--path", str(writer.project.root)]
    sender = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + NOTES_SECONDS
        while not any(len(json.loads(file.read_text())) for file in state.rglob("sent.json")):
            if time.monotonic() > end or sender.poll() is not None:
                raise SystemExit("no notification was sent")
            time.sleep(0.1)
        time.sleep(3)  # the others of the same look
    finally:
        sender.terminate()
        sender.wait()


def _prepare(folder: Path) -> DeepworkProject:
    for name in FOLDERS:
        (folder / name).mkdir()
    os.environ.update(environment(folder))
    (folder / "config/deepwork").mkdir()
    (folder / "config/deepwork/config.yml").write_text(USER_CONFIG)
    project = DeepworkProject(folder / "project")
    draft = step("draft", reviews=[review()], inputs=[{"name": "topic", "description": "What it is about"}])
    page = step("page", inputs=[{"file": "draft.md", "from_step": "draft"}], dependencies=["draft"])
    steps = [draft, step("web"), step("talk", reviews=[review("talk.md")]), page, step("edition")]
    steps[3]["outputs"]["page.md"] = output(required=False)
    workflows = {"write": ["draft", ["web", "talk", "page"], "edition"], "outline": ["draft"]}
    project.write_job("book", steps, workflows)
    for name in ("draft", "web", "talk", "page", "edition"):
        project.write(f"{name}.md", f"The {name}: Größe, 数据.\n")
    project.write(".deepwork/judge.py", JUDGE)
    project.write(".deepreview", RULE)
    os.chdir(project.root)
    for arguments in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "empty"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments], check=True)
    return project


def _fill_database(project: DeepworkProject) -> dict[str, Any]:
    """Fill the database that the environment names, with sessions too, and return what is there."""
    writer = Writer(project, "sql")
    anyio.run(writer.write_sessions)
    return {"sessions": writer.sessions, **anyio.run(writer.write_plans)}


def _dump(url: str) -> str:
    from deepwork_sql.cluster import find_program

    command = [find_program("pg_dump"), "--no-owner", "--no-privileges", url]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _packed(folder: Path) -> bytes:
    """Pack the folders, without paths of this machine, times, or users."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=9) as archive:
        for path in sorted(path for name in FOLDERS for path in (folder / name).rglob("*")):
            parts = path.relative_to(folder).parts
            if not {*parts} & {*LEFT_OUT} and not path.name.endswith((".lock", ".log", "-shm", "-wal")):
                member = tarfile.TarInfo(emptied(str(path.relative_to(folder)), folder))
                member.mode = path.stat().st_mode & 0o777
                if path.is_dir():
                    member.type = tarfile.DIRTYPE
                    archive.addfile(member)
                else:
                    content = path.read_bytes()
                    if path.suffix != ".db":
                        content = emptied(content.decode("latin-1"), folder).encode("latin-1")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _check_clean(target: Path, folder: Path) -> None:
    with tarfile.open(target / "files.tar.gz") as archive:
        texts = [file.read() for member in archive if (file := archive.extractfile(member))]
    texts += [file.read_bytes() for file in target.iterdir() if file.suffix != ".gz"]
    for word in (str(folder), key(folder), socket.gethostname(), str(Path(__file__).parents[1])):
        if any(word.encode() in text for text in texts):
            raise SystemExit(f"{word!r} of this machine is in the fixture")


def main() -> None:
    """Write a fixture."""
    from deepwork_sql.cluster import running_cluster

    target = Path(sys.argv[1]).resolve()
    folder = Path(tempfile.mkdtemp(prefix="stored-"))
    try:
        project = _prepare(folder)
        files = Writer(project, "json")
        files.configure()
        files.deepwork("trust", "--yes")
        anyio.run(files.write_sessions)
        project.write(f".deepwork/tmp/session_{OLD_ID}.json", json.dumps(OLD_SESSION, indent=2))
        files.sessions["of release 0.9"] = OLD_ID
        _client_session(files)
        _notify(files, folder / "state")
        review_id = anyio.run(_reviews, files)
        sqlite = _fill_database(project)
        with running_cluster() as cluster, cluster.new_database() as url:
            os.environ["DEEPWORK_DATABASE_URL"] = url
            postgresql = _fill_database(project)
            dump = emptied(_dump(url), folder)
        files.configure()
        replace_in_database(database(folder), lambda text: emptied(text, folder))
        with closing(sqlite3.connect(database(folder))) as connection:
            connection.execute("VACUUM")
        target.mkdir(parents=True, exist_ok=True)
        (target / "files.tar.gz").write_bytes(_packed(folder))
        (target / "postgresql.sql").write_text(dump)
        cases = {
            "json": {"sessions": files.sessions}, "sqlite": sqlite, "postgresql": postgresql,
            "review": review_id, "client session": "window-1",
        }  # fmt: skip
        (target / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")
        _check_clean(target, folder)
    finally:
        os.chdir("/")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
