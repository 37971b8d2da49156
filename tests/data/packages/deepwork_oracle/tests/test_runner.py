from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from deepwork.testing import DeepworkProject, ReviewRunnerContract, review, step

from deepwork_oracle.runner import OracleRunner, OracleSettings

ORACLE = """\
import json, re, sys
schema = json.loads(re.search("JSON Schema: (.*)", sys.stdin.read())[1])
names = schema["properties"]["criteria_results"]["items"]["properties"]["criterion"]["enum"]
results = [{"criterion": name, "passed": True} for name in names]
print(json.dumps({"passed": True, "feedback": "Fine", "criteria_results": results}))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "programs" / "oracle"
    file.parent.mkdir()
    file.write_text(f"#!{sys.executable}\n{ORACLE}")
    file.chmod(0o755)
    return file


class TestOracleRunner(ReviewRunnerContract):
    @pytest.fixture
    async def runner(self, program: Path) -> OracleRunner:
        return OracleRunner(OracleSettings(command=str(program)), {})

    @pytest.fixture
    async def broken_runner(self) -> OracleRunner:
        return OracleRunner(OracleSettings(command="/nowhere/oracle"), {})


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_work_that_the_reviewer_passes_completes_a_step(
    project: DeepworkProject, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    project.write_job(steps=[step("write", reviews=[review("write.md")])])
    project.write("write.md")
    async with project.agent(external_runner="oracle") as agent:
        await agent.start()
        reply = await agent.finish({"write.md": "write.md"})
    assert reply["status"] == "workflow_complete"
