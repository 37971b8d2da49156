from __future__ import annotations

import os
import signal
import sys
from contextlib import aclosing

import anyio
import pytest

from deepwork import api
from deepwork.engine.reports import Report
from deepwork.errors import NameClash, UnknownSession
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.ports.agent import Agent, AgentSpec, Ended
from deepwork.programs.marked import end_marked
from deepwork.programs.processes import running_program
from deepwork.project.project import Project
from deepwork.project.stores import open_store
from deepwork.sessions.standing import calls_of, standing_of, waits_of
from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio


class Idle(Agent):
    async def available(self):
        return None

    async def start(self, task):
        yield Ended(0)


def plugin(*names):
    from deepwork import hookimpl

    class Plugin:
        @hookimpl
        def deepwork_agents(self, context):
            yield from (AgentSpec(name=name, create=Idle) for name in names)

    return Plugin()


def manager(**plugins):
    core = [candidate for candidate in installed() if candidate.builtin]
    candidates = [
        Candidate(name, f"deepwork-{name}", "1.0", lambda value=value: value) for name, value in plugins.items()
    ]
    return PluginManager(candidates=[*core, *candidates])


def test_agents_are_collected_and_attributed(project):
    agents = Project(project.root, plugins=manager(one=plugin("x", "y"), two=plugin("z"))).agents.items
    assert sorted((agent.item.name, agent.by.name) for agent in agents) == [("x", "one"), ("y", "one"), ("z", "two")]


async def test_two_agents_of_one_name_clash(project, monkeypatch):
    plugins = manager(one=plugin("x"), two=plugin("x"))
    monkeypatch.setattr("deepwork.project.project.load_plugins", lambda *_, **__: plugins)
    with pytest.raises(NameClash, match="agent 'x' is offered twice"):
        async with api.open_project("one", project.root):
            pass


async def test_a_command_finds_agents_and_sessions_in_an_opened_project(project, monkeypatch):
    plugins = manager(one=plugin("x"))
    monkeypatch.setattr("deepwork.project.project.load_plugins", lambda *_, **__: plugins)
    project.write_job()
    async with api.open_project("one", project.root) as opened:
        assert [*opened.agents] == ["x"]
        started = await opened.engine.start(api.ToolCall(), goal="g", job_name="demo", workflow_name="main")
        session = await opened.session(started.begin_step.session_id[:6])
        assert session.goal == "g"
        with pytest.raises(UnknownSession):
            await opened.session("nothing")


class TestRunningPrograms:
    @pytest.fixture
    def mark(self, tmp_path):
        """Return a mark of this test alone: all processes that have it may be ended."""
        return str(tmp_path)

    @pytest.fixture
    def python(self, tmp_path, mark):
        def run(code, **options):
            words = [sys.executable, "-IS", "-c", code]
            return running_program(words, cwd=tmp_path, environment={"MARK": mark}, **options)

        return run

    async def test_each_line_is_given_as_it_comes_and_then_the_end(self, python):
        code = "import sys; print('a'); print(sys.stdin.read()); sys.stderr.write('wrong'); sys.stdout.write('b')"
        async with python(code, stdin=b"given") as program, aclosing(program.lines()) as lines:
            assert [line async for line in lines] == [b"a", b"given", b"b"]
            assert await program.ended() == 0
            assert program.errors() == b"wrong"

    async def test_a_line_above_the_limit_is_left_out(self, python):
        async with (
            python("print('a'); print('x' * 5000); print('b')") as program,
            aclosing(program.lines(1000)) as lines,
        ):
            assert [line async for line in lines] == [b"a", b"b"]

    async def test_a_child_that_holds_the_output_open_holds_nobody_up(self, python):
        code = (
            "import subprocess, sys\n"
            "subprocess.Popen([sys.executable, '-IS', '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
            "print('a')\n"
        )
        async with python(code) as program, aclosing(program.lines()) as lines:
            assert [line async for line in lines] == [b"a"]

    async def test_what_has_a_mark_is_ended_and_nothing_else(self, python, mark):
        async with python("print('a', flush=True)\nimport time; time.sleep(600)") as program:
            async with aclosing(program.lines()) as lines:
                assert await anext(lines) == b"a"
            assert end_marked("MARK", f"{mark} of another") == []
            assert end_marked("MARK", mark)
            assert await program.ended() == -9

    async def test_a_program_of_a_process_in_the_background_hears_an_interruption(self, python):
        """What a shell starts with `&` ignores SIGINT, and so does all that it starts itself."""
        former = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            code = "print('a', flush=True)\nimport time; time.sleep(600)"
            async with python(code) as program, aclosing(program.lines()) as lines:
                assert await anext(lines) == b"a"
                program.interrupt()
                with anyio.fail_after(PATIENCE):
                    assert await program.ended() in (1, -signal.SIGINT)
        finally:
            signal.signal(signal.SIGINT, former)

    async def test_this_process_and_those_above_it_are_spared(self, monkeypatch):
        name, value = next(iter(os.environ.items()))
        monkeypatch.setattr("deepwork.programs.marked._processes", lambda: [os.getpid(), os.getppid()])
        assert end_marked(name, value) == []


async def test_the_history_names_the_agent_of_a_step(project, monkeypatch):
    project.write_job()
    project.write("a.md")
    monkeypatch.setenv("DEEPWORK_AGENT", "acme")
    async with project.agent() as agent:
        session_id = (await agent.start())["session_id"]
        await agent.finish({"a.md": "a.md"})
    async with open_store(project.root) as store:
        session = await store.load(session_id)
    [completion] = [entry.detail for entry in session.history if entry.kind == "step_completed"]
    assert completion.agent == "acme"


async def test_a_wait_is_shown_until_it_is_over_or_an_agent_goes_on(project):
    project.write_job()
    project.write("a.md")
    async with api.open_project("one", project.root) as opened:
        call = api.ToolCall()
        started = await opened.engine.start(call, goal="g", job_name="demo", workflow_name="main")
        session_id = started.begin_step.session_id
        before = await opened.session(session_id)
        waiting = api.history.Waiting(until="2999-01-01T00:00:00+00:00", cause="overload", agent="acme")
        session = await opened.engine.wait(session_id, waiting)
        standing = standing_of(session)
        assert (standing.pause.until, standing.pause.cause) == (waiting.until, "overload of acme")
        assert session.standing == standing  # it stands at the head, where lists read it
        assert waits_of(session) == [waiting]
        assert standing.last_call_at == standing_of(before).last_call_at
        assert calls_of(session) == calls_of(before)
        await opened.engine.finish_step(call, Report(outputs={"a.md": "a.md"}, session_id=session_id))
        session = await opened.session(session_id)
        assert standing_of(session).pause is None
        assert waits_of(session) == []
