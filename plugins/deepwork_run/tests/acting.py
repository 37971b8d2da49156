"""Agents that do what a test says, in its own process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from deepwork.api import Report, ToolCall
from deepwork.ports.agent import Agent, Called, Ended, Spent
from deepwork.testing.wire import PATIENCE


@dataclass
class ActingAgent(Agent):
    """Does in turn what a test says: each act is an async generator function of this agent and its task.

    Attributes:
        acts: One for each time that it is started; the last one is repeated.
        tasks: What it was told, each time.
    """

    project: object
    acts: list[Callable]
    tasks: list = field(default_factory=list)

    async def available(self):
        return None

    async def start(self, task):
        self.tasks.append(task)
        act = self.acts[min(len(self.tasks), len(self.acts)) - 1]
        async for event in act(self, task):
            yield event

    async def report(self, task):
        """Report the open step, as its server would be told."""
        session = await self.project.session(task.session_id)
        step_id = session.current_step_id
        (task.project_root / f"{step_id}.md").write_text("done\n")
        report = Report(outputs={f"{step_id}.md": f"{step_id}.md"}, session_id=task.session_id, step_id=step_id)
        return await self.project.engine.finish_step(ToolCall(), report)


def works(steps=1, *last, cost=None):
    """Return an act: report so many steps, then tell these events, and end."""

    async def act(agent, task):
        for number in range(steps):
            yield Called("finished_step", str(number))
            await agent.report(task)
            yield Called("finished_step", str(number), is_done=True)
            if cost is not None:
                yield Spent(f"{len(agent.tasks)}.{number}", 100, 10, cost)
        for event in last:
            yield event
        yield Ended(0)

    return act


async def hangs(agent, task):
    """Work for ever, unless it is asked to stop."""
    yield Called("finished_step", "1")
    await anyio.sleep_forever()


async def until(condition):
    """Wait until something has become true, and return it."""
    with anyio.fail_after(PATIENCE):
        while True:
            value = await condition()
            if value:
                return value
            await anyio.sleep(0.01)
