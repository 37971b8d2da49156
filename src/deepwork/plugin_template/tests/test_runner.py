from __future__ import annotations

from pathlib import Path

import pytest
from deepwork.api import NeedsWork, Passed
from deepwork.testing import ReviewRunnerContract, a_request

from deepwork_acme.runner import AcmeRunner


class TestAcmeRunner(ReviewRunnerContract):
    @pytest.fixture
    async def runner(self) -> AcmeRunner:
        return AcmeRunner()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_empty_file_needs_work(tmp_path: Path) -> None:
    request = a_request(tmp_path)
    assert await AcmeRunner().review(request) == Passed()
    (tmp_path / "report.md").write_text("\n")
    assert await AcmeRunner().review(request) == NeedsWork("report.md is empty.")
