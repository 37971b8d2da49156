"""The project of the kit: plugins that are not installed, trust without a terminal, and texts of tools."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import BaseModel

from deepwork import hookimpl
from deepwork.api import NeedsTrust, ToolSet, ToolSpec
from deepwork.errors import NameClash
from deepwork.testing import Refused

pytestmark = pytest.mark.anyio


class Settings(BaseModel):
    url: Annotated[str, NeedsTrust()] = "http://localhost"


class Tickets:
    @hookimpl
    def deepwork_tool_sets(self, context):
        settings = context.settings(Settings)

        def where() -> str:
            """Return the source of the tickets."""
            return settings.url

        def fail() -> str:
            """Fail."""
            raise ZeroDivisionError

        specs = [ToolSpec(fn.__name__, fn, title="T", output="text") for fn in (where, fail)]
        yield ToolSet("tickets", specs, prefix="tickets_")


async def test_a_plugin_need_not_be_installed_and_its_text_can_be_read(project):
    async with project.agent(extra_plugins={"tickets": Tickets()}) as agent:
        assert await agent.text("tickets_where") == "http://localhost"
        with pytest.raises(Refused):
            await agent.text("tickets_fail")


async def test_a_clash_is_tested_with_two_plugins(project):
    with pytest.raises(NameClash, match="tool set 'tickets' is offered twice"):
        project.server(extra_plugins={"one": Tickets(), "two": Tickets()})


async def test_a_setting_of_the_project_has_effect_once_the_test_trusts_it(project, install):
    install("trusting")
    project.write(".deepwork/config.yml", "plugins: {settings: {trusting: {url: 'http://far'}}}")
    async with project.agent() as agent:
        assert await agent.text("trusting_where") == "http://localhost"
    assert project.trust() == ["setting plugins.settings.trusting.url"]
    async with project.agent() as agent:
        assert await agent.text("trusting_where") == "http://far"
