"""The runner of the how-to: a real package, built as a wheel, which judges in an environment of its own."""

from __future__ import annotations

import json
import os
import re
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from deepwork.testing import Agent, review, step

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "tests" / "data" / "packages" / "deepwork_oracle"
PAGE = ROOT / "docs" / "how-to" / "write-a-runner.md"

ORACLE = """\
import json, os, re, sys
work = sys.stdin.read()
schema = json.loads(re.search("JSON Schema: (.*)", work)[1])
names = schema["properties"]["criteria_results"]["items"]["properties"]["criterion"]["enum"]
good = "TODO" not in work and os.environ["ORACLE_KEY"] == "key" and "HIDDEN" not in os.environ
results = [{"criterion": name, "passed": good} for name in names]
print(json.dumps({"passed": good, "feedback": "Do it", "criteria_results": results}))
"""


@pytest.mark.parametrize(
    "file", ["src/deepwork_oracle/runner.py", "src/deepwork_oracle/plugin.py", "tests/test_runner.py"]
)
def test_the_page_shows_the_package(file):
    blocks = re.findall(rf"<!-- file: deepwork-oracle/{file} -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert blocks == [(PACKAGE / file).read_text()]


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_its_wheel_judges_in_an_environment_of_its_own(project, core_wheel, wheel_of, environment, tmp_path):
    python = environment(core_wheel, wheel_of(PACKAGE))
    program = tmp_path / "oracle"
    program.write_text(f"#!{python}\n{ORACLE}")
    program.chmod(0o755)
    config = tmp_path / "config" / "deepwork" / "config.yml"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"plugins": {"settings": {"oracle": {"command": str(program)}}}}))
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md", "TODO\n")

    @asynccontextmanager
    async def serve():
        command = ["-m", "deepwork", "serve", "--path", str(project.root), "--external-runner", "oracle"]
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        env = {**clean, "XDG_CONFIG_HOME": str(config.parent.parent), "ORACLE_KEY": "key", "HIDDEN": "secret"}
        transport = StdioTransport(str(python), command, env=env, keep_alive=False, log_file=tmp_path / "log")
        async with Client(transport) as client:
            yield Agent(client)

    async with serve() as agent:
        await agent.start()
        assert (await agent.finish({"a.md": "a.md"}))["feedback"] == "Do it"
        project.write("a.md", "Done\n")
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "next_step"
