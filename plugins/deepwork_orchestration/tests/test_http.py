"""Plans over HTTP: every request is a connection, so a connection identifies no agent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest
from fastmcp import Client

pytestmark = pytest.mark.anyio


@pytest.fixture
def database_url(tmp_path):
    """One engine is enough: what differs is the transport."""
    return f"sqlite:///{tmp_path}/plans.db"


@contextmanager
def serving(root, *options):
    command = [sys.executable, "-m", "deepwork", "serve", "--path", str(root), "--transport", "http", "--port", "0"]
    command += ["--tools", "orchestration", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as server:
        try:
            line = server.stderr.readline()
            yield re.search(r"listening on (http://\S+)", line)[1]
        finally:
            server.terminate()
            server.communicate()


async def test_without_sessions_a_call_has_to_name_the_agent_or_the_fence(team, agent, make_task):
    _, tasks = await agent.workflow(make_task("a"))
    worker = await agent.worker()
    point = {"task_id": tasks["a"], "type": "progress", "summary": "x"}
    with serving(team.project.root, "--stateless") as address:
        async with Client(address) as client:
            remote = type(agent)(client)
            claim = await remote.call("task_claim", task_id=tasks["a"], agent_id=worker)
            assert (await remote.refusal("checkpoint_add", **point))["code"] == "CLAIM_LOST"
            assert (await remote.call("checkpoint_add", **point, agent_id=worker))["sequence"] == 1
            assert (await remote.call("checkpoint_add", **point, fence=claim["fence"]))["sequence"] == 2


async def test_without_tokens_plans_are_listed_all_the_same(team, agent, make_task):
    workflow_id, _ = await agent.workflow(make_task("a"))
    with serving(team.project.root) as address:
        async with Client(address, mode="legacy") as client:
            remote = type(agent)(client)
            listed = await remote.call("workflow_list")
            assert [row["id"] for row in listed["workflows"]] == [workflow_id]
            # A session of the transport is a connection, which carries the fence.
            second_plan, tasks = await remote.workflow(make_task("b"))
            worker = await remote.worker()
            await remote.call("task_claim", task_id=tasks["b"], agent_id=worker)
            await remote.finish(tasks["b"])
            assert (await agent.call("workflow_next_tasks", workflow_id=second_plan))["all_complete"] is True
