"""One middleware around every call: what is logged, and in which words errors reach an agent."""

from __future__ import annotations

import json
import logging
import re

import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
def logged(caplog):
    """Return the facts of the calls that were logged, without how long they took."""
    caplog.set_level(logging.INFO)

    def logged():
        facts = [record.facts for record in caplog.records if record.name == "deepwork.calls"]
        return [(fact["tool"], fact["outcome"], fact["stack"]) for fact in facts]

    return logged


async def test_every_call_is_logged_with_tool_and_stack(project, logged, caplog):
    project.write_job()
    project.write("a.md")
    async with project.agent() as agent:
        await agent.call("get_workflows")
        await agent.start()
        await agent.start()
        await agent.finish({"a.md": "a.md"})
    assert logged() == [
        ("get_workflows", "ok", []),
        ("start_workflow", "ok", ["demo/main@a"]),
        ("start_workflow", "ok", ["demo/main@a", "demo/main@a"]),
        ("finished_step", "ok", ["demo/main@a", "demo/main@b"]),
    ]
    assert re.fullmatch(r"finished_step: ok \(stack: demo/main@a > demo/main@b, [\d.]+ ms\)", caplog.messages[-1])


async def test_refused_calls_are_logged_with_the_reason(project, logged):
    project.write_job()
    async with project.agent() as agent:
        begin = await agent.start()
        await agent.refused("finished_step", outputs={})
        await agent.refused("finished_step", outputs=7)
        await agent.refused("finished_steps")
    stack = ["demo/main@a"]
    missing = f"error: Missing required outputs: a.md (step 'a' of demo/main, session {begin['session_id']!r})"
    assert logged()[1:] == [
        ("finished_step", missing, stack),
        ("finished_step", "error: finished_step: wrong arguments; nothing was changed", stack),
        ("finished_steps", "unknown tool", stack),
    ]


async def test_a_name_without_end_is_cut_in_the_log_and_in_the_answer(project, logged):
    async with project.agent() as agent:
        text = await agent.refused("x" * 5000)
    assert logged()[0][0] == "x" * 100
    assert len(text) < 300


FOUR = "The tools for workflows: get_workflows, start_workflow, finished_step, abort_workflow."


async def test_an_unknown_tool_is_refused_with_the_nearest_name(project):
    async with project.agent() as agent:
        assert await agent.refused("finish_step") == (
            "Unknown tool: 'finish_step'; did you mean 'finished_step'? " + FOUR
        )
        assert await agent.refused("zzz") == ("Unknown tool: 'zzz'. " + FOUR)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("tool", "arguments", "lines"),
    [
        ("finished_step", {}, ["outputs: is required"]),
        ("finished_step", {"outputs": {}, "note": "x"}, ["note: is not a parameter; did you mean 'notes'?"]),
        ("finished_step", {"outputs": "a.md"}, ["outputs: give an object, not a string"]),
        (
            "finished_step",
            {"outputs": {"a": 7}},
            ["outputs.a: give a path or a list of paths, not a number"],
        ),
        (
            "start_workflow",
            {"goal": None, "job_name": "demo"},
            ["goal: give a string, not null", "workflow_name: is required"],
        ),
        ("get_workflows", {"all": True}, ["all: is not a parameter; this tool takes none"]),
    ],
)
async def test_wrong_arguments_are_named_each_with_what_would_be_right(project, mode, tool, arguments, lines):
    async with project.agent(mode=mode) as agent:
        text = await agent.refused(tool, **arguments)
    assert text.splitlines() == [f"{tool}: wrong arguments; nothing was changed", *lines]


@pytest.mark.parametrize("arguments", [{"outputs": {f"o{n}": n for n in range(1000)}}, {"outputs": {"x" * 10000: 7}}])
async def test_many_wrong_arguments_make_no_long_answer(project, arguments):
    async with project.agent() as agent:
        assert len(await agent.refused("finished_step", **arguments)) < 5000


async def test_no_error_page_and_no_path_of_the_installation_reaches_an_agent(project, install):
    import deepwork

    install("good")
    async with project.agent() as agent:
        texts = [
            await agent.refused("finished_step", outputs=[1]),
            await agent.refused("start_workflow"),
            await agent.refused("nothing_like_that"),
            await agent.refused("acme_crash"),
            await agent.refused("abort_workflow", explanation="x"),
        ]
    for text in texts:
        assert "Traceback" not in text
        assert "pydantic" not in text
        assert "http" not in text
        assert deepwork.__path__[0] not in text


CRASHED = (
    "acme_crash failed with an internal error; the server's log has the details. Call again; if it fails again, "
    "tell the user."
)


async def test_an_unexpected_error_is_a_neutral_line_for_the_agent_and_a_traceback_in_the_log(project, install, caplog):
    install("good")
    async with project.agent() as agent:
        text = await agent.refused("acme_crash")
    assert text == CRASHED
    record = next(record for record in caplog.records if record.levelno == logging.ERROR)
    assert record.message == "acme_crash failed: this is a bug of DeepWork or of a plugin"
    assert "a secret of the server" in str(record.exc_info[1])


async def test_a_crash_leaves_the_server_working(project, install):
    install("good")
    project.write_job()
    async with project.agent() as agent:
        await agent.refused("acme_crash")
        assert (await agent.start())["step_id"] == "a"


def test_the_log_goes_to_stderr_and_as_json_lines_to_a_file(project, install, wire, tmp_path):
    install("good")
    project.write_job()
    file = tmp_path / "log.jsonl"
    server = wire("--log-json", str(file))
    server.greet()
    server.call("start_workflow", goal="g", job_name="demo", workflow_name="main")
    server.refused("finished_step", outputs=7)
    server.refused("nobody")
    server.refused("acme_crash")
    server.process.stdin.close()
    stderr = server.process.stderr.read()
    assert server.process.wait(100) == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    calls = [(entry["tool"], entry["stack"], entry["outcome"]) for entry in lines if "tool" in entry]
    assert calls == [
        ("start_workflow", ["demo/main@a"], "ok"),
        ("finished_step", ["demo/main@a"], "error: finished_step: wrong arguments; nothing was changed"),
        ("nobody", ["demo/main@a"], "unknown tool"),
        ("acme_crash", ["demo/main@a"], f"error: {CRASHED}"),
    ]
    assert {"at", "level", "logger", "message"} <= set(lines[0])
    crash = next(entry for entry in lines if "traceback" in entry)
    assert "ZeroDivisionError: a secret of the server" in crash["traceback"]
    assert re.search(
        r"^INFO    deepwork.calls: start_workflow: ok \(stack: demo/main@a, [\d.]+ ms\)$", stderr, re.MULTILINE
    )
    assert re.search(r"^INFO    deepwork.calls: nobody: unknown tool \(stack: demo/main@a", stderr, re.MULTILINE)
    assert "ZeroDivisionError: a secret of the server" in stderr


@pytest.mark.parametrize("level", ["warning", "error"])
def test_the_level_of_stderr_keeps_calls_out_of_it_but_not_out_of_the_file(wire, tmp_path, level):
    file = tmp_path / "log.jsonl"
    server = wire("--log-level", level, "--log-json", str(file))
    server.greet()
    server.call("get_workflows")
    server.process.stdin.close()
    assert server.process.stderr.read() == ""
    assert json.loads(file.read_text().splitlines()[0])["tool"] == "get_workflows"
