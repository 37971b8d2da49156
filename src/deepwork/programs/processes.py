"""The only module that starts programs: bounded ones, which never outlive the call, and those of users."""

from __future__ import annotations

import asyncio
import errno
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from threading import Thread
from types import MappingProxyType
from typing import IO, Any

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from deepwork.errors import MountsRefused, ProgramFlood, ProgramMissing, ProgramTimeout
from deepwork.programs.private_mounts import FAILED as MOUNTS_FAILED
from deepwork.programs.private_mounts import MARK as MOUNTS_MARK
from deepwork.programs.programs import cleaned_path, find_program

MAX_OUTPUT = 16 * 1024 * 1024
# For so long a program's children may still print after it has ended.
GRACE_SECONDS = 0.5
# A supervisor gives up after five seconds; a stopped one does not end at all.
SWEEP_SECONDS = 8.0
SUPERVISOR = os.path.join(os.path.dirname(__file__), "supervisor.py")
PRIVATE_MOUNTS = os.path.join(os.path.dirname(__file__), "private_mounts.py")
_MOUNTS_MARK = MOUNTS_MARK.encode()

# What a program needs to find its files, its user's language, and a way to the network.
ENVIRONMENT = (
    *("PATH", "HOME", "USER", "LANG", "LC_*", "TMPDIR", "XDG_*"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)


@dataclass(frozen=True)
class Completed:
    """A program that has ended, and what it has printed."""

    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def ending(self) -> str:
        """How it ended, for a message: `ended with code 3`, `was killed by SIGKILL`."""
        if self.returncode >= 0:
            return f"ended with code {self.returncode}"
        try:
            return f"was killed by {signal.Signals(-self.returncode).name}"
        except ValueError:
            return f"was killed by signal {-self.returncode}"


def allowed_environment(environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables of an environment that a program may see.

    Args:
        environment: All of it, such as `PluginContext.environment`.
        more: Names beside the usual ones; `NAME*` stands for all names that begin so.
    """
    patterns = (*ENVIRONMENT, *more)
    beginnings = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
    return {name: value for name, value in environment.items() if name in patterns or name.startswith(beginnings)}


async def run_program(
    arguments: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    seconds: float,
    stdin: bytes = b"",
    answered: Callable[[bytes], bool] | None = None,
    max_output: int = MAX_OUTPUT,
    project: Path | None = None,
    supervised: bool = True,
    seen: Path | None = None,
) -> Completed:
    """Run a program to its end.

    It is looked for in PATH without the folders that are relative or lead into the project, it is run by its absolute
    path, and it sees PATH without these folders. A program that lies in the project is not run, except that of the
    environment in which this server runs.

    It gets a process group of its own and exactly this environment. However the call ends (by itself, at the limit,
    cancelled because the client has gone or the server is stopping), the whole group is killed and reaped. On Linux
    this holds for all that it has started, sessions of their own and orphans included, also when this server is killed.

    Args:
        arguments: The program and its arguments; no shell is involved.
        cwd: Where it runs.
        environment: All that it sees of the environment.
        seconds: A hard limit.
        stdin: What it can read; closed after that.
        answered: Until what it has printed is `answered`, stdin stays open, at whose end it may end unanswered.
        max_output: Bytes that it may print on each of stdout and stderr.
        project: The project, if it does not run there. The program finds its folder in DEEPWORK_PROJECT_ROOT.
        supervised: False for a program that starts no others: only its process group is killed, and no supervisor is
            started for it, which takes some 20 ms.
        seen: A folder of changes that the program sees in its project, which stays as it is: what it writes there goes
            with it. `programs/private_mounts.py` says what is in the folder. Linux only.

    Raises:
        MountsRefused: It can see no changes here; it was not run.
        ProgramMissing: It cannot be started, or lies in the project.
        ProgramTimeout: The limit was reached.
        ProgramFlood: It printed too much.
    """
    name, folder = arguments[0], project or cwd
    command, variables = _found(arguments, environment, folder)
    if seen:
        command = _seeing(seen, folder, command)
    if project:
        variables["DEEPWORK_PROJECT_ROOT"] = str(project)
    program = await _started(name, _start(command, cwd, variables, supervised=supervised))
    try:
        with anyio.fail_after(seconds):
            await program.started(name)
            completed = await _communicate(program, stdin, answered, max_output)
            if seen and completed.returncode == MOUNTS_FAILED and completed.stderr.startswith(_MOUNTS_MARK):
                raise MountsRefused(completed.stderr.decode("utf-8", "backslashreplace").strip())
            return completed
    except TimeoutError:
        raise ProgramTimeout(f"{name!r} did not end within {seconds:g} s and was killed") from None
    except _Flood:
        raise ProgramFlood(f"{name!r} printed more than {max_output:,} bytes and was killed") from None
    finally:
        with anyio.CancelScope(shield=True):
            await _end(program)


def _seeing(seen: Path, project: Path, command: Sequence[str]) -> list[str]:
    if sys.platform != "linux":
        raise MountsRefused("there are no private mounts on this system")
    mounts = [sys.executable, "-I", "-S", PRIVATE_MOUNTS, str(project), str(seen / "mount"), str(seen)]
    return [*mounts, *command]


@asynccontextmanager
async def running_program(
    arguments: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: bytes = b"",
    project: Path | None = None,
) -> AsyncIterator[RunningProgram]:
    """Run a program that prints lines for a long time. However the block ends, so does the program.

    Everything that `run_program` says about where a program is found, and what becomes of all that it has started,
    holds here too.

    Args:
        arguments: The program and its arguments; no shell is involved.
        cwd: Where it runs.
        environment: All that it sees of the environment.
        stdin: What it can read.
        project: The project, if it does not run there.

    Raises:
        ProgramMissing: It cannot be started, or lies in the project.
    """
    command, variables = _found(arguments, environment, project or cwd)
    # Files have no reader that could hang, and the program's output cannot fill them unwatched.
    with TemporaryFile() as given, TemporaryFile() as errors:
        given.write(stdin)
        given.seek(0)
        pipes = {"stdin": given, "stdout": PIPE, "stderr": errors}
        program = await _started(arguments[0], _start(command, cwd, variables, supervised=True, pipes=pipes))
        running: RunningProgram | None = None
        try:
            await program.started(arguments[0])
            running = RunningProgram(program, errors)
            yield running
        finally:
            if running is not None:
                running.close()
            with anyio.CancelScope(shield=True):
                await _end(program)


def _found(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return a command with the absolute path of its program, and the variables that it sees.

    Raises:
        ProgramMissing: It is not there, or lies in the project.
    """
    command = [find_program(arguments[0], environment, folder), *arguments[1:]]
    return command, {**environment, "PATH": cleaned_path(environment, folder)}


async def _started(name: str, start: Coroutine[Any, Any, _Program]) -> _Program:
    """Start a program. A cancellation meanwhile would leave it running, so it waits until the caller can end it.

    Raises:
        ProgramMissing: It cannot be started.
    """
    try:
        with anyio.CancelScope(shield=True):
            program = await start
    except (OSError, ValueError) as error:
        raise _not_started(name, error) from error
    return program


# A program that goes on when this process ends.
ApartProgram = Popen[bytes]


def start_apart(arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], output: int) -> ApartProgram:
    """Start a program, by its absolute path, that goes on when this process ends. It prints to the descriptor `output`.

    Raises:
        ProgramMissing: It cannot be started.
    """
    pipes: dict[str, Any] = {"stdin": DEVNULL, "stdout": output, "stderr": output}
    try:
        process = Popen(arguments, **pipes, cwd=cwd, env=environment, start_new_session=True)
    except (OSError, ValueError) as error:
        raise _not_started(arguments[0], error) from error
    Thread(target=process.wait, daemon=True).start()  # reaps it whenever it ends
    return process


def open_browser(address: str, *, project: Path, environment: Mapping[str, str]) -> bool:
    """Open an address in the user's browser, which runs on by itself; False if none can be started.

    The browser is a command of the variable BROWSER, where `%s` stands for the address, else that of the desktop. Like
    every program it is never one of the project, and it sees no folder of the project in PATH.

    Args:
        address: What is opened.
        project: The project, whose programs are not run.
        environment: Where PATH and BROWSER are read; the browser gets the rest of it.
    """
    # `xdg-open` reads BROWSER too, and would run a program of the project that was refused here.
    variables = {name: value for name, value in environment.items() if name != "BROWSER"}
    variables["PATH"] = cleaned_path(environment, project)
    for words in _browsers(environment):
        arguments = [word.replace("%s", address) for word in words]
        arguments += [] if arguments != words else [address]
        with suppress(ProgramMissing, OSError, ValueError):
            command = [find_program(arguments[0], environment, project), *arguments[1:]]
            start_apart(command, cwd=Path("/"), environment=variables, output=DEVNULL)
            return True
    return False


def _browsers(environment: Mapping[str, str]) -> Iterator[list[str]]:
    """List the commands that may open an address, in the order in which they are tried."""
    for command in environment.get("BROWSER", "").split(os.pathsep):
        with suppress(ValueError):  # a quote that is not closed
            if words := shlex.split(command.removesuffix("&")):
                yield words
    if sys.platform == "darwin":
        yield ["open"]
    elif any(map(environment.get, ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"))):
        # Without a display they would start a browser in the terminal, where the server's log is.
        yield from (["wslview"], ["xdg-open"], ["x-www-browser"])


class RunningProgram:
    """A program that runs in a block of `running_program`."""

    def __init__(self, program: _Program, errors: IO[bytes]) -> None:
        self._program = program
        self._errors = errors
        self._ending = asyncio.ensure_future(program.wait())

    def interrupt(self) -> None:
        """Ask the program to come to an end, as Ctrl-C does."""
        if not self._ending.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._program.pid or self._program.process.pid, signal.SIGINT)

    async def lines(self, limit: int = MAX_OUTPUT, stop: anyio.Event | None = None) -> AsyncIterator[bytes]:
        """Return each line that the program prints, until it has ended; a line above the limit is left out.

        Args:
            limit: Bytes of a line.
            stop: Once it is set, the program is asked to come to an end.
        """
        stopping = asyncio.ensure_future(stop.wait()) if stop else None
        reading: asyncio.Future[bytes] | None = None
        pending, is_too_long = bytearray(), False
        try:
            while True:
                reading = reading or asyncio.ensure_future(self._chunk())
                awaited: list[asyncio.Future[Any]] = [reading]
                awaited += [task for task in (self._ending, stopping) if task and not task.done()]
                # A child that outlives the program may hold its output open for ever.
                patience = GRACE_SECONDS if self._ending.done() else None
                finished, _ = await asyncio.wait(awaited, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                if stopping in finished:
                    stopping = None
                    self.interrupt()
                if reading in finished:
                    chunk, reading = reading.result(), None
                    if not chunk:
                        break
                    *whole, rest = chunk.split(b"\n")
                    for part in whole:
                        if not is_too_long and len(pending) + len(part) <= limit:
                            yield bytes(pending + part)
                        pending, is_too_long = bytearray(), False
                    is_too_long = is_too_long or len(pending) + len(rest) > limit
                    pending = bytearray() if is_too_long else pending + rest
                elif not finished:
                    break
            if pending:
                yield bytes(pending)
        finally:
            for task in (reading, stopping):
                if task:
                    task.cancel()

    async def ended(self) -> int:
        """Wait until the program has ended, and return its exit code, negative for a signal."""
        return await asyncio.shield(self._ending)

    def errors(self, limit: int = 64 * 1024) -> bytes:
        """Return the end of what the program has printed on stderr."""
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), limit, max(0, size - limit))

    def close(self) -> None:
        """Wait for its end no longer."""
        self._ending.cancel()

    async def _chunk(self) -> bytes:
        try:
            return await self._program.process.stdout.receive() if self._program.process.stdout else b""
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return b""


class _Flood(Exception):
    pass


@dataclass
class _Program:
    """A program that runs, by itself or below a supervisor that says on `status` what becomes of it."""

    process: Process
    status: int | None = None
    pid: int | None = None
    has_ended: bool = False
    _unread: bytearray = field(default_factory=bytearray)

    async def started(self, name: str) -> None:
        """Wait until it runs.

        Raises:
            ProgramMissing: The supervisor could not start it.
        """
        if self.status is not None:
            word, number = await self._line() or ("errno", errno.ECHILD)
            if word == "errno":
                raise _not_started(name, OSError(number, os.strerror(number)))
            self.pid = number

    async def wait(self) -> int:
        """Wait until it ends, and give its exit code; of a supervisor that was killed nothing more is known."""
        if self.status is None:
            return await self.process.wait()
        line = await self._line()
        self.has_ended = True
        return os.waitstatus_to_exitcode(line[1]) if line else -signal.SIGKILL

    async def end(self) -> None:
        """Kill what still runs, and reap it."""
        with suppress(ProcessLookupError, PermissionError):
            if self.status is None:
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.terminate()
                if self.pid is not None and not self.has_ended:
                    # At once, for the server may have no time left to wait for the supervisor.
                    os.killpg(self.pid, signal.SIGKILL)
        with anyio.move_on_after(SWEEP_SECONDS) as patience:
            await self.process.wait()
        if patience.cancelled_caught:
            self.process.kill()
            await self.process.wait()
        if self.status is not None:
            if self.process.returncode:  # a supervisor that was killed has swept nothing
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid or self.process.pid, signal.SIGKILL)
            os.close(self.status)
            self.status = None

    async def _line(self) -> tuple[str, int] | None:
        """Read a line of the supervisor; None if it has ended without one."""
        while self.status is not None and b"\n" not in self._unread:
            await anyio.wait_readable(self.status)
            chunk = os.read(self.status, 100)
            if not chunk:
                return None
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        word, number = line.decode().split()
        return word, int(number)


async def _start(
    command: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str],
    *,
    supervised: bool,
    pipes: Mapping[str, Any] = MappingProxyType({"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}),
) -> _Program:
    options: dict[str, Any] = {**pipes, "cwd": cwd, "env": variables, "start_new_session": True}
    if not supervised or sys.platform != "linux":
        return _Program(await anyio.open_process(command, **options))
    status, writer = os.pipe()
    try:
        supervisor = [sys.executable, "-I", "-S", SUPERVISOR, str(writer), str(os.getpid()), *command]
        return _Program(await anyio.open_process(supervisor, pass_fds=[writer], **options), status)
    except BaseException:
        os.close(status)
        raise
    finally:
        os.close(writer)


def _not_started(name: str, error: OSError | ValueError) -> ProgramMissing:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return ProgramMissing(f"{name!r} cannot be started: {reason}")


async def _communicate(
    program: _Program, stdin: bytes, answered: Callable[[bytes], bool] | None, max_output: int
) -> Completed:
    process = program.process
    out, err = bytearray(), bytearray()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_feed, process.stdin, stdin, lambda: answered is None or answered(bytes(out)))
            tasks.start_soon(_collect, process.stdout, out, max_output)
            tasks.start_soon(_collect, process.stderr, err, max_output)
            returncode = await program.wait()
            # A child that outlives the program may hold the pipes open for ever.
            tasks.cancel_scope.deadline = anyio.current_time() + GRACE_SECONDS
    except* _Flood:
        raise _Flood from None
    return Completed(returncode, bytes(out), bytes(err))


async def _feed(stream: ByteSendStream | None, content: bytes, is_answered: Callable[[], bool]) -> None:
    if stream is None:
        return
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await stream.send(content)
    while not is_answered():  # noqa: ASYNC110 - another task collects what it looks at
        await anyio.sleep(0.02)
    with suppress(OSError):
        await stream.aclose()


async def _collect(stream: ByteReceiveStream | None, into: bytearray, limit: int) -> None:
    if stream is None:
        return
    with suppress(anyio.ClosedResourceError):
        async for chunk in stream:
            into += chunk
            if len(into) > limit:
                raise _Flood


async def _end(program: _Program) -> None:
    """Kill what still runs, reap the program, and close the pipes."""
    await program.end()
    process = program.process
    # asyncio sees that the pipes are closed only once they have been read to their end.
    with anyio.move_on_after(GRACE_SECONDS):
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                with suppress(anyio.ClosedResourceError):
                    async for _ in pipe:
                        pass
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError, anyio.BrokenResourceError):
                await stream.aclose()
