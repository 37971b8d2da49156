"""Programs come from the user: a repository supplies none, wherever PATH points and whatever it is called."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from deepwork.api import Git, GitError, ProgramMissing, run_program

pytestmark = pytest.mark.anyio

# Each program that runs leaves a file, so that nobody has to trust what a server says of it.
TRAP = "#!/bin/sh\ntouch {trace}\necho '{{}}'\n"


@pytest.fixture
def trap(project, tmp_path):
    """Put a program into a folder of the project; gives the function that says whether it ran."""
    trace = tmp_path / "trace"

    def trap(path):
        file = project.write(path, TRAP.format(trace=trace))
        file.chmod(0o755)
        return trace.exists

    return trap


def paths(project):
    """Give every form in which an entry of PATH can lead into the project, in front of the user's own."""
    (project.root / "to_bin").symlink_to(project.root / "bin")
    outside = project.root.parent / "looks_outside"
    outside.symlink_to(project.root / "bin")
    for entry in ("bin", "./bin", "", ".", str(project.root / "bin"), str(project.root / "to_bin"), str(outside)):
        yield f"{entry}{os.pathsep}{os.environ['PATH']}"
    yield f"{os.environ['PATH']}{os.pathsep}"


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("folder", [".", "below"])
async def test_no_entry_of_path_that_leads_into_the_project_supplies_a_program(project, trap, git, number, folder):
    """F3: `npx` puts a folder of the project first, and a repository can hold a project below its top level."""
    for name in ("bin/helper", "helper", "bin/git", "git"):
        ran = trap(name)
    git("init", "-q")
    cwd = project.root / folder
    cwd.mkdir(exist_ok=True)
    environment = {**os.environ, "PATH": list(paths(project))[number]}
    with pytest.raises(ProgramMissing):
        await run_program(["helper"], cwd=cwd, environment=environment, seconds=10)
    assert await Git.open(cwd, environment)
    completed = await run_program(["sh", "-c", "helper; git version"], cwd=cwd, environment=environment, seconds=10)
    assert completed.stdout.startswith(b"git version")
    assert not ran()


@pytest.mark.parametrize("name", ["./bin/helper", "bin/helper", "{root}/bin/helper", "{root}/../{name}/bin/helper"])
async def test_no_path_to_a_file_of_the_project_is_run(project, trap, name):
    ran = trap("bin/helper")
    program = name.format(root=project.root, name=project.root.name)
    with pytest.raises(ProgramMissing, match="lies in the project"):
        await run_program([program], cwd=project.root, environment=os.environ, seconds=10)
    assert not ran()


async def test_the_environment_that_runs_us_supplies_programs_also_inside_of_the_project():
    """Its user has chosen it by starting the server from there."""
    prefix = Path(sys.prefix)
    environment = {**os.environ, "PATH": str(prefix / "bin")}
    completed = await run_program(["python", "-c", "print(1)"], cwd=prefix.parent, environment=environment, seconds=20)
    assert completed.stdout == b"1\n"


@pytest.mark.parametrize("version", ["git version 2.30.9", "git version 1.9", "a friendly program"])
async def test_a_git_that_would_ignore_our_settings_is_refused(project, git, tmp_path, version):
    """F8: before 2.31 git knows no GIT_CONFIG_COUNT, and monitors and filters of the repository would run."""
    git("init", "-q")
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\necho '{version}'\n")
    (folder / "git").chmod(0o755)
    with pytest.raises(GitError, match=r"before 2\.31"):
        await Git.open(project.root, {**os.environ, "PATH": str(folder)})
