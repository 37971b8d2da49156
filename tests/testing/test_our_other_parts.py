"""The runner, the job sources and the plugins of the core, by the kit and nothing weaker."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings

from deepwork.api import Job, JobReader, open_context, parse_job
from deepwork.builtin.local_jobs import PACKAGED, FolderJobs
from deepwork.builtin.reviewers.self_review import SelfReview
from deepwork.loading.features import FEATURES
from deepwork.testing import JobSourceContract, PluginContract, ReviewRunnerContract, ScriptedRunner
from deepwork.testing.strategies import jobs


def context(root):
    return open_context("reviewers", root)


class TestSelfReview(ReviewRunnerContract):
    @pytest.fixture
    async def runner(self, project_root):
        return SelfReview(context(project_root))

    @pytest.fixture
    async def broken_runner(self, project_root):
        runner = SelfReview(context(project_root))
        (project_root / ".deepwork").write_text("a file where the folder should be")
        return runner


class TestScriptedRunner(ReviewRunnerContract):
    @pytest.fixture
    async def runner(self):
        return ScriptedRunner()


class TestPackagedJobs(JobSourceContract):
    @pytest.fixture
    def source(self):
        return FolderJobs("packaged", 50, [JobReader(PACKAGED)])


class TestFolderJobs(JobSourceContract):
    @pytest.fixture
    def source(self, project):
        for name in ("zebra", "ant", "mole"):
            project.write_job(name)
        project.write_job("second", folder=project.root / "more")
        folders = (project.jobs, project.root / "more")
        return FolderJobs("project", 0, [JobReader(folder, inside=project.root) for folder in folders])

    @pytest.fixture
    def broken_source(self, project, source):
        project.write(project.jobs / "broken" / "job.yml", "name: [\n")
        return source


@pytest.mark.parametrize("name", FEATURES)
def test_every_builtin_plugin_has_its_contract(name):
    assert name in {contract.plugin for contract in PluginContract.__subclasses__()}


class TestReviewersPlugin(PluginContract):
    plugin = "reviewers"


class TestHttpPlugin(PluginContract):
    plugin = "http"


class TestDemoPlugin(PluginContract):
    plugin = "demo"


class TestProofsPlugin(PluginContract):
    plugin = "proofs"


class TestPeoplePlugin(PluginContract):
    plugin = "people"


class TestClientsPlugin(PluginContract):
    plugin = "clients"


class TestAuthoringPlugin(PluginContract):
    plugin = "authoring"


class TestJsonStorePlugin(PluginContract):
    plugin = "json_store"


class TestLocalJobsPlugin(PluginContract):
    plugin = "local_jobs"


class TestMemoryStorePlugin(PluginContract):
    plugin = "memory_store"


class TestWorkflowToolsPlugin(PluginContract):
    plugin = "workflow_tools"


@settings(max_examples=30)
@given(definition=jobs())
def test_the_strategy_for_jobs_makes_files_that_the_core_can_read(definition, tmp_path_factory):
    folder = Path(tmp_path_factory.mktemp("jobs"), definition.name)
    for step in definition.steps:
        (folder / step.instructions_file).parent.mkdir(parents=True, exist_ok=True)
        (folder / step.instructions_file).write_text("Do it\n")
    content = yaml.safe_dump(definition.model_dump(exclude_defaults=True), allow_unicode=True)
    (folder / "job.yml").write_text(content, encoding="utf-8")
    job = parse_job(folder)
    assert isinstance(job, Job), job
    assert (job.definition, job.warnings) == (definition, ())
