from __future__ import annotations

import pytest
from deepwork.testing import DeepworkProject


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_agent_is_greeted_as_the_settings_say(project: DeepworkProject) -> None:
    project.write(".deepwork/config.yml", "plugins: {settings: {acme: {greeting: Welcome}}}")
    async with project.agent() as agent:
        answer = await agent.call("acme_greet", name="Ada")
    assert answer == {"text": "Welcome, Ada!", "principal": "local"}
