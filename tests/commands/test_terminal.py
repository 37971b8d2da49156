"""Nothing that a repository or an agent wrote steers the terminal of who looks at it, and programs get it exactly."""

from __future__ import annotations

import ast
import json
import logging
import os
import pty
import re
import shutil
import subprocess
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

import deepwork
from deepwork.cli.logs import ForPeople
from deepwork.testing import DeepworkProject, review, step
from deepwork.text import one_line, quoted_lines

pytestmark = pytest.mark.anyio

# Colours, a bell, a cleared screen, a turned direction, invisible characters, and a line of its own.
EVIL = "x\x1b[31m\x07\x08\r\x7f\x9b2J\u202e\u2066\u200e\u061c\u200b\u2060\ufeff\u00ad\u2028\U000e0041\nforged"
FILE = f"{EVIL}.md"
SUMMARY = f"Do {EVIL}"
GOAL = f"Goal {EVIL}"
NO_TEXT = b"no\xfftext".decode(errors="surrogateescape")


def steering(text):
    """Return the characters of an output that control a terminal, except those of its layout."""
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n", "\t"}


@pytest.fixture
def hostile(tmp_path):
    """A project in which everything that may hold text holds evil, its own folder's name too."""
    project = DeepworkProject(tmp_path / EVIL)
    doing = step("a", name=SUMMARY, description=SUMMARY, outputs={"a.md": {"type": "files", "description": SUMMARY}})
    doing["outputs"]["a.md"]["required"] = True
    doing["reviews"] = [review(quality_criteria={SUMMARY: SUMMARY}, additional_review_guidance=SUMMARY)]
    folder = project.write_job("evil", [doing, step("b")], summary=SUMMARY, folder=project.jobs / EVIL)
    folder.rename(project.jobs / "evil")
    (project.jobs / EVIL).rmdir()
    project.write(project.jobs / "evil" / "steps" / "a.md", f"Read {EVIL}\n\tthen act\n")
    project.write_job("odd", summary=SUMMARY, folder=project.jobs).rename(project.jobs / f"odd {EVIL}")
    project.write(project.jobs / f"bad {EVIL}" / "job.yml", yaml.safe_dump({"name": EVIL, EVIL: EVIL}))
    project.write(".deepwork/config.yml", yaml.safe_dump({"allowed_output_roots": [f"/{EVIL}"]}))
    project.write(".mcp.json", json.dumps({"mcpServers": {"deepwork": {"command": EVIL}}}))
    project.write(FILE)
    project.write("b.md")
    return project


@pytest.fixture
async def session(hostile):
    """A session whose first step was handed in and judged, with evil wherever an agent can give text."""
    async with hostile.agent() as agent:
        begin = await agent.call("start_workflow", goal=GOAL, job_name="evil", workflow_name="main")
        await agent.finish({"a.md": [FILE]}, notes=EVIL)
        await agent.finish({"a.md": [FILE]}, quality_review_override_reason=f"Because {EVIL}")
        return begin["begin_step"]["session_id"]


@pytest.fixture
def look(run, hostile):
    """Run a command in the hostile project, and return its output; an error must not be a bug of ours."""

    def look(*arguments, **environment):
        ended = run(*arguments, cwd=hostile.root, **environment)
        assert ended.returncode in (0, 1, 2), ended.stderr
        return ended.stdout, ended.stderr

    return look


def assert_harmless(*texts):
    for text in texts:
        assert steering(text) == set()
        assert not [line for line in text.splitlines() if line.startswith("forged")]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["jobs", "list"], r"evil  (project)  Do x\x1b[31m\x07\x08\r\x7f\x9b2J\u202e\u2066"),
        (["jobs", "list"], r"broken  Failed to load: "),
        (["jobs", "check"], r"/bad x\x1b[31m"),
        (["jobs", "check"], r"its folder 'odd x\x1b[31m"),
        (["jobs", "check", f"nowhere {EVIL}"], r"nowhere x\x1b[31m"),
        (["doctor"], r"root /"),
        (["doctor"], r".mcp.json: there is no such program: x\x1b[31m"),
        (["trust"], r"/x\u001b[31m"),
        (["trust", "--yes"], r"setting allowed_output_roots"),
        (["init"], r"kept     .deepwork/config.yml"),
        (["plugins", "--all"], "json_store"),
        (["sessions", "list"], "No sessions."),
        (["sessions", "show", EVIL], r"Session 'x\x1b[31m"),
        (["sessions", "clean"], "sessions."),
        (["schema", "job"], "$schema"),
        (["completion", "bash"], "_DEEPWORK_COMPLETE"),
        (["new-plugin", EVIL], r"'x\x1b[31m"),
        (["new-plugin", "weather", "--into", EVIL], r"created  x\x1b[31m"),
        (["gate", "try", "evil", EVIL], r"has no step 'x\x1b[31m"),
        (["gate", "try", "evil", "a", "--file", FILE, "--runner", EVIL], r"no review runner 'x\x1b[31m"),
        (["gate", "try", "evil", "a", "--file", FILE], "not judged"),
        (["gate", "try", f"odd {EVIL}", "a"], "odd x"),
        (["serve", "--tools", EVIL], r"no tool set 'x\x1b[31m"),
        (["serve", "--state-store", EVIL], r"no state store 'x\x1b[31m"),
        (["serve", "--log-json", f"{EVIL}/nowhere"], "cannot be written"),
        (["serve", "--port", EVIL], r"x\x1b[31m"),
        ([EVIL], "No such command"),
        ([f"--{EVIL}"], "No such option"),
        (["init", "one", EVIL], r"unexpected extra arguments (one x\x1b[31m"),
        (["init", "--path", EVIL], "is not a folder"),
    ],
    ids=lambda value: (
        " ".join(value)[:20].encode("ascii", "backslashreplace").decode() if isinstance(value, list) else ""
    ),
)
def test_what_a_hostile_repository_or_argument_holds_is_shown_escaped(look, arguments, text):
    out, err = look(*arguments)
    assert_harmless(out, err)
    assert text in out + err


async def test_what_an_agent_said_is_shown_escaped(look, session):
    for arguments, text in (
        (["sessions", "list"], r"evil/main at b, step 2 of 2: Goal x\x1b[31m"),
        (["sessions", "show", session], r"goal     Goal x\x1b[31m"),
        (["sessions", "show", session], r"self-review passed, by the agent's word: Because x\x1b[31m"),
        (["sessions", "history", session], r"\u202e"),
        (["gate", "show", session], r"self-review passed, by the agent's word: Because x\x1b[31m"),
        (["sessions", "abort", session, "--reason", EVIL], "aborted"),
        (["sessions", "show", session], "ended"),
        (["sessions", "clean", "--older-than", "0"], "archived"),
    ):
        out, err = look(*arguments)
        assert_harmless(out, err)
        assert text in out + err


async def test_a_session_file_that_came_with_the_repository_is_shown_escaped(look, hostile, session):
    file = hostile.state / f"session_{session}.json"
    stored = json.loads(file.read_text())
    for entry in stored["history"]:
        entry["detail"] = {**entry["detail"], "runner": EVIL, "feedback": EVIL, "number": EVIL, "reason": EVIL}
    file.write_text(json.dumps({**stored, "workflow_name": EVIL, "principal": EVIL}))
    for arguments in (["list"], ["show", session], ["history", session]):
        out, err = look("sessions", *arguments)
        assert_harmless(out, err)
        assert r"\x9b2J\u202e" in out
    assert_harmless(*look("gate", "show", session))


def test_on_a_terminal_the_only_escapes_are_our_colours(hostile):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "deepwork", "jobs", "list"]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, cwd=hostile.root) as process:
        os.close(theirs)
        output = b""
        with suppress(OSError):  # Linux reports so that the last writer has closed it
            while chunk := os.read(ours, 65536):
                output += chunk
        assert process.wait(100) == 0
    os.close(ours)
    text = output.decode().replace("\r\n", "\n")
    assert set(re.findall(r"\x1b\[\d*m", text)) == {"\x1b[1m", "\x1b[31m", "\x1b[0m"}
    assert_harmless(re.sub(r"\x1b\[\d*m", "", text))
    assert r"x\x1b[31m" in text


async def test_instructions_keep_their_lines_and_tabs_and_nothing_else_that_steers(look, hostile):
    async with hostile.agent() as agent:
        session_id = (await agent.start("evil"))["session_id"]
    out, err = look("sessions", "resume-text", session_id)
    assert (steering(out), err) == (set(), "")
    assert "\n\tthen act\n" in out
    assert r"Read x\x1b[31m" in out


async def test_programs_get_everything_exactly_and_in_ascii(look, hostile, session):
    def read(*arguments):
        out, _ = look(*arguments, "--json")
        assert out.isascii()
        return json.loads(out)

    listed = read("jobs", "list")
    assert SUMMARY in [job["summary"] for job in listed["jobs"]]
    assert str(hostile.jobs / f"bad {EVIL}") in [error["job_dir"] for error in listed["errors"]]
    assert f"bad {EVIL}" in [error["job_name"] for error in read("jobs", "check")["errors"]]
    assert [item["goal"] for item in read("sessions", "list")["sessions"]] == [one_line(GOAL)]
    report = read("sessions", "show", session)
    assert report["goal"] == GOAL
    assert report["step_progress"]["a"]["outputs"] == {"a.md": [FILE]}
    assert f"Because {EVIL}" in [entry["detail"].get("reason") for entry in read("sessions", "history", session)]
    assert f"Because {EVIL}" in [entry["detail"].get("reason") for entry in read("gate", "show", session)]
    assert quoted_lines(GOAL) in read("sessions", "resume-text", session)["text"]
    assert str(hostile.root) in " ".join(item["text"] for item in read("doctor")["findings"])
    assert json.loads(look("jobs", "get-stack")[0])["active_sessions"][0]["goal"] == one_line(GOAL)


async def test_the_log_of_a_server_is_one_visible_line_for_a_call_of_any_name(hostile):
    async with hostile.stdio_agent("--log-json", str(hostile.root / "log.jsonl")) as agent:
        reply = await agent.refused(EVIL)
        await agent.call("get_workflows")
    log = (hostile.root / "server.log").read_text()
    assert_harmless(log)
    assert r"deepwork.calls: x\x1b[31m\x07\x08\r\x7f\x9b2J" in log
    assert repr(EVIL)[1:-1] in reply
    entries = [json.loads(line) for line in (hostile.root / "log.jsonl").read_text().split("\n") if line]
    assert EVIL in [entry.get("tool") for entry in entries]


def test_a_traceback_in_the_log_stands_below_its_line_and_steers_nothing():
    try:
        raise ValueError(f"wrong: {EVIL}")
    except ValueError as error:
        record = logging.LogRecord("deepwork", logging.ERROR, __file__, 1, "%s failed", (EVIL,), None)
        record.exc_info = (ValueError, error, error.__traceback__)
    first, *more_lines = ForPeople("%(levelname)s %(message)s").format(record).split("\n")
    assert first.startswith(r"ERROR x\x1b[31m")
    assert first.endswith(r"\nforged failed")
    assert all(line.startswith("  ") for line in more_lines)
    assert steering("".join(more_lines)) == set()


def test_a_bug_in_a_folder_whose_name_is_no_text_is_still_one_line(run, install, tmp_path):
    install("commands")
    folder = shutil.copytree(os.environ["PYTHONPATH"], tmp_path / NO_TEXT)
    ended = run("crash", PYTHONPATH=str(folder))
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (3, "", 1)


SOURCE = Path(deepwork.__file__).parent
MODULES = sorted(path for room in ("builtin", "cli", "commands") for path in (SOURCE / room).rglob("*.py"))
WRITERS = {"echo", "secho", "style", "echo_via_pager", "show", "write", "writelines"}


def writers(tree):
    """Yield the calls in a module that write to a terminal, or colour text for it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"print", "echo"}:
            yield node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITERS:
            yield ast.unparse(node.func)


def test_no_command_writes_to_the_terminal_by_itself():
    """Only `terminal` does, and `hook`, whose answer is the protocol of a client; the others write files."""
    names_of = {str(path.relative_to(SOURCE)): list(writers(ast.parse(path.read_text()))) for path in MODULES}
    del names_of["commands/terminal.py"]
    assert {module: names for module, names in names_of.items() if names} == {
        "builtin/authoring/new.py": ["file.write"],
        "builtin/clients/hook.py": ["click.echo"],
        "builtin/demo/acts.py": ["agent.write"] * 3,
        "builtin/json_store/changes.py": ["os.write"],
        "builtin/json_store/saves.py": ["note.write"],
        "builtin/people/review.py": ["click.echo_via_pager", "file.write"],
        "builtin/http/app.py": ["sys.stderr.write", "sys.stderr.write"],  # the server's address, and that it ends
        "builtin/http/login_file.py": ["file.write"],
        "cli/init.py": ["file.write"],
        "cli/main.py": ["report.write"],
    }


def test_the_search_finds_what_writes():
    text = "print(1)\nclick.echo(2)\nclick.style(3)\nsys.stderr.write(4)\nerror.show()\nsay(5)"
    assert [*writers(ast.parse(text))] == ["print", "click.echo", "click.style", "sys.stderr.write", "error.show"]
