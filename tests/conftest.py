"""What every test may count on: one async backend, nothing of the person who runs them, and runners to script."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from click.testing import CliRunner

from deepwork import hookimpl
from deepwork.api import ReviewRequest, ReviewRunner, ReviewRunnerSpec, Verdict
from deepwork.builtin.clients.table import CLIENTS
from deepwork.cli.main import main
from deepwork.errors import DeepWorkError
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.paths.user_folders import user_config_file
from deepwork.testing import DeepworkProject, StdioWire, output, review, step
from deepwork.testing.fakes import answered
from deepwork.testing.wire import PATIENCE

Answer = Callable[[ReviewRequest], Any]


DISTS = Path(__file__).parent / "data" / "dists"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory):
    """Keep temporary files of tests, and of every program that they start, where pytest removes them; ours are gone."""
    folder = tmp_path_factory.mktemp("t")  # short, because programs put sockets there
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder
    assert list(folder.glob("deepwork*")) == []


@pytest.fixture(scope="session")
def path_without_clients(tmp_path_factory):
    """Return PATH without the clients of the user who runs the tests; other programs of their folders stay."""
    names = {program for client in CLIENTS.values() for program in client.programs}
    folders = []
    for folder in map(Path, os.environ["PATH"].split(os.pathsep)):
        if any((folder / name).exists() for name in names):
            links = tmp_path_factory.mktemp("programs")
            for program in folder.iterdir():
                if program.name not in names:
                    (links / program.name).symlink_to(program)
            folder = links
        folders.append(str(folder))
    return os.pathsep.join(folders)


@pytest.fixture(scope="session")
def installed_beside():
    """Return the distributions of plugins that are installed beside the core."""
    return ",".join(sorted({plugin.distribution for plugin in installed() if not plugin.builtin}))


@pytest.fixture(autouse=True)
def _nobodys_environment(monkeypatch, tmp_path_factory, path_without_clients, installed_beside):
    monkeypatch.setenv("PATH", path_without_clients)
    for name in list(os.environ):
        if name.startswith(("DEEPWORK_", "FASTMCP_")):
            monkeypatch.delenv(name)
    # Whatever else is installed beside the core stays out, until a test lets it in.
    monkeypatch.setenv("DEEPWORK_NO_PLUGINS", installed_beside)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def nobodys_home(monkeypatch, tmp_path_factory):
    """The clients of the person who runs the tests are not looked at."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def install(monkeypatch):
    """Install fake distributions, for this process and its children."""

    def install(*names):
        folders = [str(DISTS / name) for name in names]
        for folder in folders:
            monkeypatch.syspath_prepend(folder)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))

    return install


# From linux/capability.h.
VERSION_3 = 0x20080522
OVERRIDING = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@pytest.fixture
def bound_by_permissions() -> Iterator[None]:
    """Let the permissions of files bind a test as they bind every user but root; skip it aloud where that cannot be.

    Root ignores permissions by two capabilities. The thread of the test gives them up, and so do the threads that it
    starts. A process of another user would not do: it could not read an interpreter in root's home.
    """
    if os.geteuid():
        yield
        return
    if not sys.platform.startswith("linux"):
        pytest.skip("root can give up its rights on Linux alone")
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(VERSION_3, 0), (_Sets * 2)()
    if libc.capget(ctypes.byref(header), sets):
        pytest.skip(f"root cannot read its rights: {os.strerror(ctypes.get_errno())}")
    before = sets[0].effective
    sets[0].effective = before & ~OVERRIDING
    if libc.capset(ctypes.byref(header), sets):
        pytest.skip(f"root cannot give up its rights: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        sets[0].effective = before
        assert libc.capset(ctypes.byref(header), sets) == 0


class Judge(ReviewRunner):
    """Answers by a function, and remembers what it was asked and how many it judged at once.

    A verdict that lists no criteria answers all of them alike, unless `as_given` is set.
    With `hold` set it answers only when `release` is set, so that a test can act meanwhile.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[ReviewRequest] = []
        self.hold = False
        self.as_given = False
        self.release = anyio.Event()
        self.asked = anyio.Event()
        self.running = 0
        self.most = 0
        self.cancelled = 0

    async def review(self, request: ReviewRequest) -> Verdict:
        self.requests.append(request)
        self.running += 1
        self.most = max(self.most, self.running)
        self.asked.set()
        try:
            if self.hold:
                await self.release.wait()
            answer = self.answer(request)
            if hasattr(answer, "__await__"):
                answer = await answer
            if isinstance(answer, Exception):
                raise answer
            return answer if self.as_given else answered(answer, request)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        finally:
            self.running -= 1


@pytest.fixture
def plugins_with():
    """Make the plugins of a server: those installed, and one with these runners."""

    def make(**runners: ReviewRunner | ReviewRunnerSpec) -> PluginManager:
        class Runners:
            @hookimpl
            def deepwork_review_runners(self):
                for name, runner in runners.items():
                    if isinstance(runner, ReviewRunnerSpec):
                        yield runner
                    else:
                        yield ReviewRunnerSpec(name=name, create=lambda selected=runner: selected, max_inline_files=5)

        return PluginManager(candidates=[*installed(), Candidate("judges", "judges-dist", "1.0", Runners)])

    return make


@pytest.fixture
def judge():
    return Judge


@pytest.fixture
def served(project, plugins_with):
    """Make a server whose gate asks this runner; other options as for `create_server`."""

    def make(runner: ReviewRunner, **options: Any) -> Any:
        return project.server(external_runner="judge", plugins=plugins_with(judge=runner), **options)

    return make


@pytest.fixture
def reviewed(project):
    """A project whose first step `a` is reviewed as a whole, with the files of both steps."""
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md", "The work\n")
    project.write("b.md")
    return project


@pytest.fixture
def user_config():
    """Write the section `quality_gate` of the user's own configuration, which needs no trust."""

    def write(**gate: Any) -> None:
        file = user_config_file(os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"quality_gate": gate}))

    return write


@pytest.fixture
def many(project):
    """A project whose one step has a list of files that are reviewed one by one."""

    def make(count: int, **more: Any) -> list[str]:
        project.write_job(steps=[step("a", outputs={"parts": output("files")}, reviews=[review("parts", **more)])])
        return [project.write(f"part{number}.md", f"Part {number}\n").name for number in range(count)]

    return make


@pytest.fixture
def stored(project):
    """Read the file of a session; of the only one, if none is named."""

    def read(session_id: str | None = None) -> dict[str, Any]:
        [file] = [project.state / f"session_{session_id}.json"] if session_id else project.state.glob("session_*.json")
        return json.loads(file.read_text())

    return read


@pytest.fixture
def history(stored):
    """Return the details of the history's entries of one kind."""

    def read(kind: str, session_id: str | None = None) -> list[dict[str, Any]]:
        return [entry["detail"] for entry in stored(session_id)["history"] if entry["kind"] == kind]

    return read


@pytest.fixture
def deepwork(project):
    """Run the command `deepwork` in the project, and give what it printed; it has to end with this code."""

    async def run(*arguments: str, code: int = 0) -> str:
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(project.root)]
        process = await anyio.run_process(command, check=False, env={**os.environ})
        assert process.returncode == code, process.stderr.decode()
        return process.stdout.decode() + process.stderr.decode()

    return run


@pytest.fixture
def run(project):
    """Run the command `deepwork` in the project's folder, with stdin closed."""

    def run(*arguments, options=(), cwd=project.root, **environment):
        command = [sys.executable, *options, "-m", "deepwork", *map(str, arguments)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = {**os.environ, **environment}
        return subprocess.run(command, **pipes, text=True, timeout=240, cwd=cwd, env=env)

    return run


@pytest.fixture
def demo(project) -> DeepworkProject:
    """Write a job with single steps, groups and a review, and every output that its steps want."""
    project.write_job(
        steps=[*map(step, "abcd"), step("r", reviews=[review()]), step("none", outputs={})],
        workflows={
            "main": ["a", "b"],
            "single": ["a"],
            "long": ["a", "b", "c", "d"],
            "grouped": ["a", ["b", "c"], "d"],
            "opening": [["b", "c"], "d"],
            "last": [["b", "c"]],
            "reviewed": ["r", "a"],
            "empty": ["none", "a"],
        },
    )
    for name in "abcdr":
        project.write(f"{name}.md")
    return project


@pytest.fixture
def git(project):
    """Run git in the project as its user does, and give what it prints."""

    def git(*arguments):
        process = subprocess.run(["git", *arguments], cwd=project.root, check=True, capture_output=True, text=True)
        return process.stdout

    return git


class Ended(NamedTuple):
    """What a command that ran in this process has printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def invoke(project, monkeypatch):
    """Run a command in this process, in the project's folder; with an answer it has a terminal at which that is typed.

    A process of its own would take most of the time of a test that runs many.
    """

    def invoke(*arguments, answer=None, cwd=project.root):
        monkeypatch.chdir(cwd)
        with monkeypatch.context() as patch:
            if answer is not None:
                patch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
            result = CliRunner().invoke(main, [*map(str, arguments)], input=answer, standalone_mode=False)
        error = result.exception
        if isinstance(error, DeepWorkError):
            return Ended(1, result.stdout, f"{result.stderr}Error: {error.message}\nHint: {error.hint}\n")
        if error is not None:
            raise error
        return Ended(int(result.return_value or 0), result.stdout, result.stderr)

    return invoke


@pytest.fixture
def eventually():
    """Wait for a condition."""

    def eventually(condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "it never came to that"
            time.sleep(0.01)

    return eventually


@pytest.fixture
def start(project):
    """Start `deepwork serve` as the leader of a process group, which is gone when the test has ended."""
    started = []

    def start(*arguments, program=("-m", "deepwork"), **environment):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, *program, "serve", "--path", str(project.root), *arguments]
        env = {**os.environ, **environment}
        process = subprocess.Popen(command, text=True, start_new_session=True, env=env, **pipes)
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.kill()


@pytest.fixture
def wire(start):
    """Start `deepwork serve` on stdio."""
    return lambda *arguments, **options: StdioWire(start(*arguments, **options))


@pytest.fixture
def listen(start):
    """Start `deepwork serve` on a free port, and give the process and its address."""

    def listen(transport, *arguments, **options):
        process = start("--transport", transport, "--port", "0", *arguments, **options)
        line = process.stderr.readline()
        while "listening on" not in line:
            assert line, "the server has gone"
            line = process.stderr.readline()
        return process, re.search(r"http://\S+", line)[0]

    return listen
