"""What a state store has to do when several processes use it and one of them is killed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from deepwork.api import Session, StateStore
from deepwork.testing.contracts.contract import Contract
from deepwork.testing.samples import a_session
from deepwork.testing.wire import PATIENCE

PROCESSES = 4
ENTRIES = 10
DELAYS = (0.0, 0.02, 0.1)  # a kill that always follows an acknowledgement would always hit the same place
SAVER = Path(__file__).with_name("saver.py")


class StateStoreProcessesContract(Contract):
    """Override `reopen`, with something that can be pickled: `partial(AcmeStore, url)`.

    It is called in other processes too, so what it names has to be in a module that they can import.
    """

    @pytest.fixture
    def reopen(self) -> Callable[[], StateStore]:
        """Return a function that makes a store on the data of this test, which is empty at first."""
        raise NotImplementedError("override the fixture `reopen`")

    async def test_what_one_process_saves_another_loads(self, reopen: Callable[[], StateStore]) -> None:
        async with reopen() as store:
            await store.save(a_session(), expected=None)
        with _saver(reopen, "only", 1) as process:
            await _begin(process)
            assert await _acknowledged(process) == ["only 0"]
        async with reopen() as store:
            assert _marks(await _whole(store)) == ["only 0"]

    async def test_processes_that_save_at_once_lose_nothing(self, reopen: Callable[[], StateStore]) -> None:
        """Each appends to the history by compare-and-swap; every acknowledged entry is there, in order, once."""
        async with reopen() as store:
            await store.save(a_session(), expected=None)
        acknowledged: list[str] = []

        async def collect(process: subprocess.Popen[str]) -> None:
            acknowledged.extend(await _acknowledged(process))

        with ExitStack() as stack:
            processes = [stack.enter_context(_saver(reopen, f"p{n}", ENTRIES)) for n in range(PROCESSES)]
            await _begin(*processes)
            async with anyio.create_task_group() as tasks:
                for process in processes:
                    tasks.start_soon(collect, process)
        async with reopen() as store:
            marks = _marks(await _whole(store))
        assert sorted(marks) == sorted(acknowledged)
        assert len(marks) == PROCESSES * ENTRIES
        for number in range(PROCESSES):
            mine = [mark for mark in marks if mark.startswith(f"p{number} ")]
            assert mine == [f"p{number} {entry}" for entry in range(ENTRIES)]

    async def test_a_reader_never_sees_half_a_save(self, reopen: Callable[[], StateStore]) -> None:
        async with reopen() as store:
            await store.save(a_session(), expected=None)
            with _saver(reopen, "writer", 40) as process:
                await _begin(process)
                while process.poll() is None:
                    await _whole(store)
                    await anyio.lowlevel.checkpoint()
                assert len(await _acknowledged(process)) == 40

    async def test_a_kill_loses_nothing_that_was_acknowledged(self, reopen: Callable[[], StateStore]) -> None:
        """Of a process that is killed while it saves, each save is there as a whole or not at all."""
        async with reopen() as store:
            await store.save(a_session(), expected=None)
        for turn, delay in enumerate(DELAYS):
            acknowledged = await _killed(reopen, f"turn{turn}", after=3 + 4 * turn, delay=delay)
            async with reopen() as store:
                marks = [mark for mark in _marks(await _whole(store)) if mark.startswith(f"turn{turn} ")]
            assert marks[: len(acknowledged)] == acknowledged
            assert len(marks) <= len(acknowledged) + 1, "more was stored than can have been saved"

    async def test_a_kill_locks_nobody_out(self, reopen: Callable[[], StateStore]) -> None:
        async with reopen() as store:
            await store.save(a_session(), expected=None)
        for turn, delay in enumerate(DELAYS):
            await _killed(reopen, f"turn{turn}", after=1, delay=delay)
            with anyio.fail_after(PATIENCE):
                async with reopen() as store:
                    session = await _whole(store)
                    await store.save(session, expected=session.revision)


@contextmanager
def _saver(reopen: Callable[[], StateStore], name: str, entries: int) -> Iterator[subprocess.Popen[str]]:
    """Start a process that appends entries, each acknowledged by a line; it is killed at the end, if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-P", str(SAVER), pickle.dumps(reopen).hex(), name, str(entries)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout)):
            pipe.close()


async def _begin(*processes: subprocess.Popen[str]) -> None:
    """Wait until all processes have opened their stores, and let them begin together."""
    for process in processes:
        assert process.stdout
        with anyio.fail_after(PATIENCE):
            line = await to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True)
        assert line == "ready\n", "a process could not open the store; its errors are above"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()


async def _acknowledged(process: subprocess.Popen[str]) -> list[str]:
    """Wait for the end of a process, and give its acknowledgements."""
    assert process.stdout
    with anyio.fail_after(PATIENCE):
        output = await to_thread.run_sync(process.stdout.read, abandon_on_cancel=True)
        code = await to_thread.run_sync(process.wait, abandon_on_cancel=True)
    assert code == 0, "a process that was to save has failed; its errors are above"
    return output.splitlines()


async def _killed(reopen: Callable[[], StateStore], name: str, *, after: int, delay: float) -> list[str]:
    """Start a process, kill it in the middle of its work, and give what it has acknowledged."""
    with _saver(reopen, name, 10_000) as process:
        assert process.stdout
        lines: list[str] = []
        await _begin(process)
        with anyio.fail_after(PATIENCE):
            while len(lines) < after:
                lines.append(await to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True))
                assert lines[-1], "a process that was to save has failed; its errors are above"
        await anyio.sleep(delay)
        process.send_signal(signal.SIGKILL)
        rest = await to_thread.run_sync(process.stdout.read)
        # The last line may be cut off: then it is not an acknowledgement.
        return [line.strip() for line in [*lines, *rest.splitlines(keepends=True)] if line.endswith("\n")]


async def _whole(store: StateStore) -> Session:
    session = await store.load("s1")
    assert session is not None, "session 's1' is not there"
    return session


def _marks(session: Session) -> list[str]:
    return [entry.stored["mark"] for entry in session.history if entry.kind == "mark"]
