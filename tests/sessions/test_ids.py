"""A store is never asked for an id that is not of our own form: it may become a path."""

from __future__ import annotations

import pytest

from deepwork import hookimpl
from deepwork.api import MemoryStore, StateStoreSpec
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager

pytestmark = pytest.mark.anyio

REAL = "0123456789abcdef" * 2
FOREIGN = (
    f"./{REAL}",
    f"../tmp/{REAL}",
    "../../../outside",
    "/etc/passwd",
    REAL.upper(),
    f" {REAL}",
    f"{REAL}\n",
    REAL[:31],
    "x" * 32,
    "\ud800",
    "s1\0",
)


class WatchedStore(MemoryStore):
    """Remembers every id that it is asked for."""

    ids: list[str] = []  # noqa: RUF012 - emptied by the fixture

    async def load(self, session_id):
        self.ids.append(session_id)
        return await super().load(session_id)


@pytest.fixture
def plugins():
    WatchedStore.ids.clear()

    class Watched:
        @hookimpl
        def deepwork_state_stores(self):
            yield StateStoreSpec(name="watched", open=lambda _workspace: WatchedStore())

    core = [plugin for plugin in installed() if plugin.builtin]
    return PluginManager(candidates=[*core, Candidate("watched", "deepwork-watched", "1.0", Watched)])


@pytest.mark.parametrize("session_id", FOREIGN, ids=ascii)
async def test_an_id_of_another_form_is_refused_before_the_store_sees_it(project, plugins, session_id):
    project.write_job()
    async with project.agent(plugins=plugins, state_store="watched") as agent:
        for tool, arguments in (
            ("finished_step", {"outputs": {}}),
            ("finished_step", {"outputs": {}, "step_id": "?"}),
            ("abort_workflow", {"explanation": "no"}),
        ):
            await agent.refused(tool, session_id=session_id, **arguments)
        await agent.refused(
            "start_workflow", goal="g", job_name="demo", workflow_name="main", parent_session_id=session_id
        )
    assert WatchedStore.ids == []


@pytest.mark.parametrize("session_id", [REAL, REAL[:8]])
async def test_ids_of_this_release_and_of_earlier_ones_reach_the_store(project, plugins, session_id):
    async with project.agent(plugins=plugins, state_store="watched") as agent:
        text = await agent.refused("finished_step", outputs={}, session_id=session_id)
    assert f"Session '{session_id}' not found" in text
    assert session_id in WatchedStore.ids
