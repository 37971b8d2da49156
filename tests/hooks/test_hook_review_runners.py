from __future__ import annotations

import pytest

from deepwork import __version__
from deepwork.errors import NameClash, PluginLoadError
from deepwork.loading.selection import by_name
from deepwork.testing import review, step

pytestmark = pytest.mark.anyio


def test_runners_are_collected_and_attributed(ask):
    provided = ask("review_runners", "good")
    assert sorted((runner.item.name, str(runner.by)) for runner in provided) == [
        ("acme", "acme-tracker 2.1 (plugin 'acme')"),
        ("person", f"deepwork {__version__} (feature 'people')"),
        ("self", f"deepwork {__version__} (feature 'reviewers')"),
    ]


def test_two_runners_of_one_name_clash(ask):
    with pytest.raises(NameClash, match="review runner 'self' is offered twice"):
        by_name("review runner", ask("review_runners", "clash_runner"), lambda spec: spec.name)


def test_a_plugin_that_raises_while_it_yields_is_named(ask):
    with pytest.raises(PluginLoadError) as error:
        ask("review_runners", "raising_everywhere")
    assert error.value.message == (
        "deepwork-raising-everywhere 0.17 (plugin 'raising_everywhere'): "
        "hook deepwork_review_runners failed: KeyError: 'nobody' (raising_everywhere/__init__.py, line 20)"
    )


async def test_the_runner_that_is_chosen_judges(project, ask):
    ask("review_runners", "good")
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")
    async with project.agent(external_runner="acme") as agent:
        await agent.start()
        answer = await agent.finish({"a.md": "a.md"})
        assert (answer["status"], answer["feedback"]) == ("needs_work", "Acme wants to see 'a' again")
