"""A setting without trust has no effect, and a missing verdict is explained by it."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import BaseModel

from deepwork import hookimpl
from deepwork.api import NeedsTrust, Passed, ReviewRunner, ReviewRunnerSpec
from deepwork.errors import RunnerUnavailable, UnknownName
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.project.project import Project
from deepwork.testing.fakes import answered

pytestmark = pytest.mark.anyio


FAR = """
from typing import Annotated
from pydantic import BaseModel
from deepwork import hookimpl
from deepwork.api import NeedsTrust, ReviewRunner, ReviewRunnerSpec
from deepwork.errors import RunnerUnavailable

class Settings(BaseModel):
    url: Annotated[str | None, NeedsTrust()] = None

class Far(ReviewRunner):
    async def review(self, request):
        raise RunnerUnavailable("no url is set")

@hookimpl
def deepwork_review_runners(context):
    context.settings(Settings)
    yield ReviewRunnerSpec(name="far", create=Far, max_inline_files=5)
"""


class Settings(BaseModel):
    url: Annotated[str | None, NeedsTrust()] = None


class Remote(ReviewRunner):
    def __init__(self, url):
        self.url = url

    async def review(self, request):
        if not self.url:
            raise RunnerUnavailable("no url is set")
        return answered(Passed(), request)


class RemotePlugin:
    @hookimpl
    def deepwork_review_runners(self, context):
        url = context.settings(Settings).url
        yield ReviewRunnerSpec(name="remote", create=lambda: Remote(url), max_inline_files=5)


@pytest.fixture
def plugins():
    """Make plugins with `remote_judge`, which offers the runner `remote`."""
    return lambda: PluginManager(candidates=[*installed(), Candidate("remote_judge", "remote", "1.0", RemotePlugin)])


async def test_no_verdict_names_the_settings_that_wait_for_trust(reviewed, plugins):
    reviewed.write(".deepwork/config.yml", "plugins: {settings: {remote_judge: {url: 'https://judge.example'}}}")
    async with reviewed.agent(reviewed.server(external_runner="remote", plugins=plugins())) as agent:
        await agent.start()
        reply = await agent.finish({"a.md": "a.md"})
        advice = "Without effect until the user runs `deepwork trust`: setting plugins.settings.remote_judge.url."
        assert advice in reply["feedback"]
    reviewed.trust(plugins=plugins())
    async with reviewed.agent(reviewed.server(external_runner="remote", plugins=plugins())) as agent:
        await agent.start()
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "next_step"


async def test_gate_try_says_which_setting_has_no_effect(reviewed, deepwork, tmp_path, monkeypatch):
    (tmp_path / "far.py").write_text(FAR)
    monkeypatch.setenv("DEEPWORK_PLUGINS_DIR", str(tmp_path))
    reviewed.write(".deepwork/config.yml", "plugins: {settings: {far: {url: 'https://judge.example'}}}")
    report = await deepwork("gate", "try", "demo", "a", "--file", "a.md", "--runner", "far", code=1)
    assert "not judged" in report
    assert "setting plugins.settings.far.url of this project has no effect until you run `deepwork trust`" in report


def test_the_name_of_a_plugin_and_that_of_its_runner_are_told_apart(project, plugins):
    project.write(".deepwork/config.yml", "plugins: {settings: {remote: {url: x}}}")
    opened = Project(project.root, plugins=plugins())
    with pytest.raises(UnknownName, match="'remote_judge' is the name of a plugin, which offers: remote"):
        opened.gate("remote_judge")
    assert opened.unknown_sections() == [
        "plugins.settings.remote: no installed plugin has this name; it is the runner of the plugin 'remote_judge': "
        "plugins.settings.remote_judge"
    ]
