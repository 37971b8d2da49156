"""Any calls of agents in any order: the plan is as a simple model predicts."""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwork_orchestration.states import BEGUN, DONE, FINISHED, TASK_TRANSITIONS

NAMES = ["a", "b", "c", "d"]
NEEDS = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
AGENTS = [0, 1, 2]
WORDS = ["planning", "in_progress", "completed", "failed", "pending"]
names, agents = st.sampled_from(NAMES), st.sampled_from(AGENTS)
steps = st.one_of(
    st.tuples(st.just("claim"), names, agents),
    st.tuples(st.just("move"), names, agents, st.sampled_from(WORDS)),
    st.tuples(st.just("release"), names, agents),
    st.tuples(st.just("expire"), names),
    st.tuples(st.just("online"), agents),
)


class Model:
    """What should be so."""

    def __init__(self):
        self.status = dict.fromkeys(NAMES, "pending")
        self.holder = dict.fromkeys(NAMES)
        self.online = dict.fromkeys(AGENTS, True)
        self.lost = {agent: set() for agent in AGENTS}

    def shown(self, name):
        is_open = any(self.status[needed] not in DONE for needed in NEEDS[name])
        return "blocked" if self.status[name] == "pending" and is_open else self.status[name]

    def free(self, name):
        self.holder[name] = None
        if self.status[name] in BEGUN:
            self.status[name] = "pending"

    def claim(self, name, agent):
        """True if the claim succeeds; None if it is refused with an error."""
        if self.status[name] in DONE:
            return None
        if self.holder[name] not in (None, agent):
            return False
        if not self.online[agent]:
            return None
        self.holder[name] = agent
        return True

    def may_change(self, name, agent):
        return self.holder[name] == agent or (self.holder[name] is None and name not in self.lost[agent])

    def move(self, name, agent, status):
        if not self.may_change(name, agent) or status not in TASK_TRANSITIONS[self.shown(name)]:
            return False
        if status == "planning" and self.shown(name) == "blocked":
            return False
        self.status[name] = status
        if status in FINISHED:
            self.holder[name] = None
        return True

    def release(self, name, agent):
        if self.holder[name] != agent:
            return False
        self.free(name)
        return True

    def expire(self, name):
        agent = self.holder[name]
        if agent is not None:
            held = [name_of_task for name_of_task in NAMES if self.holder[name_of_task] == agent]
            for name_of_task in held:
                self.free(name_of_task)
            self.online[agent], self.lost[agent] = False, set(held)

    def revive(self, agent):
        self.online[agent], self.lost[agent] = True, set()


@pytest.mark.slow
@settings(max_examples=8)
@given(st.lists(steps, min_size=5, max_size=25))
def test_any_order_of_calls_leaves_what_the_model_says(team_at, make_task, script):
    anyio.run(play, team_at, make_task, script)


async def play(team_at, make_task, script):
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        team = team_at(folder, stack)
        # A server for each agent, and an idle observer.
        servers = [await team.agent() for _ in AGENTS]
        observer = await team.agent()
        workflow_id, tasks = await observer.workflow(*(make_task(name, *NEEDS[name]) for name in NAMES))
        ids = [await server.worker(f"agent {number}") for number, server in enumerate(servers)]
        model = Model()
        for step in script:
            await take(step, team, servers, ids, tasks, model)
            await compare(observer, workflow_id, ids, model)


async def take(step, team, servers, ids, tasks, model):
    """Do a step in the world and in the model, and compare how both answer."""
    kind, *operands = step
    if kind == "expire":
        await team.expire(tasks[operands[0]])
        model.expire(operands[0])
    elif kind == "online":
        await servers[operands[0]].call("agent_update", id=ids[operands[0]], status="online")
        model.revive(operands[0])
    else:
        name, agent = operands[:2]
        expected = getattr(model, kind)(*operands)
        arguments = {"agent_id": ids[agent]}
        if kind == "move":
            arguments |= {"id": tasks[name], "status": operands[2], "outcome": "x", "error": "x"}
        else:
            arguments["task_id"] = tasks[name]
        tool = {"claim": "task_claim", "move": "task_update_status", "release": "task_release"}[kind]
        result = await servers[agent].client.call_tool(tool, arguments, raise_on_error=False)
        refused = None if kind == "claim" else False
        succeeded = refused if result.is_error else result.structured_content["success"]
        assert succeeded == expected, (step, result.content)


async def compare(observer, workflow_id, ids, model):
    workflow = await observer.call("workflow_get", id=workflow_id, include_tasks=True)
    statuses = {listed["name"]: listed["status"] for listed in workflow["tasks"]}
    assert statuses == {name: model.shown(name) for name in NAMES}
    offered = await observer.call("workflow_next_tasks", workflow_id=workflow_id, include_failed=False)
    free = [name for name in NAMES if model.shown(name) == "pending" and model.holder[name] is None]
    assert [listed["name"] for listed in offered["tasks"]] == free
    agents = (await observer.call("agent_list"))["agents"]
    assert {agent["id"]: agent["status"] == "offline" for agent in agents} == {
        agent_id: not model.online[number] for number, agent_id in enumerate(ids)
    }
