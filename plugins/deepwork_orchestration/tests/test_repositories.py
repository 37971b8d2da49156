"""Repositories are known by their paths."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.anyio


async def test_repositories_are_normalized_paths_that_nobody_looks_up(agent):
    first = await agent.call("repository_register", path="/a//b/../c/")
    assert await agent.call("repository_register", path="/a/c", name="mine") == first
    result = await agent.client.call_tool("repository_get", {"path": "/a/c/."})
    assert json.loads(result.content[0].text)["name"] == "mine"
    result = await agent.client.call_tool("repository_get", {"path": "/nowhere"})
    assert result.content[0].text == "null"
    second = await agent.call("repository_register", path="/d")
    listed = await agent.call("repository_list", limit=1)
    assert ([row["id"] for row in listed["repositories"]], listed["total"]) == ([second["id"]], 2)
