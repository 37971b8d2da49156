from __future__ import annotations

import json
import os
import pty
import sys

import anyio
import pytest

from deepwork.api import Answerer, NeedsWork, open_context
from deepwork.errors import RunnerUnavailable
from deepwork.paths.user_folders import user_config_file


@pytest.fixture
def user_config():
    """Write the user's own configuration."""

    def write(text):
        file = user_config_file(os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write


@pytest.fixture
def waiting(project):
    """Return the waiting items, by kind, as `deepwork inbox --json` prints them."""

    async def read():
        async with open_context("test", project.root) as context:
            contents = (await context.inbox().items(Answerer())).as_json()
        assert contents["failures"] == []
        return {item["kind"]: item for item in json.loads(json.dumps(contents["items"]))}

    return read


@pytest.fixture
def failed(judge, served):
    """Report step `a` of a project until the agent is told to ask its user, and give the session's id."""

    async def failed(project, answer=None, calls=3):
        runner = judge(lambda _: answer or NeedsWork("Too short.\nNo sources."))
        outputs = {"a.md": "a.md"}
        async with project.agent(served(runner)) as agent:
            session_id = (await agent.start())["session_id"]
            for _ in range(calls - 1):
                await agent.finish(outputs)
            if isinstance(answer, RunnerUnavailable):
                await agent.finish(outputs)
            else:
                await agent.refused("finished_step", outputs=outputs)
        return session_id

    return failed


@pytest.fixture
def at_terminal(project):
    """Run a command at a terminal of its own, as a person does, and give what it shows and its exit code."""

    async def run(*arguments, typed=b"", columns=80):
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(project.root)]
        primary, secondary = pty.openpty()
        environment = {**os.environ, "COLUMNS": str(columns)}
        try:
            process = await anyio.open_process(
                command, stdin=secondary, stdout=secondary, stderr=secondary, env=environment
            )
            os.close(secondary)
            if typed:
                os.write(primary, typed)
            output = await anyio.to_thread.run_sync(_read_all, primary)
            return output.decode().replace("\r\n", "\n"), await process.wait()
        finally:
            os.close(primary)

    return run


def _read_all(descriptor):
    content = b""
    while True:
        try:
            chunk = os.read(descriptor, 4096)
        except OSError:  # the other side is closed
            return content
        if not chunk:
            return content
        content += chunk
