"""The messages that the page on errors shows, provoked one by one."""

from __future__ import annotations

import inspect
import json
import os
import re
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

import deepwork.errors
from deepwork import api, hookimpl
from deepwork.builtin.http.app import run_http
from deepwork.builtin.http.listen import ListenOptions, listen_options
from deepwork.errors import (
    ConfigError,
    DeepWorkError,
    GitError,
    ItemChanged,
    PersonNeeded,
    ProgramError,
    RunnerError,
    RunnerLimited,
    StaleSession,
    UnknownItem,
)
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.paths.user_folders import user_config_file
from deepwork.ports.inbox import Answer
from deepwork.ports.records import Serving
from deepwork.server.frames import refusal_of
from deepwork.testing import Agent, Refused, review, step
from deepwork.testing.fakes import answered
from deepwork.testing.wire import PATIENCE

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
MESSAGES = re.findall(r"^<!-- message: (.+) -->$", PAGE.read_text(), re.MULTILINE)
PROVOKED: dict[str, Callable[..., Any]] = {}

pytestmark = pytest.mark.anyio


def provokes(name):
    """Register what brings about the error of this name."""
    return lambda provoke: PROVOKED.setdefault(name, provoke)


def plugin(**hooks):
    """Make the plugin manager of an installation with a plugin `acme` that has these hooks."""
    module = ModuleType("deepwork_acme.plugin")
    for name, hook in hooks.items():
        setattr(module, name, hookimpl(hook))
    core = [candidate for candidate in installed() if candidate.builtin]
    return PluginManager(candidates=[*core, Candidate("acme", "deepwork-acme", "1.0", lambda: module)])


def refused_server(project, **options):
    with pytest.raises(DeepWorkError) as error:
        project.server(**options)
    return str(error.value)


@provokes("ConfigError")
async def _(project):
    project.write(".deepwork/config.yml", "quality_gate: {timout: 60}")
    return refused_server(project)


@provokes("JobSourceError")
async def _(project):
    class FarJobs(api.JobSource):
        name = "far"

        def load(self):
            raise RuntimeError("the database is away")

    async with project.agent(plugins=plugin(deepwork_job_sources=lambda: [FarJobs()])) as agent:
        [error] = (await agent.call("get_workflows"))["errors"]
    return error["error"].splitlines()[0]


def refused_options(*, host="127.0.0.1", names=(), tokens=None):
    with pytest.raises(ConfigError) as error:
        listen_options(host, 0, names, tokens)
    return str(error.value)


def refused_tokens(project, content, *, mode=0o600):
    file = project.write("tokens", content)
    file.chmod(mode)
    return refused_options(tokens=file)


@provokes("sessions elsewhere")
async def _(project):
    project.write(".deepwork/config.yml", "{}")
    project.state.symlink_to(project.root.parent)
    return refused_server(project)


@provokes("off loopback")
async def _(project):
    return refused_options(host="0.0.0.0")


@provokes("allowed host")
async def _(project):
    return refused_options(names=["https://deepwork.example"])


@provokes("token file of others")
async def _(project):
    return refused_tokens(project, "ada 0123456789abcdef\n", mode=0o644)


@provokes("token file line")
async def _(project):
    return refused_tokens(project, "ada 0123456789abcdef\ngrace\n")


@provokes("token twice")
async def _(project):
    return refused_tokens(project, "ada 0123456789abcdef\ngrace 0123456789abcdef\n")


@provokes("token file of nobody")
async def _(project):
    return refused_tokens(project, "# nobody yet\n")


@provokes("no token file")
async def _(project):
    return refused_options(tokens=project.root / "tokens")


@provokes("address in use")
async def _(project):
    serving = Serving(server=project.server(), apps=list, refusal=refusal_of)
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(ConfigError) as error:
        run_http(serving, "http", ListenOptions(port=listener.getsockname()[1]))
    return str(error.value)


@provokes("PathRefused")
async def _(project):
    project.write_job()
    project.write("../elsewhere/file")
    async with project.agent() as agent:
        project.state.symlink_to(project.root.parent / "elsewhere")
        return await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main")


@provokes("JobLoadError")
async def _(project):
    job = project.write_job() / "job.yml"
    job.write_text(job.read_text().replace("summary: Job", "sumary: Job"))
    return str(api.parse_job(job))


@provokes("UnknownJob")
async def _(project):
    project.write_job()
    async with project.agent() as agent:
        return await agent.refused("start_workflow", goal="g", job_name="dmo", workflow_name="main")


@provokes("UnknownWorkflow")
async def _(project):
    project.write_job(workflows={"main": ["a"], "other": ["b"]})
    async with project.agent() as agent:
        return await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="mian")


@provokes("EmptyWorkflow")
async def _(project):
    class Hollow(api.JobSource):
        name = "hollow"

        def load(self):
            job = api.parse_job(project.write_job("hollow", folder=project.root.parent))
            empty = job.definition.workflows[0].model_copy(update={"steps": []})
            yield job.model_copy(update={"definition": job.definition.model_copy(update={"workflows": [empty]})})

    async with project.agent(plugins=plugin(deepwork_job_sources=lambda: [Hollow()])) as agent:
        return await agent.refused("start_workflow", goal="g", job_name="hollow", workflow_name="main")


@provokes("MissingInstructions")
async def _(project):
    (project.write_job() / "steps" / "a.md").unlink()
    async with project.agent() as agent:
        return await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main")


@provokes("ArgumentError")
async def _(project):
    async with project.agent() as agent:
        return await agent.refused("start_workflow", goal="g" * 70_000, job_name="demo", workflow_name="main")


@provokes("wrong arguments")
async def _(project):
    async with project.agent() as agent:
        return await agent.refused("start_workflow", job="demo", workflow_name="main")


@provokes("OutputError")
async def _(project):
    project.write_job()
    async with project.agent() as agent:
        await agent.start()
        return await agent.refused("finished_step", outputs={"a.md": "a.md"})


@provokes("UnknownOutputs")
async def _(project):
    project.write_job()
    async with project.agent() as agent:
        await agent.start()
        return await agent.refused("finished_step", outputs={"report.md": "a.md"})


@provokes("StrictRefusal")
async def _(project):
    project.write_job()
    project.write(".deepwork/config.yml", "quality_gate: {strict: true}")
    async with project.agent() as agent:
        return await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main")


@provokes("GitError")
async def _(project):
    project.write(".git/HEAD", "nonsense")
    with pytest.raises(GitError) as error:
        await api.Git.open(project.root, os.environ)
    return str(error.value)


@provokes("PersonNeeded")
async def _(project):
    async with api.open_context("acme", project.root) as context:
        with pytest.raises(PersonNeeded) as error:
            await context.inbox().answer("sessions:1", Answer("override", "It is fine."), api.Answerer(principal="ada"))
    return str(error.value)


@provokes("UnknownItem")
async def _(project):
    async with api.open_context("acme", project.root) as context:
        with pytest.raises(UnknownItem) as error:
            await context.inbox().answer("sessions:1", Answer("override", "It is fine."), api.Answerer(client="acme"))
    return str(error.value)


@provokes("ItemChanged")
async def _(project):
    (project.root / ".deepwork" / "tmp").mkdir(mode=0o700, parents=True)
    project.write(f".deepwork/tmp/session_{'0123456789abcdef' * 2}.json.20260101T000000.corrupt", "{")
    person = api.Answerer(client="acme")
    async with api.open_context("acme", project.root) as context:
        [item] = (await context.inbox().items(person)).items
        with pytest.raises(ItemChanged) as error:
            await context.inbox().answer(item.id, Answer("retry", "Try it.", state="as it was before"), person)
    return str(error.value)


async def reviewed(project, judge, *, calls=1, **options):
    """Have a step reviewed by `ada`, and give what the agent is told at the last of several calls."""

    class Ada(api.ReviewRunner):
        async def review(self, request):
            return answered(await judge(), request)

    runner = api.ReviewRunnerSpec(name="ada", create=Ada, max_inline_files=0)
    options.setdefault("plugins", plugin(deepwork_review_runners=lambda: [runner]))
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")
    async with project.agent(external_runner="ada", **options) as agent:
        await agent.start()
        for _ in range(calls - 1):
            await agent.finish({"a.md": "a.md"})
        try:
            return (await agent.finish({"a.md": "a.md"}))["feedback"]
        except Refused as error:
            return str(error)


async def _on_holiday():
    raise RunnerError("Ada is on holiday")


@provokes("ReviewExhausted")
async def _(project):
    async def judge():
        return api.NeedsWork("Ada finds it too long")

    return await reviewed(project, judge, quality_gate_max_attempts=1)


@provokes("no verdict")
async def _(project):
    return await reviewed(project, _on_holiday)


@provokes("RunnerError")
async def _(project):
    return await reviewed(project, _on_holiday, calls=3)


@provokes("RunnerUnavailable")
async def _(project):
    project.write(".deepwork/config.yml", "quality_gate: {commands: {ada: {run: [ada]}}}")
    return await reviewed(project, None, plugins=plugin())


@provokes("GateCannotFail")
async def _(project):
    command = {"run": ["true"], "verdict": "exit_code", "must_fail": ["bad.md"]}
    file = user_config_file(os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"quality_gate": {"commands": {"ada": command}, "prove": "hold"}}))
    project.write("bad.md", "What it must refuse\n")
    return await reviewed(project, None, plugins=plugin())


@provokes("RunnerLimited")
async def _(project):
    async def judge():
        until = datetime(2030, 1, 2, 15, 4, tzinfo=UTC)
        raise RunnerLimited("Ada has judged enough for today", until=until)

    return await reviewed(project, judge)


@provokes("RunnerTimeout")
async def _(project):
    return await reviewed(project, anyio.sleep_forever, quality_gate_timeout=1)


@provokes("BadVerdict")
async def _(project):
    async def judge():
        return "fine"

    return await reviewed(project, judge)


@provokes("StateError")
async def _(project):
    project.write_job()
    project.write("a.md")
    project.write("b.md")
    async with project.agent() as agent:
        session = (await agent.start())["session_id"]
        await agent.finish({"a.md": "a.md"})
        return await agent.refused("finished_step", outputs={"a.md": "b.md"}, session_id=session, step_id="a")


@provokes("NoActiveSession")
async def _(project):
    async with project.agent() as agent:
        return await agent.refused("finished_step", outputs={})


@provokes("no token, no list")
async def _(project, serving):
    with serving() as address:
        async with Client(StreamableHttpTransport(address)) as client:
            return await Agent(client).refused("finished_step", outputs={})


@provokes("UnknownSession")
async def _(project):
    async with project.agent() as agent:
        return await agent.refused("finished_step", outputs={}, session_id="nobody")


@provokes("StaleSession")
async def _(project):
    class Busy(api.StateStore):
        """A store in which others always come first."""

        async def load(self, session_id):
            return self.session

        async def save(self, session, *, expected):
            if expected is not None:
                raise StaleSession("changed meanwhile")
            self.session = session
            return 1

        async def find(self, *, status=None, before=None, limit=10):
            return []

    store = api.StateStoreSpec(name="busy", open=lambda _: Busy())
    project.write_job()
    project.write("a.md")
    async with project.agent(plugins=plugin(deepwork_state_stores=lambda: [store]), state_store="busy") as agent:
        await agent.start()
        return await agent.refused("finished_step", outputs={"a.md": "a.md"})


@provokes("CorruptSession")
async def _(project):
    project.write_job()
    async with project.agent() as agent:
        session = (await agent.start())["session_id"]
        project.write(project.state / f"session_{session}.json", '{"session_id"')
        return await agent.refused("finished_step", outputs={}, session_id=session)


@provokes("StorageError")
async def _(project):
    project.write_job()
    async with project.agent() as agent:
        session = (await agent.start())["session_id"]
        file = project.state / f"session_{session}.json"
        file.rename(project.root / "elsewhere.json")
        file.symlink_to(project.root / "elsewhere.json")
        return await agent.refused("finished_step", outputs={}, session_id=session)


@provokes("PluginLoadError")
async def _(project):
    def needs_url(context):
        return context.environment["ACME_URL"]

    return refused_server(project, plugins=plugin(deepwork_state_stores=needs_url))


@provokes("NameClash")
async def _(project):
    store = api.StateStoreSpec(name="json", open=lambda _: None)
    return refused_server(project, plugins=plugin(deepwork_state_stores=lambda: [store]))


@provokes("UnknownName")
async def _(project):
    return refused_server(project, state_store="sql")


async def failing_program(project, *arguments, **limits):
    with pytest.raises(ProgramError) as error:
        await api.run_program(arguments, cwd=project.root, environment={"PATH": "/usr/bin:/bin"}, **limits)
    return str(error.value)


@provokes("ProgramMissing")
async def _(project):
    return await failing_program(project, "no-such-program", seconds=5)


@provokes("ProgramTimeout")
async def _(project):
    return await failing_program(project, "sleep", "60", seconds=0.1)


@provokes("ProgramFlood")
async def _(project):
    return await failing_program(project, "yes", seconds=PATIENCE, max_output=1000)


@provokes("MountsRefused")
async def _(project):
    return await failing_program(project, "true", seconds=60, seen=project.root / "gone")


@pytest.mark.parametrize("name", MESSAGES)
async def test_a_message_is_what_the_page_shows(name, player, project, serving):
    playing = player("docs/reference/errors.md")
    provoke = PROVOKED[name]
    by_http = {"serving": serving} if "serving" in inspect.signature(provoke).parameters else {}
    playing.output = await provoke(project, **by_http) + "\n"
    playing.compare(next(block for block in playing.page.blocks("message") if block.about == name))


def test_every_error_that_can_come_has_a_message_on_the_page():
    source = "\n".join(path.read_text() for path in Path(deepwork.errors.__file__).parent.rglob("*.py"))
    for name, error in inspect.getmembers(deepwork.errors, inspect.isclass):
        if name not in MESSAGES and not error.__subclasses__():
            assert not re.search(rf"(?<!class ){name}\(", source), f"{name} is raised, and the page has no message"
