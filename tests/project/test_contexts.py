"""What a plugin learns from the host, seen with a plugin that has settings."""

from __future__ import annotations

from functools import partial

import pytest
from pydantic import BaseModel

from deepwork.api import open_context
from deepwork.errors import ConfigError

pytestmark = pytest.mark.anyio


@pytest.fixture
def context(project):
    """Make the context of the plugin `acme`."""
    return partial(open_context, "acme", project.root)


async def test_a_plugins_settings_reach_it(project, install):
    install("good")
    project.write(".deepwork/config.yml", "plugins: {settings: {acme: {greeting: Ahoy}}}")
    async with project.agent() as agent:
        assert (await agent.call("acme_greet", name="Ada"))["text"] == "Ahoy Ada"


async def test_a_plugin_without_settings_gets_the_defaults_of_its_model(project, install):
    install("good")
    async with project.agent() as agent:
        assert (await agent.call("acme_greet", name="Ada"))["text"] == "hello Ada"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{greetin: Ahoy}", "plugins.settings.acme.greetin: unknown setting; did you mean 'greeting'?"),
        ("{greeting: 7}", "plugins.settings.acme.greeting: Input should be a valid string"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_their_key(project, install, settings, message):
    install("good")
    project.write(".deepwork/config.yml", f"plugins: {{settings: {{acme: {settings}}}}}")
    with pytest.raises(ConfigError) as error:
        project.server()
    assert error.value.message == message
    assert error.value.hint == "Correct it in .deepwork/config.yml or in your own config.yml."


def test_the_settings_of_one_plugin_are_none_of_anothers_business(project, context):
    class Greeting(BaseModel):
        greeting: str = "hello"

    project.write(".deepwork/config.yml", "plugins: {settings: {other: {greeting: Ahoy}}}")
    assert context().settings(Greeting).greeting == "hello"


def test_a_context_knows_project_state_folder_platform_and_a_log_of_its_own(project, context):
    plugin_context = context(platform="claude")
    assert plugin_context.project_root == project.root
    assert plugin_context.state_dir == project.state
    assert plugin_context.platform == "claude"
    assert plugin_context.log.name == "deepwork.plugin.acme"


def test_a_context_carries_the_environment(context, monkeypatch):
    monkeypatch.setenv("DEEPWORK_ADDITIONAL_JOBS_FOLDERS", "more")
    assert context().environment["DEEPWORK_ADDITIONAL_JOBS_FOLDERS"] == "more"
