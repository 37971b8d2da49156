"""The job sources of the core, by the kit and nothing weaker."""

from __future__ import annotations

import pytest

from deepwork.api import JobReader
from deepwork.builtin.local_jobs import PACKAGED, FolderJobs
from deepwork.testing import JobSourceContract


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
