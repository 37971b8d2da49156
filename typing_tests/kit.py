"""What a plugin's author writes against `deepwork.testing`. Never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, assert_type

import pytest

from deepwork.api import HandedBack, JobSource, Passed, ReviewRequest, ReviewRunner, Session, StateStore
from deepwork.testing import (
    Agent,
    DeepworkProject,
    JobSourceContract,
    PluginContract,
    ReviewRunnerContract,
    ScriptedRunner,
    StateStoreContract,
    StateStoreProcessesContract,
    a_request,
    a_session,
)
from deepwork.testing.machines import StoreMachine
from deepwork.testing.strategies import jobs, sessions


def make() -> StateStore:
    raise NotImplementedError


class TestStore(StateStoreContract, StateStoreProcessesContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[StateStore]:
        async with make() as store:
            yield store

    @pytest.fixture
    def reopen(self) -> Callable[[], StateStore]:
        return make


class TestRunner(ReviewRunnerContract):
    @pytest.fixture
    async def runner(self, project_root: Path) -> ReviewRunner:
        return ScriptedRunner([Passed(), HandedBack("again"), ValueError("broken")])


class TestJobs(JobSourceContract):
    @pytest.fixture
    def source(self) -> JobSource:
        raise NotImplementedError


class TestPlugin(PluginContract):
    plugin = "acme"


class TestWrongPlugin(PluginContract):
    plugin = 1  # type: ignore[assignment]


class Machine(StoreMachine):
    def place(self) -> Callable[[], StateStore]:
        return make


async def uses(project: DeepworkProject, tmp_path: Path) -> None:
    async with project.agent() as agent:
        assert_type(agent, Agent)
        assert_type(await agent.call("get_workflows"), dict[str, Any])
    assert_type(a_session(goal="a goal"), Session)
    assert_type(a_request(tmp_path), ReviewRequest)
    assert_type(sessions().example(), Session)
    jobs().example().name.upper()
    ScriptedRunner(["passed"])  # type: ignore[list-item]
