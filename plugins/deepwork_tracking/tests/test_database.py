"""The database as the tools use it: its errors are those of the tools."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_text_that_no_database_can_hold_is_refused_by_the_name_of_its_field(shared):
    async with shared.tracker() as agent:
        error = await agent.error("start_workflow", name="w", objective="a\0b")
        assert error["code"] == "VALIDATION_ERROR"
        assert error["message"].startswith("objective: ")
        _, _, task_id = await agent.running()
        error = await agent.error("log_milestone", task_id=task_id, message="m", metadata={"deep": ["\0"]})
        assert error["message"].startswith("metadata.deep[0]: ")


async def test_a_database_that_does_not_answer_is_an_error_of_the_same_shape(repo, monkeypatch):
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    async with repo.tracker() as agent:
        error = await agent.error("start_workflow", name="w", objective="o")
    assert error["code"] == "DATABASE_ERROR"
    assert error["recoverable"] is True
