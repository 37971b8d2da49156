"""A project cannot have its sessions forgotten, and with them what its agents did, unless its user trusts that."""

from __future__ import annotations

import logging
import os

import pytest

from deepwork import hookimpl
from deepwork.api import MemoryStore, StateStoreSpec
from deepwork.paths.user_folders import user_config_file

pytestmark = pytest.mark.anyio


class Forgetful:
    @hookimpl
    def deepwork_state_stores(self):
        yield StateStoreSpec(name="whiteboard", open=lambda _: MemoryStore(), persists=False)


@pytest.fixture
def demo(project):
    project.write_job()
    project.write("a.md")
    return project


def user_says(text):
    file = user_config_file(os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


async def run_one_step(project, **options):
    async with project.agent(**options) as agent:
        await agent.start()
        await agent.finish({"a.md": "a.md"}, quality_review_override_reason="It is fine")


@pytest.mark.parametrize("name", ["memory", "whiteboard"])
async def test_a_store_that_forgets_is_not_used_because_a_project_says_so(demo, caplog, name):
    demo.write(".deepwork/config.yml", f"state: {{store: {name}}}\n")
    plugins = {"extra_plugins": {"forgetful": Forgetful()}} if name == "whiteboard" else {}
    with caplog.at_level(logging.INFO, "deepwork.server"):
        await run_one_step(demo, **plugins)
    assert len([*demo.state.glob("session_*.json")]) == 1
    reason = f"by default: {name!r} of .deepwork/config.yml forgets them, and is not trusted"
    assert f"sessions are kept in the store 'json', {reason}" in caplog.messages


async def test_the_user_sees_and_decides_it(demo, deepwork, caplog):
    demo.write(".deepwork/config.yml", "state: {store: memory}\n")
    assert "in the store 'json', by default: 'memory' of .deepwork/config.yml forgets them" in await deepwork("doctor")
    assert "setting state.store" in await deepwork("trust", "--yes")
    with caplog.at_level(logging.INFO, "deepwork.server"):
        await run_one_step(demo)
    assert not [*demo.state.glob("session_*.json")]
    assert "sessions are kept in the store 'memory', by state.store of .deepwork/config.yml" in caplog.messages


@pytest.mark.parametrize(
    ("user", "project_text", "options", "reason"),
    [
        ("state: {store: memory}\n", "{}\n", {}, "by state.store of your own config.yml"),
        ("state: {store: memory}\n", "state: {store: memory}\n", {}, "by state.store of your own config.yml"),
        ("{}\n", "{}\n", {"state_store": "memory"}, "by --state-store"),
    ],
)
async def test_the_user_may_choose_it_for_themselves(demo, caplog, user, project_text, options, reason):
    user_says(user)
    demo.write(".deepwork/config.yml", project_text)
    with caplog.at_level(logging.INFO, "deepwork.server"):
        await run_one_step(demo, **options)
    assert not [*demo.state.glob("session_*.json")]
    assert f"sessions are kept in the store 'memory', {reason}" in caplog.messages


async def test_a_project_may_go_back_to_a_store_that_keeps_them(demo):
    user_says("state: {store: memory}\n")
    demo.write(".deepwork/config.yml", "state: {store: json}\n")
    await run_one_step(demo)
    assert len([*demo.state.glob("session_*.json")]) == 1
