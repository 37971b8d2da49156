"""A server declares what it serves, and nothing else."""

from __future__ import annotations

import pytest
from fastmcp import Client

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_is_not_served_is_not_declared(project, mode):
    async with Client(project.server(), mode=mode) as client:
        declared = client.session.server_capabilities
    assert declared.logging is None
    assert not declared.extensions
    assert declared.tools is not None
    assert declared.prompts is not None
    assert declared.resources is not None
