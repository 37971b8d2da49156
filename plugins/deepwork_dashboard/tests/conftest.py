"""Real dashboards of real projects, and agents in other processes that fill them."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import pty
import re
import secrets
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest
from websockets.asyncio.client import connect

from deepwork.testing import DeepworkProject, review, step
from deepwork.testing.wire import PATIENCE
from deepwork_sql.testing import module_database_url, postgres_server  # noqa: F401 - fixtures

# What agents write, which a page that took it for HTML would run.
MARKUP = "<img src=x onerror=alert(1)>"
# A reviewer that judges as the reviewed file asks it to.
REVIEWER = """
import json, sys
request = json.load(sys.stdin)
passed = "good" in request["payload"]
print(json.dumps({
    "passed": passed, "feedback": "fine" if passed else "no <b>source</b> named",
    "criteria_results": [
        {"criterion": name, "passed": passed, "feedback": None if passed else "why?"} for name in request["criteria"]
    ],
}))
"""


class Answer:
    """An answer over HTTP."""

    def __init__(self, response, body):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.cookies = [value for name, value in response.getheaders() if name.lower() == "set-cookie"]
        self.body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body

    @property
    def text(self):
        return self.body.decode()

    def json(self):
        return json.loads(self.body)


class Dash:
    """A server with a dashboard, as pages and programs see it."""

    def __init__(self, process, url, token):
        self.process = process
        self.url = url
        self.token = token
        self.netloc = urlsplit(url).netloc
        self.origin = f"http://{self.netloc}"
        self.mount = urlsplit(url).path
        self.log = []

    def ask(self, path, method="GET", *, body=None, token=True, **headers):
        """Send a request; `token=True` sends the own token, other texts are sent instead, None sends none."""
        sent = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        if token:
            sent["Authorization"] = f"Bearer {self.token if token is True else token}"
        if body is not None and not isinstance(body, bytes | str):
            body, sent["Content-Type"] = json.dumps(body), "application/json"
        connection = http.client.HTTPConnection(self.netloc, timeout=PATIENCE)
        try:
            connection.request(method, f"{self.mount}{path}", body, sent)
            response = connection.getresponse()
            return Answer(response, response.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        """Get JSON."""
        answer = self.ask(path, Accept_Encoding="gzip", **headers)
        assert answer.status == 200, (path, answer.status, answer.text)
        return answer.json()

    def log_in(self, token=None):
        """Log in as a page does, and give what it sends from then on: the cookie, and the CSRF token for actions."""
        answer = self.ask("login", "POST", body={"token": token or self.token}, token=None, Origin=self.origin)
        assert answer.status == 204, answer.text
        [cookie] = answer.cookies
        page = {"token": None, "Cookie": cookie.partition(";")[0]}
        csrf = self.ask("api/session", **page).json()["csrf"]
        return page, {**page, "Origin": self.origin, "X_CSRF_Token": csrf}

    def live(self, since=None, **headers):
        """Open the WebSocket."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = sent or {"Authorization": f"Bearer {self.token}"}
        query = f"?since={since}" if since else ""
        return connect(f"ws://{self.netloc}{self.mount}live{query}", additional_headers=sent, proxy=None, max_size=None)

    def end(self, number=signal.SIGTERM):
        """Stop the server, and give its exit code."""
        self.process.send_signal(number)
        return self.process.wait(100)


async def hear(socket, *things, seconds=PATIENCE):
    """Read until all of these things were told, and give the last message."""
    missing = set(things)
    with anyio.fail_after(seconds):
        while True:
            message = json.loads(await socket.recv())
            missing -= set(message.get("things", ()))
            if not missing and message["type"] == "changes":
                return message


def environment(home, **more):
    """Return the environment of a process that sees no configuration of the user who runs the tests."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("DEEPWORK_", "PG"))}
    state = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "XDG_STATE_HOME": str(home / "state")}
    (home / ".gitconfig").write_text("[user]\n\tname = Somebody\n\temail = somebody@example.org\n")
    return variables | state | more


class Project(DeepworkProject):
    """A project with two jobs and a reviewer, whose servers are processes of their own."""

    def __init__(self, root, env):
        super().__init__(root)
        self.env = env
        root.mkdir()
        subprocess.run(["git", "init", "-q", root], check=True, env=env)
        self.write_job("report", [step("gather"), step("write", reviews=[review("write.md")]), step("check")])
        self.write_job("plain")
        config = Path(env["XDG_CONFIG_HOME"]) / "deepwork" / "config.yml"
        config.parent.mkdir(parents=True, exist_ok=True)
        command = {"judge": {"run": [sys.executable, str(self.write("../judge.py", REVIEWER))]}}
        config.write_text(json.dumps({"quality_gate": {"commands": command, "runner": "judge"}}))

    @asynccontextmanager
    async def agent(self, tools, *arguments):
        """Start a server over stdio and connect to it."""
        async with self.stdio_agent("--tools", tools, *arguments, env=self.env) as agent:
            yield agent

    def run(self, *arguments, **more):
        """Run the command `deepwork`."""
        command = [sys.executable, "-m", "deepwork", *arguments]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, env=self.env, timeout=240, **more)

    @contextmanager
    def dashboard(self, *options, env=None):
        """Start `deepwork dashboard`; a person logs in with a token, if the test names none and opens no browser."""
        port, (tokens, token) = () if "--port" in options else ("--port", "0"), self._tokens(options)
        with self._process(["dashboard", "--path", str(self.root), *port, *tokens, *options], env) as process:
            url = process.stdout.readline().removeprefix("Dashboard: ").strip()
            yield Dash(process, url, token)

    @contextmanager
    def server(self, *options, env=None, tokens=True):
        """Start `deepwork serve --transport http`, likewise."""
        tokens, token = self._tokens(options) if tokens else ((), "")
        command = ["serve", "--transport", "http", "--path", str(self.root), "--port", "0", *tokens, *options]
        with self._process(command, env) as process:
            lines = iter(process.stderr.readline, "")
            address = next(match[1] for line in lines if (match := re.search(r"listening on (http://[^/]+)", line)))
            dash = Dash(process, f"{address}/plugins/dashboard/", token)
            # Without a reader of its log the server would block.
            dash.reader = threading.Thread(target=lambda: dash.log.extend(process.stderr), daemon=True)
            dash.reader.start()
            yield dash

    @contextmanager
    def shown_in_terminal(self, *command):
        """Run a command at a terminal, and give the first lines that it shows, up to one with an address."""
        primary, secondary = pty.openpty()
        words = [sys.executable, "-m", "deepwork", *command, "--path", str(self.root), "--port", "0"]
        stream = {"stdin": secondary, "stdout": secondary, "stderr": secondary}
        with subprocess.Popen(words, env=self.env, **stream) as process, open(primary, closefd=True) as terminal:
            os.close(secondary)
            try:
                lines = []
                while not lines or "#token=" not in lines[-1]:
                    lines.append(terminal.readline())
                yield lines
            finally:
                process.terminate()

    def _tokens(self, options):
        if {"--token-file", "--open"} & {*options}:
            return (), ""
        token = secrets.token_urlsafe(32)
        file = self.root.parent / "own-tokens"
        file.touch(mode=0o600)
        file.write_text(f"local {token} person\n")
        return ("--token-file", str(file)), token

    @contextmanager
    def _process(self, command, env):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        words = [sys.executable, "-m", "deepwork", *command]
        with subprocess.Popen(words, text=True, env={**self.env, **(env or {})}, **pipes) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()


@pytest.fixture
def dash_at():
    """Reach a dashboard that the test has started itself."""
    return lambda url, token: Dash(None, url, token)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def project(tmp_path):
    """An empty project, with sessions in files."""
    (tmp_path / "home").mkdir()
    return Project(tmp_path / "project", environment(tmp_path / "home"))


@pytest.fixture(scope="session")
def shared_project_at(tmp_path_factory):
    """Make a project for many tests."""

    def make(name):
        folder = tmp_path_factory.mktemp(name)
        (folder / "home").mkdir()
        return Project(folder / "project", environment(folder / "home"))

    return make


@pytest.fixture
def tokens(tmp_path):
    """Write a token file, and give its path."""

    def write(text="alice alices-token-for-tests\nbob bobs-token-for-tests\n"):
        file = tmp_path / "tokens"
        file.write_text(text)
        file.chmod(0o600)
        return str(file)

    return write


@pytest.fixture
def listen():
    """Return the function that reads a WebSocket until changes were told."""
    return hear


@pytest.fixture(scope="session", params=["json", pytest.param("sql", marks=pytest.mark.slow)])
def filled(request, shared_project_at):
    """A project in which agents have worked, a dashboard of it, and the ids of what they made."""
    project = shared_project_at(request.param)
    store = ("--state-store", request.param)
    ids = anyio.run(fill, project, store)
    with project.dashboard(env={"DEEPWORK_STATE_STORE": request.param}) as dash:
        yield dash, ids


async def fill(project, store):
    """Let agents do a bit of everything."""
    ids = {}
    async with project.agent("core", *store) as agent:
        first_step = await agent.start("report", instance_id="may")
        ids["session"] = first_step["session_id"]
        project.write("gather.md", f"# {MARKUP}\n")
        await agent.finish({"gather.md": "gather.md"}, session_id=first_step["session_id"], notes="as told")
        project.write("write.md", "bad\n")
        report = {"outputs": {"write.md": "write.md"}, "session_id": first_step["session_id"]}
        for _ in range(2):
            await agent.call("finished_step", **report)
        await agent.refused("finished_step", **report)
        plain_run = await agent.start("plain", "main")
        ids["done"] = plain_run["session_id"]
        for step in ("a", "b"):
            project.write(f"{step}.md", "fine\n")
            await agent.finish({f"{step}.md": f"{step}.md"}, session_id=plain_run["session_id"])
    async with project.agent("orchestration") as agent:
        ids |= await make_plan(agent)
    async with project.agent("tracking") as agent:
        ids |= await track_work(project, agent)
    return ids


async def make_plan(agent):
    created = await agent.call("workflow_create", name="Migrate", source_type="custom", source_content=MARKUP)
    tasks = [
        {"name": "schema", "description": "d", "sequence": 1},
        {"name": "import", "description": "d", "sequence": 2, "depends_on": ["schema"]},
        {"name": "check", "description": "d", "sequence": 3, "depends_on": ["import"]},
        {"name": "ask", "description": "d", "sequence": 1, "required_capabilities": ["human"]},
    ]
    await agent.call("workflow_set_plan", id=created["id"], plan={"summary": "s", "approach": "a", "tasks": tasks})
    listed = await agent.call("workflow_get", id=created["id"], include_tasks=True)
    ids = {task["name"]: task["id"] for task in listed["tasks"]}
    worker = await agent.call("agent_register", name="Worker", runtime="codex")
    lead = await agent.call("agent_register", name="Lead", runtime="claude_code", role="coordinator")
    await agent.call("task_claim", task_id=ids["schema"], agent_id=worker["id"])
    await agent.call("task_update_status", id=ids["schema"], status="planning")
    await agent.call("checkpoint_add", task_id=ids["schema"], type="progress", summary=MARKUP, files_changed=["a.py"])
    await agent.call(
        "message_send", sender_id=worker["id"], recipient_id=lead["id"], message_type="query", body={"deep": MARKUP}
    )
    to_person = {"recipient_id": "person", "message_type": "query", "body": "Which?"}
    await agent.call("message_send", sender_id=worker["id"], **to_person)
    return {"plan": created["id"], "tasks": ids, "worker": worker["id"], "lead": lead["id"]}


async def track_work(project, agent):
    tracked = await agent.call("start_workflow", name="Login", objective=MARKUP)
    phase = await agent.call("start_phase", workflow_id=tracked["workflow_id"], number=1, name="Design")
    about = {"workflow_id": tracked["workflow_id"], "phase_id": phase["phase_id"], "caller_type": "subagent"}
    task = await agent.call("start_task", **about, agent_name="ann", name="draw", goal=MARKUP)
    project.write("drawing <b>.txt")
    log = {"task_id": task["task_id"]}
    await agent.call("log_milestone", **log, message="half", progress=50)
    await agent.call("log_decision", **log, category="other", question="q", chosen="c", reasoning="r")
    issue = {"type": "other", "description": "stuck", "resolution": "r", "requires_human_review": True}
    await agent.call("log_issue", **log, **issue)
    await agent.call("complete_task", **log, status="success", outcome={"summary": "drawn"})
    return {"work": tracked["workflow_id"], "work_task": task["task_id"]}


@pytest.fixture
def markup():
    """Return what agents have written in `filled`, which a page that took it for HTML would run."""
    return MARKUP
