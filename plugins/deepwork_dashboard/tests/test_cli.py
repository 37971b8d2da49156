"""`deepwork dashboard` as a process, and the dashboard without other plugins."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

from deepwork.testing.wire import PATIENCE


def test_the_command_prints_an_address_without_a_token_where_nobody_looks(project):
    with project.dashboard() as dash:
        assert dash.url.startswith("http://127.0.0.1:")
        assert "token" not in dash.url
        assert dash.get("api/session")["project"] == project.root.name
        assert dash.end() == 0


def test_a_port_in_use_is_a_clear_error_and_the_default_port_is_not_insisted_on(project):
    with project.dashboard() as dash:
        port = dash.netloc.partition(":")[2]
        refused = project.run("dashboard", "--port", port)
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"Error: cannot listen on 127.0.0.1:{port}: Address already in use")
        assert "--port" in refused.stderr
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        except OSError:
            pass  # another program has it, which is as good
        with project.dashboard("--host", "127.0.0.1") as first, project.dashboard() as second:
            assert first.get("api/session")["project"] == second.get("api/session")["project"]


def test_off_loopback_it_wants_tokens_and_names(project):
    refused = project.run("dashboard", "--host", "0.0.0.0")
    assert refused.returncode == 1
    assert "--token-file and --allowed-host" in refused.stderr


@pytest.fixture
def browser(tmp_path):
    """A browser that notes its argument; calling it waits for that, and gives the file that it was told to open."""
    argument, program = tmp_path / "seen", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf %s "$*" > {argument}.part && mv {argument}.part {argument}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def opened():
        deadline = time.monotonic() + PATIENCE
        while not argument.exists():
            assert time.monotonic() < deadline, "no browser was started"
            time.sleep(0.05)
        return argument.read_text(), Path(unquote(argument.read_text().removeprefix("file://")))

    opened.environment = {"BROWSER": f"{program} %s"}
    return opened


def test_open_gives_the_browser_a_file_of_the_user_that_logs_in_once(project, browser):
    """Everybody on the machine can read the command line of a browser, so it has no code."""
    with project.dashboard("--open", env=browser.environment) as dash:
        argument, file = browser()
        assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
        url, _, code = file.read_text().partition("url=")[2].partition('"')[0].partition("#token=")
        assert (url, bool(code), code in argument + dash.url) == (dash.url, True, False)
        assert dash.ask("api/session", token=code).status == 401
        page, _ = dash.log_in(code)
        assert dash.ask("api/session", **page).json()["person"] is True
        assert not file.exists()
        again = dash.ask("login", "POST", body={"token": code}, token=None, Origin=dash.origin)
        assert again.status == 401
        assert dash.end() == 0
        assert code not in dash.process.stderr.read()


def test_a_file_that_no_browser_has_used_is_gone_when_the_dashboard_is(project, browser):
    with project.dashboard("--open", env=browser.environment) as dash:
        _, file = browser()
        assert file.exists()
        assert dash.end() == 0
        assert not file.exists()


@pytest.mark.skipif(sys.platform == "darwin", reason="there is no xdg-open")
def test_open_takes_the_browser_of_the_user_and_none_of_the_project(project, tmp_path):
    """`npx` and direnv put folders of the project into PATH, and desktops look there for more than the browser."""
    for name in ("xdg-open", "xdg-settings"):
        project.write(name, f"#!/bin/sh\ntouch {tmp_path}/ran\n").chmod(0o755)
    mark, user = tmp_path / "seen", tmp_path / "bin" / "xdg-open"
    user.parent.mkdir()
    user.write_text(f"#!/bin/sh\nxdg-settings\ntouch {mark}\n")
    user.chmod(0o755)
    path = os.pathsep.join([".", str(project.root), str(user.parent), os.environ["PATH"], ""])
    with project.dashboard("--open", env={"PATH": path, "DISPLAY": ":7", "BROWSER": ""}):
        deadline = time.monotonic() + PATIENCE
        while not mark.exists():
            assert time.monotonic() < deadline, "no browser was started"
            time.sleep(0.05)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("number", [1, 2])
def test_no_error_prints_the_content_of_a_token_file(project, tokens, number):
    names = ("alice alices-token-for-tests", "bob bobs-token-for-tests")
    with project.dashboard("--token-file", tokens("\n".join(names[:number]) + "\n")) as dash:
        assert dash.get("api/session", token="alices-token-for-tests")["principal"] == "alice"


def test_a_project_that_cannot_be_used_is_a_clear_error(project, tmp_path):
    refused = project.run("dashboard", "--path", str(tmp_path / "nowhere"))
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: ")
    assert "Traceback" not in refused.stderr


def test_views_of_plugins_that_are_not_there_are_left_out(project):
    """The JSON store alone is enough."""
    with project.dashboard(env={"DEEPWORK_NO_PLUGINS": "sql,orchestration,tracking,review"}) as dash:
        session = dash.get("api/session")
        assert (session["views"], session["database"]) == (["inbox", "overview", "sessions", "events"], None)
        assert set(dash.get("api/overview")["counts"]) == {"inbox", "sessions"}
        for path in ("api/plans", "api/agents", "api/messages", "api/work", "api/reviews/rules", "api/tasks/x"):
            answer = dash.ask(path)
            assert (answer.status, "is not installed" in answer.json()["error"]["message"]) == (404, True), path
        assert dash.get("api/events")["items"] == []
        assert dash.get("api/search?q=x")["items"] == []


def test_looking_makes_no_database(project):
    with project.dashboard() as dash:
        for path in ("overview", "plans", "agents", "messages", "work", "events", "search?q=x", "session"):
            dash.get(f"api/{path}")
        assert dash.ask("api/plans/wf_x").status == 404
    assert list(Path(project.env["XDG_STATE_HOME"]).rglob("deepwork.db")) == []


@pytest.mark.slow
def test_a_database_that_does_not_answer_hides_nothing_of_the_runs(project):
    env = {"DEEPWORK_DATABASE_URL": "postgresql://nobody:secret@127.0.0.1:1/nothing"}
    with project.dashboard(env=env) as dash:
        session = dash.get("api/session")
        assert session["database"]["problem"]
        answer = dash.ask("api/plans")
        assert answer.status == 503
        assert "secret" not in answer.text + str(session)
        overview = dash.get("api/overview")
        assert overview["counts"]["sessions"]["active"] == 0
        assert overview["problems"]
        assert dash.get("api/sessions")["items"] == []


@pytest.mark.parametrize("kind", ["dashboard", "server"])
def test_a_running_dashboard_tells_the_user_what_waits_with_no_page_open(project, tmp_path, kind):
    notices = tmp_path / "told"
    config = Path(project.env["XDG_CONFIG_HOME"]) / "deepwork" / "config.yml"
    code = f"import sys; open({str(notices)!r}, 'ab').write(sys.stdin.buffer.read() + b'\\n')"
    command = [sys.executable, "-c", code]
    config.write_text(json.dumps({"notifications": {"command": command}}))
    (project.root / ".deepwork" / "tmp").mkdir(mode=0o700)
    project.write(".deepwork/tmp/session_0123456789abcdef0123456789abcdef.json.20260101T000000.corrupt", "{")
    with getattr(project, kind)() as dash:
        [item] = dash.get("api/inbox")["items"]
        deadline = time.monotonic() + PATIENCE
        while not (notices.exists() and notices.read_text().endswith("\n")):
            assert time.monotonic() < deadline, "nobody was told"
            time.sleep(0.05)
        assert item["id"] in notices.read_text()
        assert dash.end() == 0


@pytest.mark.anyio
async def test_a_page_answers_for_one_of_the_failed_tasks_of_a_stuck_plan(project):
    """Without the task it is told which there are; a plan that has moved on meanwhile is not answered."""
    with project.dashboard() as dash:
        async with project.agent("orchestration") as agent:
            plan = (await agent.call("workflow_create", name="q3", source_type="custom", source_content="x"))["id"]
            tasks = [{"name": name, "description": name, "sequence": 1} for name in ("vat", "fees")]
            await agent.call("workflow_set_plan", id=plan, plan={"summary": "s", "approach": "a", "tasks": tasks})
            ids = {
                task["name"]: task["id"]
                for task in (await agent.call("workflow_get", id=plan, include_tasks=True))["tasks"]
            }
            for task_id in ids.values():
                for status in ("planning", "in_progress", "failed"):
                    await agent.call("task_update_status", id=task_id, status=status, error="broke")
            _, action = dash.log_in()
            [item] = dash.get("api/inbox?kind=plan-stuck")["items"]
            assert item["thing"] == f"plan:{plan}"
            listed = [{"id": ids[name], "name": name} for name in ("fees", "vat")]
            assert [offered["tasks"] for offered in item["actions"]] == [listed] * 4
            answer = {"id": item["id"], "action": "retry", "state": item["state"]}
            for task, status in ((None, 400), (1, 400), ("tk_other", 400), (ids["vat"], 200), (ids["fees"], 404)):
                answered = dash.ask("api/inbox/answer", "POST", body={**answer, "task": task}, **action)
                assert answered.status == status, answered.text
            statuses = [(await agent.call("task_get", id=ids[name]))["status"] for name in ("vat", "fees")]
            assert statuses == ["pending", "failed"]
