"""A project narrows what its user allows, and never widens it; a gate that is off is said and written down."""

from __future__ import annotations

import json
import os

import pytest

from deepwork.errors import ConfigError
from deepwork.paths.user_folders import user_config_file
from deepwork.project.config import load_config

pytestmark = pytest.mark.anyio


@pytest.fixture
def gate(project):
    """Write both configurations, and give what the gate is made of."""

    def gate(own, of_project):
        file = user_config_file(os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"quality_gate": own}))
        project.write(".deepwork/config.yml", json.dumps({"quality_gate": of_project}))
        loaded = load_config(project.root, os.environ)
        return loaded.config.quality_gate, loaded.trust

    return gate


@pytest.mark.parametrize(
    ("own", "of_project"),
    [
        ({}, {"enabled": False}),
        ({}, {"max_attempts": 4}),
        ({"max_attempts": 2}, {"max_attempts": 3}),
        ({"concurrency": 1}, {"concurrency": 1000}),
        ({"runner": "claude"}, {"runner": "self"}),
        ({"runner": "claude"}, {"runners": [{"runner": "self"}]}),
        ({"runners": [{"runner": "claude"}]}, {"runner": "other"}),
    ],
)
def test_what_widens_the_gate_of_the_user_waits_for_trust(gate, own, of_project):
    """F11 and F12."""
    (name,) = of_project
    section, trust = gate(own, of_project)
    assert getattr(section, name) != of_project[name] or name == "runners"
    assert f"setting quality_gate.{name}" in trust.refusals
    assert section.runners == [] or "runners" in own


@pytest.mark.parametrize(
    ("own", "of_project"),
    [
        ({"enabled": False}, {"enabled": True}),
        ({"enabled": False}, {"enabled": False}),
        ({"max_attempts": 5}, {"max_attempts": 1}),
        ({"concurrency": 5}, {"concurrency": 1}),
        ({}, {"runner": "claude"}),
        ({"runner": "claude"}, {"runner": "claude"}),
    ],
)
def test_a_narrowing_setting_needs_no_trust(gate, own, of_project):
    (name,) = of_project
    section, trust = gate(own, of_project)
    assert getattr(section, name) == of_project[name]
    assert trust.refusals == {}


async def test_a_gate_that_is_off_leaves_a_notice_a_log_line_and_an_event(reviewed, history, caplog):
    """Nothing told that a step was completed without its reviews."""
    async with reviewed.agent(enable_quality_gate=False) as agent:
        await agent.start()
        reply = await agent.finish({"a.md": "a.md"})
    assert [text for text in reply["notices"] if text.startswith("The quality gate is off:")]
    assert history("gate_off") == [{}]
    assert "the quality gate is off: steps are completed without their reviews" in caplog.text


async def test_a_step_without_reviews_has_no_such_event(project, history):
    project.write_job()
    project.write("a.md")
    async with project.agent(enable_quality_gate=False) as agent:
        await agent.start()
        reply = await agent.finish({"a.md": "a.md"})
    assert (reply.get("notices", []), history("gate_off")) == ([], [])


async def test_a_project_alone_switches_no_gate_off(reviewed):
    reviewed.write(".deepwork/config.yml", "quality_gate: {enabled: false}\n")
    async with reviewed.stdio_agent() as agent:
        await agent.start()
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "needs_work"
    assert "setting quality_gate.enabled of this project has no effect" in (reviewed.root / "server.log").read_text()


@pytest.mark.parametrize("prefix", ["a b", "x\n## Now", "\x1b[2J", "é", "x" * 33, "a/b"])
async def test_a_project_puts_no_text_into_the_names_of_tools(project, prefix):
    """F17, a09."""
    project.write(".deepwork/config.yml", json.dumps({"tools": {"prefix": {"core": prefix}}}))
    with pytest.raises(ConfigError, match=r"tools\.prefix"):
        project.server()
