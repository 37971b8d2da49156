"""The tools, as clients see them."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_the_tools_are_described_to_clients(repo):
    async with repo.reviewer() as agent:
        tools = {tool.name: tool for tool in await agent.client.list_tools()}
        assert {"get_review_instructions", "get_configured_reviews", "mark_review_as_passed"} <= set(tools)
        assert set(tools["mark_review_as_passed"].input_schema["properties"]) == {"review_id", "summary"}
        assert tools["get_review_instructions"].output_schema is None
