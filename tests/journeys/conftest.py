"""Agents that know only what they are told, over every kind of connection."""

from __future__ import annotations

import os
import re
import sys
from contextlib import asynccontextmanager

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from deepwork.testing import Agent, Refused

CONNECTIONS = [
    "memory, auto",
    "memory, legacy",
    "stdio, fastmcp, auto",
    "stdio, fastmcp, legacy",
    "stdio, official, auto",
    "stdio, official, legacy",
]


class OfficialAgent(Agent):
    """An agent that speaks through the official Python client."""

    async def call(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        if result.is_error:
            raise Refused(result.content[0].text)
        return result.structured_content


@asynccontextmanager
async def official_agent(project, mode, arguments):
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "deepwork", "serve", "--path", str(project.root), *arguments],
        env=dict(os.environ),
    )
    with (project.root / "server.log").open("w") as log:
        async with Client(stdio_client(server, errlog=log), mode=mode) as client:
            yield OfficialAgent(client)


@pytest.fixture(params=CONNECTIONS)
def connected(request, project):
    """An agent over each kind of connection, to be entered: `async with connected as agent`."""
    kind, *_, mode = request.param.split(", ")
    if kind == "memory":
        return project.agent(mode=mode)
    if "fastmcp" in request.param:
        return project.stdio_agent(mode=mode)
    return official_agent(project, mode, [])


@pytest.fixture(params=["auto", "legacy"])
def mode(request):
    """Both eras of the protocol."""
    return request.param


class Work:
    """How an agent does an unknown workflow: by what `begin_step` and feedback say."""

    def __init__(self, project):
        self.project = project
        self.reviews = []

    def make(self, expected):
        """Write what a step expects; gives the outputs to submit."""
        outputs = {}
        for number, output in enumerate(expected):
            path = f"work/{number}/{re.sub('[^a-z.]', '_', output['name'].lower())}"
            if output["syntax_for_finished_step_tool"] == "filepath":
                outputs[output["name"]] = path
            else:
                outputs[output["name"]] = [f"{path}.1", f"{path}.2"]
        for paths in outputs.values():
            for path in [paths] if isinstance(paths, str) else paths:
                self.project.write(path, f"content of {path}\n")
        return outputs

    async def report(self, agent, begin, step):
        """Finish one step or member of a group; reviews are read, then overridden with a reason."""
        call = {"session_id": begin["session_id"], "step_id": step["step_id"]}
        call["outputs"] = self.make(step["step_expected_outputs"])
        reply = await agent.call("finished_step", **call)
        if step["step_reviews"]:
            assert reply["status"] == "needs_work"
            [path] = re.findall(r"\.deepwork/tmp/quality_review_\w+\.md", reply["feedback"])
            self.reviews.append((self.project.root / path).read_text())
            reason = "A reviewer has read the files and passed every criterion"
            reply = await agent.call("finished_step", **call, quality_review_override_reason=reason)
        return reply

    async def do(self, agent, begin):
        """Work until the workflow is complete; gives the steps in the order in which they were reported."""
        steps = []
        while True:
            for member in begin.get("concurrent_steps", []):
                reply = await self.report(agent, begin, member)
                assert reply["begin_step"]["step_id"] == begin["step_id"]
                steps.append(member["step_id"])
            reply = await self.report(agent, begin, begin)
            steps.append(begin["step_id"])
            if reply["status"] == "workflow_complete":
                return steps, reply
            begin = reply["begin_step"]


@pytest.fixture
def work(project):
    return Work(project)
