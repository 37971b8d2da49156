from __future__ import annotations

import sys
from pathlib import Path

import pytest
from deepwork_oracle.runner import OracleRunner, OracleSettings

from deepwork.testing import ReviewRunnerContract

ORACLE = """\
import json, sys
sys.stdin.read()
print(json.dumps({"passed": True, "feedback": "Fine"}))
"""


class TestOracleRunner(ReviewRunnerContract):
    @pytest.fixture
    async def runner(self, tmp_path: Path) -> OracleRunner:
        program = tmp_path / "oracle"
        program.write_text(f"#!{sys.executable}\n{ORACLE}")
        program.chmod(0o755)
        return OracleRunner(OracleSettings(command=str(program)), {})

    @pytest.fixture
    async def broken_runner(self) -> OracleRunner:
        return OracleRunner(OracleSettings(command="/nowhere/oracle"), {})
