"""Each gate of the page about tests as gates, as it stands there: it refuses a red suite and passes a green one."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from deepwork.testing import DeepworkProject

pytestmark = pytest.mark.anyio

# Each writes a suite, red or green, and returns the file that has changed.


def _python(project: DeepworkProject, *, green: bool) -> str:
    """A suite in a virtual environment that sees the pytest of this test run."""
    environment = project.root / ".venv"
    packages = environment / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    if not packages.exists():
        packages.mkdir(parents=True)
        (environment / "bin").mkdir()
        (environment / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
        (environment / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
        (packages / "tests_of_deepwork.pth").write_text(sysconfig.get_path("purelib") + "\n")
    project.write("pytest.ini", "[pytest]\naddopts = -p no:cacheprovider\n")
    project.write("test_price.py", f"def test_discount():\n    assert {80 if green else 90} == 80\n")
    return "test_price.py"


def _node(project: DeepworkProject, *, green: bool) -> str:
    project.write("package.json", '{"name": "price", "version": "1.0.0", "scripts": {"test": "node --test"}}\n')
    code = "const test = require('node:test');\nconst assert = require('node:assert');\n"
    project.write("price.test.js", f"{code}test('discount', () => assert.equal({80 if green else 90}, 80));\n")
    return "price.test.js"


def _make(project: DeepworkProject, *, green: bool) -> str:
    project.write("Makefile", f"check:\n\t@test {80 if green else 90} = 80 || (echo discount is wrong; exit 1)\n")
    return "Makefile"


def _rust(project: DeepworkProject, *, green: bool) -> str:
    toolchains = Path(pwd.getpwuid(os.getuid()).pw_dir, ".rustup")  # rustup looks in HOME, which is new here
    if toolchains.is_dir() and not (linked := Path.home() / ".rustup").exists():
        linked.symlink_to(toolchains)
    project.write("Cargo.toml", '[package]\nname = "price"\nversion = "0.1.0"\nedition = "2021"\n')
    code = "#[test]\nfn discount() {\n    assert_eq!(%d, 80);\n}\n"
    project.write("src/lib.rs", code % (80 if green else 90))
    return "src/lib.rs"


@pytest.mark.parametrize(
    ("name", "suite", "reason"),
    [
        ("pytest", _python, "FAILED test_price.py::test_discount"),
        ("npm", _node, "discount"),
        ("make", _make, "discount is wrong"),
        pytest.param("cargo", _rust, "discount", marks=pytest.mark.slow),
    ],
)
async def test_a_suite_that_fails_holds_the_step_and_one_that_passes_completes_it(
    project, page, deepwork, name, suite, reason
):
    if name != "pytest" and shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    how_to = page("docs/how-to/let-tests-decide.md")
    [job] = how_to.blocks("given")
    project.write(job.about, job.text)
    project.write(".deepwork/jobs/feature/build.md", "Write the code.\n")
    [gate] = [block for block in how_to.blocks("gate") if block.about == name]
    project.write(".deepwork/config.yml", gate.text)
    outputs = {"changed": [suite(project, green=False)]}
    await deepwork("trust", "--yes")
    async with project.agent(external_runner="tests") as agent:
        await agent.start(job="feature")
        reply = await agent.finish(outputs)
        assert (reply["status"], reason in reply["feedback"]) == ("needs_work", True), reply["feedback"]
        assert "only a person" in await agent.refused(
            "finished_step", outputs=outputs, quality_review_override_reason="It is fine"
        )
        suite(project, green=True)
        reply = await agent.finish(outputs)
        assert reply["status"] == "workflow_complete", reply["feedback"]
