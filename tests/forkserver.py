"""Starts `python -m deepwork` and `python SCRIPT.py` by forking a process that has imported `deepwork` already.

Most of what a short command costs is its imports, and the tests start thousands of commands. With `--starts=fork`, an
option of the `conftest.py` above, each of them is forked from a process that has done the imports, and has looked up
what every server looks up. What `subprocess` gives is the same: a child of this process with its own pid, pipes,
folder, environment, signals and exit code, which ends as an interpreter ends. A start with options of Python, or with
variables that Python reads, is a start as ever, and so is every start outside Linux.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib import import_module, metadata
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, NamedTuple, NoReturn
from unittest.mock import patch

MODULE = ["-m", "deepwork"]
# As the installed command is started; without `-P` our `__main__` takes the current folder off the path itself.
SAFE_MODULE = ["-P", *MODULE]
# Python and libraries read these when they are imported.
READ_AT_IMPORT = ("PYTHON", "FASTMCP_", "PYDANTIC_", "LC_", "LANG", "LD_", "TZ", "MALLOC_")
PR_SET_CHILD_SUBREAPER = 36
LARGEST_REQUEST = 100_000
# What libraries import when they are first used.
LATE = ("anyio._backends._asyncio", "encodings.idna", "uvicorn.lifespan.on")
NOT_IMPORTED = ("__main__", "testing", "plugin_template", "examples")


class Start(NamedTuple):
    """What is different about each process."""

    command: list[str]
    folder: str
    environment: dict[str, str]
    new_session: bool


class ForkServer:
    """A process that has imported `deepwork`, and forks children for this one. It is started when it is needed."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._turn = threading.Lock()
        self._libc = ctypes.CDLL(None)

    @cached_property
    def _channel(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            module = Path(__file__)  # by its name, as a script would be forked, too
            command = [sys.executable, "-m", module.stem]
            self._process = subprocess.Popen(command, stdin=theirs.fileno(), env=self._environment, cwd=module.parent)
        return ours

    def close(self) -> None:
        """End the process."""
        if "_channel" in vars(self):
            self._channel.close()
            self._process.wait()

    def start(self, start: Start, descriptors: Sequence[int]) -> int | None:
        """Start a child of this process with these for stdin, stdout and stderr.

        Returns:
            The pid, or None if a forked process would not be like a started one.
        """
        message = json.dumps(start).encode()
        if _read_at_import(start.environment) != _read_at_import(self._environment) or len(message) > LARGEST_REQUEST:
            return None
        if not all(
            os.path.isabs(path) and os.path.isdir(path) for path in [start.folder, *_folders(start.environment)]
        ):
            return None
        with self._turn, self._adopting():
            socket.send_fds(self._channel, [message], descriptors)
            # One answer is that of the child, once it is ready, the other that of the server, once it is adopted.
            return sum(int(self._channel.recv(32)) for _ in range(2))

    @contextmanager
    def _adopting(self) -> Iterator[None]:
        """Become the parent of grandchildren whose parent ends."""
        self._libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            yield
        finally:
            self._libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@contextmanager
def forked_starts() -> Iterator[None]:
    """Make `subprocess` fork wherever it can, until the end of the block."""
    if sys.platform != "linux":
        yield
        return
    server = ForkServer()
    start_as_ever: Callable[..., int] = subprocess._fork_exec  # type: ignore[attr-defined]

    def start(*arguments: Any) -> int:
        return _fork(server, arguments) or start_as_ever(*arguments)

    try:
        # Since 3.13 `subprocess` starts most processes by `posix_spawn`, if it may.
        with patch.multiple(subprocess, _fork_exec=start, _USE_POSIX_SPAWN=False):
            yield
    finally:
        server.close()


def _fork(server: ForkServer, arguments: Sequence[Any]) -> int | None:
    """Fork a process from what `subprocess` gives to `_fork_exec`, if that can be done."""
    command, programs, close_fds, pass_fds, cwd, env = arguments[:6]
    stdin, _, _, stdout, _, stderr, _, errors = arguments[6:14]
    _, start_new_session, process_group, gid, gids, uid, umask, preexec_fn = arguments[14:22]
    python, *words = map(os.fsdecode, command)
    if python != sys.executable or [*programs] != [os.fsencode(sys.executable)]:
        return None
    if not _is_module(words) and not "".join(words[:1]).endswith(".py"):
        return None
    if (close_fds, tuple(pass_fds), process_group, umask) != (True, (errors,), -1, -1):
        return None
    if not gid is gids is uid is preexec_fn is None:
        return None
    pairs = (os.fsdecode(pair).partition("=") for pair in env or ())
    environment = dict(os.environ) if env is None else {name: value for name, _, value in pairs}
    folder = os.path.abspath(os.curdir if cwd is None else os.fsdecode(cwd))
    start = Start(words, folder, environment, start_new_session)
    return server.start(start, [own if fd == -1 else fd for own, fd in enumerate((stdin, stdout, stderr))])


def _is_module(words: Sequence[str]) -> bool:
    return words[:2] == MODULE or words[:3] == SAFE_MODULE


def _read_at_import(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environment.items() if name.startswith(READ_AT_IMPORT) and name != "PYTHONPATH"
    }


def _serve() -> list[str] | None:
    """Fork children until the tests end; in a child, return its command."""
    channel = socket.socket(fileno=os.dup(0))
    _import_everything()
    import_module("patient").be_patient()
    import_module("looked_up").look_up()
    gc.collect()
    gc.freeze()
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, LARGEST_REQUEST, 3)
        if not message:
            return None
        between = os.fork()
        if not between:
            if os.fork():
                os._exit(0)
            return _become(Start(*json.loads(message)), descriptors, channel)
        os.waitpid(between, 0)
        channel.send(b"0")
        for descriptor in descriptors:
            os.close(descriptor)


def _import_everything() -> None:
    for late in LATE:
        import_module(late)
    packages = {"deepwork", *(plugin.module.partition(".")[0] for plugin in metadata.entry_points(group="deepwork"))}
    for package in packages:
        with suppress(Exception):
            for module in walk_packages(import_module(package).__path__, f"{package}."):
                if not set(module.name.split(".")).intersection(NOT_IMPORTED):
                    import_module(module.name)


def _become(start: Start, descriptors: Sequence[int], channel: socket.socket) -> list[str]:
    """Make this process what was asked for, and say so; the process that waits for it hears of a failure by its end."""
    try:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        for descriptor in descriptors:
            os.close(descriptor)
        _open_standard_streams()
        if start.new_session:
            os.setsid()
        folders_before = _folders(os.environ)
        os.environ.clear()
        os.environ.update(start.environment)
        tempfile.tempdir = None  # it may have been looked for in the old environment
        os.chdir(start.folder)
    finally:
        channel.send(b"%d" % os.getpid())
        channel.close()
    if not _find_further_modules(start, folders_before):
        os.execv(sys.executable, [sys.executable, *start.command])
    return start.command


def _open_standard_streams() -> None:
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    streams = {
        "stdin": open(0, encoding=encoding, errors=errors, closefd=False),
        "stdout": open(1, "w", encoding=encoding, errors=errors, newline="\n", closefd=False),
        "stderr": open(2, "w", 1, encoding=encoding, errors="backslashreplace", newline="\n", closefd=False),
    }
    for name, stream in streams.items():
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _find_further_modules(start: Start, folders_before: Sequence[str]) -> bool:
    """Use the folders of PYTHONPATH, unless they have modules in place of ones that are imported already."""
    folders = _folders(start.environment)
    if folders != folders_before:
        files = {file.partition(".")[0] for folder in folders for file in os.listdir(folder)}
        if files & {"sitecustomize", "usercustomize", *sys.modules, *sys.stdlib_module_names}:
            return False
    first = start.folder if _is_module(start.command) else os.path.dirname(os.path.realpath(start.command[0]))
    sys.path[: len(folders_before) + 1] = [first, *folders]
    return True


def _folders(environment: Mapping[str, str]) -> list[str]:
    """Return the folders of PYTHONPATH."""
    path = environment.get("PYTHONPATH")
    return path.split(os.pathsep) if path else []


def _run(command: Sequence[str]) -> NoReturn:
    """Run the command, and end as the interpreter does, but without taking apart every module."""
    code: Any = 0
    try:
        if _is_module(command):
            sys.argv = [*command[command.index("-m") + 1 :]]
            runpy.run_module("deepwork", run_name="__main__", alter_sys=True)
        else:
            sys.argv = [*command]
            runpy.run_path(command[0], run_name="__main__")
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if not (code is None or isinstance(code, int)):
        sys.stderr.write(f"{code}\n")
        code = 1
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        code = 120
    os._exit(code or 0)


if __name__ == "__main__":
    with import_module("looked_up").looked_up_once():
        forked = _serve()
        if forked is not None:
            _run(forked)
