from __future__ import annotations

from pathlib import Path

import pytest
from deepwork.api import same_verdict
from deepwork.errors import RunnerError
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
    assert await AcmeRunner().review(request) == same_verdict(request.criteria, passed=True)
    (tmp_path / "report.md").write_text("\n")
    failed = same_verdict(request.criteria, passed=False, feedback="report.md is empty.")
    assert await AcmeRunner().review(request) == failed


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_file_that_cannot_be_read_is_not_judged(tmp_path: Path) -> None:
    request = a_request(tmp_path)
    (tmp_path / "report.md").unlink()
    with pytest.raises(RunnerError, match="cannot be read: No such file"):
        await AcmeRunner().review(request)
