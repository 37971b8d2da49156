"""Programs come from the user: a repository supplies none, for any PATH and any name."""

from __future__ import annotations

import ast
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

import deepwork
from deepwork.api import Git, run_program
from deepwork.errors import GitError, ProgramMissing
from deepwork.programs.processes import open_browser
from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio

# Each program that runs leaves a file, as evidence independent of the server's words.
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
    """Yield every form in which an entry of PATH can lead into the project, in front of the user's own."""
    (project.root / "to_bin").symlink_to(project.root / "bin")
    outside = project.root.parent / "looks_outside"
    outside.symlink_to(project.root / "bin")
    for entry in ("bin", "./bin", "", ".", str(project.root / "bin"), str(project.root / "to_bin"), str(outside)):
        yield f"{entry}{os.pathsep}{os.environ['PATH']}"
    yield f"{os.environ['PATH']}{os.pathsep}"


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("folder", [".", "below"])
async def test_no_entry_of_path_that_leads_into_the_project_supplies_a_program(project, trap, git, number, folder):
    """`npx` puts a folder of the project first, and a repository can hold a project below its top level."""
    for name in ("bin/helper", "helper", "bin/git", "git"):
        ran = trap(name)
    git("init", "-q")
    cwd = project.root / folder
    cwd.mkdir(exist_ok=True)
    environment = {**os.environ, "PATH": list(paths(project))[number]}
    with pytest.raises(ProgramMissing):
        await run_program(["helper"], cwd=cwd, environment=environment, seconds=PATIENCE)
    assert await Git.open(cwd, environment)
    completed = await run_program(
        ["sh", "-c", "helper; git version"], cwd=cwd, environment=environment, seconds=PATIENCE
    )
    assert completed.stdout.startswith(b"git version")
    assert not ran()


@pytest.mark.parametrize("name", ["./bin/helper", "bin/helper", "{root}/bin/helper", "{root}/../{name}/bin/helper"])
async def test_no_path_to_a_file_of_the_project_is_run(project, trap, name):
    ran = trap("bin/helper")
    program = name.format(root=project.root, name=project.root.name)
    with pytest.raises(ProgramMissing, match="lies in the project"):
        await run_program([program], cwd=project.root, environment=os.environ, seconds=PATIENCE)
    assert not ran()


async def test_the_environment_that_runs_us_supplies_programs_also_inside_of_the_project():
    """Its user has chosen it by starting the server from there."""
    prefix = Path(sys.prefix)
    environment = {**os.environ, "PATH": str(prefix / "bin")}
    completed = await run_program(
        ["python", "-c", "print(1)"], cwd=prefix.parent, environment=environment, seconds=PATIENCE
    )
    assert completed.stdout == b"1\n"


@pytest.mark.parametrize("version", ["git version 2.30.9", "git version 1.9", "a friendly program"])
async def test_a_git_that_would_ignore_our_settings_is_refused(project, git, tmp_path, version):
    """Before 2.31 git knows no GIT_CONFIG_COUNT, and monitors and filters of the repository would run."""
    git("init", "-q")
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\necho '{version}'\n")
    (folder / "git").chmod(0o755)
    with pytest.raises(GitError, match=r"before 2\.31"):
        await Git.open(project.root, {**os.environ, "PATH": str(folder)})


@pytest.fixture
def browser(tmp_path):
    """Make a browser of the user, by its folder; gives the function that waits for what it was started with."""
    opened = tmp_path / "opened"

    def make(name):
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#!/bin/sh\necho "$@ PATH=$PATH BROWSER=$BROWSER" > {opened}.new; mv {opened}.new {opened}\n')
        file.chmod(0o755)
        return file

    def arguments():
        deadline = time.monotonic() + PATIENCE
        while not opened.exists():
            assert time.monotonic() < deadline, "no browser was started"
            time.sleep(0.01)
        return opened.read_text()

    make.arguments = arguments
    return make


@pytest.mark.skipif(sys.platform == "darwin", reason="there is no xdg-open")
@pytest.mark.parametrize("number", range(8))
def test_no_entry_of_path_that_leads_into_the_project_supplies_a_browser(project, trap, browser, number):
    for folder in ("", "bin/"):
        for name in ("xdg-open", "wslview", "xdg-settings"):
            ran = trap(f"{folder}{name}")
    user = browser("xdg-open")
    path = list(paths(project))[number].replace(os.environ["PATH"], f"{user.parent}{os.pathsep}{os.environ['PATH']}")
    environment = {"PATH": path, "DISPLAY": ":7", "BROWSER": f"./bin/xdg-open{os.pathsep}{project.root}/bin/wslview %s"}
    assert open_browser("http://127.0.0.1:1/#token=x", project=project.root, environment=environment)
    opened, variables = browser.arguments().split(" PATH=")
    folders, variable = variables.split(" BROWSER=")
    assert (opened, variable) == ("http://127.0.0.1:1/#token=x", "\n")
    assert all(map(os.path.isabs, folders.split(os.pathsep)))
    assert str(project.root) not in folders
    assert not ran()


def test_the_users_own_browser_is_started_with_its_options_and_the_address_in_its_place(project, browser):
    command = f"{shlex.quote(str(browser('my browser')))} --new %s --last"
    environment = {"PATH": os.environ["PATH"], "BROWSER": f"'{os.pathsep}nothing-of-this-name{os.pathsep}{command}"}
    assert open_browser("http://x/", project=project.root, environment=environment)
    assert browser.arguments().startswith("--new http://x/ --last PATH=")


@pytest.mark.skipif(sys.platform == "darwin", reason="there `open` needs no display")
def test_without_a_browser_or_a_display_none_is_said_to_be_started(project, browser):
    user = browser("xdg-open")
    assert not open_browser("http://x/", project=project.root, environment={"PATH": str(user.parent)})


# What starts a program, by the module and the beginning of the name.
STARTERS = {
    "os": ("exec", "spawn", "posix_spawn", "system", "popen", "fork", "startfile"),
    "asyncio": ("create_subprocess", "subprocess"),
    "anyio": ("run_process", "open_process", "to_process", "to_interpreter"),
    "subprocess": ("",),
    "webbrowser": ("",),
    "pty": ("",),
    "multiprocessing": ("",),
    "concurrent.futures": ("ProcessPool", "process"),
    "_posixsubprocess": ("",),
    "ctypes": ("",),
}
# The module itself, its supervisor, which must start without our imports, and what only tests use.
STARTING = {
    "programs/processes.py",
    "programs/supervisor.py",
    # Already a process of ours, which becomes the gate in its private mounts.
    "programs/private_mounts.py",
    # `ps` of the system's own folders.
    "cli/environment.py",
    # The installer that the user has agreed to, with their terminal; the project's programs are left out.
    "builtin/clients/keeping.py",
    # This interpreter, in a folder of its own.
    "builtin/demo/command.py",
    # A program of its own, which plays a client: it starts the server that it was told to start.
    "plugins/deepwork_run/src/deepwork_run/agents/scripted.py",
}
FOR_TESTS = ("testing/", "plugins/deepwork_sql/src/deepwork_sql/cluster.py")


def starters(text):
    """Yield everything in a module that can start a program: `os.execv`, `subprocess`, also by another name."""
    modules = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else None
                if "" in STARTERS.get(alias.name.partition(".")[0], ()):
                    yield alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if any(alias.name.startswith(name) for name in STARTERS.get(node.module, ())):
                    yield f"{node.module}.{alias.name}"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            name = ast.unparse(node.value)
            module = modules.get(name) or name
            if any(node.attr.startswith(beginning) for beginning in STARTERS.get(module, ())):
                yield f"{module}.{node.attr}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("subprocess_exec", "subprocess_shell")):
            yield ast.unparse(node.func)


def sources():
    core = Path(deepwork.__file__).parent
    top = core.parents[1]
    for file in sorted(core.rglob("*.py")):
        yield str(file.relative_to(core)), file
    for file in sorted(top.glob("plugins/*/src/**/*.py")):
        yield str(file.relative_to(top)), file


def test_every_program_is_started_by_one_module():
    """Only there PATH is cleaned, and a program of the project refused."""
    ways_of = {name: {*starters(file.read_text())} for name, file in sources() if not name.startswith(FOR_TESTS)}
    assert {name for name, ways in ways_of.items() if ways} == STARTING


@pytest.mark.parametrize(
    "text",
    [
        "import webbrowser\nwebbrowser.open('x')",
        "def f():\n    from subprocess import run",
        "import os\nos.execvp('x', [])",
        "import os as o\no.posix_spawn('x', [], {})",
        "from os import system",
        "import os\nos.popen('x')",
        "import asyncio\nasyncio.create_subprocess_shell('x')",
        "import asyncio\nasyncio.subprocess.create_subprocess_exec('x')",
        "async def f(loop):\n    await loop.subprocess_exec(p, 'x')",
        "import anyio\nanyio.run_process('x')",
        "from anyio import to_process",
        "import pty",
        "from multiprocessing import Process",
        "import multiprocessing.pool",
        "from concurrent.futures import ProcessPoolExecutor",
        "import concurrent.futures\nconcurrent.futures.ProcessPoolExecutor()",
    ],
)
def test_the_check_sees_every_way_to_start_a_program(text):
    assert [*starters(text)]
