"""What only the store `memory` has. What every store has to do: `testing/contracts/state_store/test_store.py`."""

from __future__ import annotations

import pytest

from deepwork.api import MemoryStore
from deepwork.errors import StorageError
from deepwork.testing import a_session

pytestmark = pytest.mark.anyio


async def test_a_server_with_it_writes_no_session(project):
    project.write_job()
    project.write("a.md")
    async with project.agent(state_store="memory") as agent:
        await agent.start()
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "next_step"
    assert not project.state.exists()


async def test_it_forgets_everything_when_the_server_ends(project):
    project.write_job()
    project.write("a.md")
    async with project.agent(state_store="memory") as agent:
        session_id = (await agent.start())["session_id"]
    async with project.agent(state_store="memory") as agent:
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"}, session_id=session_id)
    assert f"Session '{session_id}' not found" in text


async def test_two_stores_know_nothing_of_each_other():
    first, second = MemoryStore(), MemoryStore()
    await first.save(a_session(), expected=None)
    assert await second.load("s1") is None


async def test_it_has_no_archive_and_says_so():
    store = MemoryStore()
    await store.save(a_session(), expected=None)
    with pytest.raises(StorageError, match="MemoryStore has no archive"):
        await store.archive("s1")
