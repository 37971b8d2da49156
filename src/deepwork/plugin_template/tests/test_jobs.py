from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deepwork.testing import JobSourceContract

from deepwork_acme.jobs import FOLDER, AcmeJobs


class TestAcmeJobs(JobSourceContract):
    @pytest.fixture
    def source(self) -> AcmeJobs:
        return AcmeJobs()

    @pytest.fixture
    def broken_source(self, tmp_path: Path) -> AcmeJobs:
        shutil.copytree(FOLDER, tmp_path / "jobs")
        (tmp_path / "jobs" / "broken").mkdir()
        (tmp_path / "jobs" / "broken" / "job.yml").write_text("name: [\n")
        return AcmeJobs(tmp_path / "jobs")
