"""Goes every way to install, in a home that has nothing: to the first step that an agent is refused, and back.

    python tools/routes.py                      every route once
    python tools/routes.py wheels claude --times 10

The libraries come from a folder of wheels, which is filled once: no route needs the network. Printed are, for each
route, how often it came through, seconds to the refusal (and of the processor, at which load), commands that a user
types, bytes of the home without caches, what was written outside of clients, tools and projects, and what is left after
uninstalling. Routes whose program (uv, pipx, claude, codex) is missing are named.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from deepwork import __version__

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "clients"))
from claude_desk import RecordingModel  # noqa: E402
from environment import projects  # noqa: E402
from install import project_folders  # noqa: E402
from scripted_models import ForgetfulModel  # noqa: E402

START = {"goal": "newcomers", "job_name": "project_tour", "workflow_name": "write_tour"}
REPORT = {"outputs": {"notes": "notes.md"}}
REFUSED = "file not found at 'notes.md'"
GOAL_SECONDS, GOAL_COMMANDS, SECONDS = 60, 2, 600
# Whose these folders are: installers' caches and tools, and what clients keep.
OF_OTHERS = (
    ".cache",
    ".config/uv",
    ".npm",
    ".claude",
    ".claude.json",
    ".codex",
    ".gitconfig",
    ".local/share/uv",
    ".local/share/pipx",
    ".local/state/pipx",
)
OURS = (".local/share/deepwork", ".local/bin/deepwork")
STATE = ".local/state/deepwork"
PR_SET_CHILD_SUBREAPER = 36


class Failed(Exception):
    """Why a route did not lead to a refused step."""


@dataclass
class Home:
    """A home and a project that have nothing, and a clone of this repository."""

    folder: Path
    clone: Path
    mirror: Path
    programs: dict[str, str]
    with_uv: bool = True
    typed: int = 0
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("home", "project", "programs"):
            (self.folder / name).mkdir()
        # Not in a variable: neither clients nor `connect` hand those on to servers.
        settings = self.home / ".config/uv/uv.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f"no-index = true\nfind-links = [{str(self.mirror)!r}]\n")
        for name, program in self.programs.items():
            if self.with_uv or not name.startswith("uv"):
                (self.folder / "programs" / name).symlink_to(program)
        self.run("git", "init", "--quiet", typed=False)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def environment(self) -> dict[str, str]:
        path = [self.home / ".local/bin", self.folder / "programs", "/usr/bin", "/bin"]
        links = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.mirror)}
        uv = {"UV_PYTHON_DOWNLOADS": "never", "UV_LINK_MODE": "copy"}
        return {
            "HOME": str(self.home),
            "PATH": os.pathsep.join(map(str, path)),
            "TMPDIR": tempfile.gettempdir(),
            **links,
            **uv,
            **self.variables,
        }

    def run(self, *command: str, typed: bool = True) -> str:
        """Run a command in the project; one that a user types counts."""
        self.typed += typed
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            raise Failed(f"`{' '.join(command)[:90]}` ended with {done.returncode}: {done.stdout[-600:]}")
        return done.stdout

    def place(self) -> str:
        """Return how the wheels are named to an installer."""
        return f"deepwork[all] @ {(self.clone / 'dist').as_uri()}/deepwork-{__version__}-py3-none-any.whl"

    def files(self, *besides: str) -> list[str]:
        """Return the files of the home, without what belongs to others."""
        names = (str(path.relative_to(self.home)) for path in self.home.rglob("*") if not path.is_dir())
        left_out = (*OF_OTHERS, *besides)
        return sorted(name for name in names if not any(name == own or name.startswith(f"{own}/") for own in left_out))

    def size(self) -> int:
        """Return the bytes of the home, without caches."""
        files = (path for path in self.home.rglob("*") if path.is_file() and not path.is_symlink())
        return sum(path.stat().st_size for path in files if ".cache" not in path.parts)


def checkout(home: Home) -> Iterator[None]:
    """`make install`, `deepwork init`."""
    home.run("make", "-C", str(home.clone), "install")
    yield from _connected(home, "deepwork", "init", "--client", "claude")
    home.run("make", "-C", str(home.clone), "uninstall", "DATA=1")


def wheels(home: Home) -> Iterator[None]:
    """`uv tool install`, `deepwork init`."""
    home.run("uv", "tool", "install", home.place())
    yield from _connected(home, "deepwork", "init", "--client", "claude")
    home.run("deepwork", "uninstall", "--data")
    home.run("uv", "tool", "uninstall", "deepwork")


def pipx(home: Home) -> Iterator[None]:
    """`pipx install`, `deepwork init`."""
    home.run("pipx", "install", home.place())
    yield from _connected(home, "deepwork", "init", "--client", "claude")
    home.run("deepwork", "uninstall", "--data")
    home.run("pipx", "uninstall", "deepwork")


def uvx(home: Home) -> Iterator[None]:
    """`deepwork init --transient`, which uvx runs."""
    deepwork = ("uvx", "--from", home.place(), "deepwork")
    yield from _connected(home, *deepwork, "init", "--client", "claude", "--transient")
    home.run(*deepwork, "uninstall", "--data")


def _connected(home: Home, *init: str) -> Iterator[None]:
    """Prepare the project, and have the server refuse a step as the entry that was written starts it."""
    home.run(*init)
    [entry] = json.loads((home.project / ".mcp.json").read_text())["mcpServers"].values()
    anyio.run(_refused, home, entry)
    yield


async def _refused(home: Home, entry: dict[str, object]) -> None:
    words = [str(entry["command"]), *map(str, entry["args"])]  # type: ignore[call-overload]
    transport = StdioTransport(words[0], words[1:], env=home.environment, cwd=str(home.project), keep_alive=False)
    async with Client(transport) as client:
        await client.call_tool("start_workflow", START)
        result = await client.call_tool("finished_step", REPORT, raise_on_error=False)
    if REFUSED not in str(result.content):
        raise Failed(f"the step was not refused: {result.content}")


def claude(home: Home) -> Iterator[None]:
    """Two commands of Claude Code; then the real one works, with a scripted model."""
    home.run("claude", "plugin", "marketplace", "add", str(home.clone))
    home.run("claude", "plugin", "install", "deepwork@deepwork")
    model = RecordingModel()
    tool = "mcp__plugin_deepwork_deepwork__"
    model.turns.put({"id": "toolu_start", "tool": f"{tool}start_workflow", "input": START})
    model.turns.put({"id": "toolu_report", "tool": f"{tool}finished_step", "input": REPORT})
    # Without a terminal it would work before its servers are there.
    patience = {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "300000", "MCP_TIMEOUT": "300000"}
    home.variables |= {"ANTHROPIC_API_KEY": "stub", "ANTHROPIC_BASE_URL": model.url, **patience}
    try:
        home.run("claude", "-p", "--allowedTools", "mcp__plugin_deepwork_deepwork", "--", "Go", typed=False)
    finally:
        model.close()
    if REFUSED not in json.dumps(model.results.get("toolu_report")):
        raise Failed(f"the step was not refused: {model.results}")
    if not model.reminders:
        raise Failed("the agent stopped at an open step, and no hook reminded it")
    yield
    [deepwork] = home.home.glob(".claude/plugins/data/*/*/bin/deepwork")
    home.run(str(deepwork), "uninstall", "--data")
    home.run("claude", "plugin", "uninstall", "deepwork@deepwork")
    home.run("claude", "plugin", "marketplace", "remove", "deepwork")


def codex(home: Home) -> Iterator[None]:
    """Two commands of Codex; then the real one works, with a scripted model."""
    home.run("codex", "plugin", "marketplace", "add", str(home.clone))
    home.run("codex", "plugin", "add", "deepwork@deepwork")
    model = ForgetfulModel([("start_workflow", START), ("finished_step", REPORT)])
    provider = f'{{name="x", base_url="{model.url}/v1", wire_api="responses", env_key="SCRIPTED_KEY"}}'
    settings = ['model="scripted"', 'model_provider="x"', f"model_providers.x={provider}"]
    options = [word for setting in settings for word in ("-c", setting)]
    trust = ["--skip-git-repo-check", "--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"]
    home.variables |= {"SCRIPTED_KEY": "stub"}
    try:
        home.run("codex", "exec", *trust, *options, "Go", typed=False)
    finally:
        model.close()
    if REFUSED not in json.dumps(model.requests[-1:]):
        raise Failed(f"the step was not refused: {json.dumps(model.requests[-1:])[-600:]}")
    if not model.reminders:
        raise Failed("the agent stopped at an open step, and no hook reminded it")
    yield
    [deepwork] = home.home.glob(".codex/plugins/data/*/*/bin/deepwork")
    home.run(str(deepwork), "uninstall", "--data")
    home.run("codex", "plugin", "remove", "deepwork@deepwork")
    home.run("codex", "plugin", "marketplace", "remove", "deepwork")


ROUTES: dict[str, tuple[Callable[[Home], Iterator[None]], tuple[str, ...]]] = {
    "checkout": (checkout, ("uv",)),
    "checkout-pip": (checkout, ()),
    "wheels": (wheels, ("uv",)),
    "pipx": (pipx, ("pipx",)),
    "uvx": (uvx, ("uvx",)),
    "claude": (claude, ("claude", "uv")),
    "codex": (codex, ("codex", "uv")),
}


@dataclass(frozen=True)
class Trip:
    """What one trip has come to."""

    seconds: float
    processor: float
    load: float
    commands: int
    size: int
    outside: list[str]
    left: list[str]


def travel(route: str, home: Home) -> Trip:
    """Go one route to the refusal, and back."""
    steps = ROUTES[route][0](home)
    began, before = time.monotonic(), processor_seconds()
    next(steps)
    seconds, processor = time.monotonic() - began, processor_seconds() - before
    load, commands, size = os.getloadavg()[0], home.typed, home.size()
    outside = home.files(STATE, *OURS)
    next(steps, None)
    return Trip(seconds, processor, load, commands, size, outside, home.files())


def adopt_orphans() -> None:
    """Have this process wait for what its children leave behind: Codex ends without waiting for its servers."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def processor_seconds() -> float:
    """Return what all programs that have ended have taken of the processor."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fill(mirror: Path) -> None:
    """Download every library that the distributions and their build need, once for what they declare."""
    declared = "".join((folder / "pyproject.toml").read_text() for folder in project_folders())
    with (mirror / "declared").open("a+") as note:
        fcntl.flock(note, fcntl.LOCK_EX)  # several tests may come at once
        note.seek(0)
        if note.read() != declared:
            download(mirror)
            note.truncate(0)
            note.write(declared)
    size = sum(file.stat().st_size for file in mirror.glob("*.*"))
    print(f"mirror: {len(list(mirror.glob('*.*')))} files, {size:,} bytes")


def download(mirror: Path) -> None:
    """Download what is not in the mirror yet, but nothing of ours."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--dest", str(mirror), "hatchling>=1.27", *projects()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stderr}Error: the libraries could not be downloaded")
    for file in mirror.glob("deepwork*"):
        file.unlink()


def prepare(folder: Path) -> Path:
    """Clone this repository, uncommitted changes left out, and build its wheels."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    for project in project_folders(clone):
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(clone / "dist")]
        subprocess.run(build, cwd=project, check=True, capture_output=True)
    return clone


def find_programs(path: str) -> dict[str, str]:
    """Return the programs of users that are there, and a python3 that is no virtual environment's."""
    found = {name: shutil.which(name, path=path) for name in ("uv", "uvx", "pipx", "claude", "codex", "node")}
    python = Path(sys.base_prefix) / "bin" / "python3"
    return {"python3": str(python), **{name: program for name, program in found.items() if program}}


def main() -> int:
    """Go the routes, and print what each came to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("routes", nargs="*", choices=[[], *ROUTES], help="default: all")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--mirror", type=Path, default=ROOT / ".mirror", help="the wheels (default: %(default)s)")
    options = parser.parse_args()
    options.mirror.mkdir(exist_ok=True)
    fill(options.mirror)
    adopt_orphans()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    programs = find_programs(path)
    failures = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        clone = prepare(Path(folder))
        for route in options.routes or ROUTES:
            if missing := [name for name in ROUTES[route][1] if name not in programs]:
                print(f"{route:13} not gone: {', '.join(missing)} is missing")
                continue
            failures += not report(route, options.times, Path(folder), clone, options.mirror, programs)
    return int(failures > 0)


def report(route: str, times: int, folder: Path, clone: Path, mirror: Path, programs: dict[str, str]) -> bool:
    """Go one route some times, print a line, and tell whether all came through and left nothing."""
    trips, errors = [], []
    for number in range(times):
        with tempfile.TemporaryDirectory(prefix=f"{route}-{number}-", dir=folder, ignore_cleanup_errors=True) as root:
            try:
                home = Home(Path(root), clone, mirror, programs, with_uv=route != "checkout-pip")
                trips.append(travel(route, home))
            except (Failed, subprocess.SubprocessError, OSError, ValueError) as error:
                errors.append(f"{type(error).__name__}: {error}")
    line = f"{route:13} {len(trips)} of {times}"
    if trips:
        seconds, loads = [trip.seconds for trip in trips], [trip.load for trip in trips]
        reached = max(seconds) <= GOAL_SECONDS and trips[0].commands <= GOAL_COMMANDS
        line += (
            f"; {statistics.median(seconds):.1f} s (at most {max(seconds):.1f}){'' if reached else ', goal missed'}; "
            f"{statistics.median(trip.processor for trip in trips):.1f} s of the processor, "
            f"load {statistics.median(loads):.1f} (at most {max(loads):.1f}); "
            f"{trips[0].commands} commands; "
            f"{trips[0].size:,} bytes; outside: {_names(trip.outside for trip in trips)}; "
            f"left: {_names(trip.left for trip in trips)}"
        )
    print(line, *errors[:2], sep="\n  ", flush=True)
    return not errors and not any(trip.outside or trip.left for trip in trips)


def _names(files: Iterable[list[str]]) -> str:
    return ", ".join(sorted({name for names in files for name in names})) or "nothing"


if __name__ == "__main__":
    sys.exit(main())
