from __future__ import annotations

import pytest

from deepwork import __version__
from deepwork.errors import NameClash, PluginLoadError
from deepwork.loading.selection import by_name

pytestmark = pytest.mark.anyio


def test_sources_are_collected_and_attributed(ask):
    provided = ask("job_sources", "good")
    assert sorted((source.item.name, str(source.by)) for source in provided) == [
        ("acme", "acme-tracker 2.1 (plugin 'acme')"),
        ("additional", f"deepwork {__version__} (feature 'local_jobs')"),
        ("packaged", f"deepwork {__version__} (feature 'local_jobs')"),
        ("project", f"deepwork {__version__} (feature 'local_jobs')"),
    ]


def test_two_sources_of_one_name_clash(ask):
    with pytest.raises(NameClash, match="job source 'project' is offered twice"):
        by_name("job source", ask("job_sources", "clash_source"), lambda source: source.name)


def test_a_plugin_that_raises_is_named(ask):
    with pytest.raises(PluginLoadError) as error:
        ask("job_sources", "raising_everywhere")
    assert error.value.message == (
        "deepwork-raising-everywhere 0.17 (plugin 'raising_everywhere'): hook deepwork_job_sources failed: "
        "RuntimeError: the moon is in the wrong phase (raising_everywhere/__init__.py, line 10)"
    )


async def test_the_jobs_of_a_plugin_are_listed_after_those_of_earlier_rank_and_can_be_started(project, ask):
    ask("job_sources", "good")
    project.write_job()
    project.write("out.txt")
    async with project.agent() as agent:
        jobs = (await agent.call("get_workflows"))["jobs"]
        assert [job["name"] for job in jobs] == ["demo", "deepwork_jobs", "project_tour", "acme_job"]
        assert jobs[-1]["description"] == "Made by a plugin"
        begin = await agent.start("acme_job")
        assert begin["step_instructions"] == "Do the only step\n"
        reply = await agent.finish({"out": "out.txt"})
        assert reply["status"] == "workflow_complete"
