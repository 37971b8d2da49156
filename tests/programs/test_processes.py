"""Whatever a program has started ends with it, however it tries to stay."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import anyio
import pytest

from deepwork.errors import ProgramMissing, ProgramTimeout
from deepwork.programs.processes import run_program
from deepwork.testing.wire import PATIENCE

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group is ended"),
]

# A grandchild in a session of its own, whose parents are gone and whose pipes are closed; it leaves its pid behind.
STRAY = """
import os, sys, time
def stray(depth):
    if os.fork():
        return
    os.setsid()
    if depth:
        stray(depth - 1)
        os._exit(0)
    os.closerange(0, 100)
    descriptor = os.open(PIDS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, b"%d\\n" % os.getpid())
    time.sleep(300)
    os._exit(0)
for depth in (0, 1, 2, 5):
    stray(depth)
while not os.path.exists(PIDS) or open(PIDS).read().count("\\n") < 4:
    time.sleep(0.01)
"""


@pytest.fixture
def pids(tmp_path):
    return tmp_path / "pids"


@pytest.fixture
def python(tmp_path, pids):
    """Run Python code as a program."""

    async def run(code, *, seconds=PATIENCE, environment=None, **more):
        words = [sys.executable, "-IS", "-c", f"PIDS = {str(pids)!r}\n{code}"]
        return await run_program(words, cwd=tmp_path, environment=environment or {}, seconds=seconds, **more)

    return run


def lives(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def survivors(pids):
    return [pid for pid in map(int, pids.read_text().split() if pids.exists() else []) if lives(pid)]


async def test_strays_end_with_a_program_that_ends_by_itself(python, pids):
    completed = await python(STRAY + "print('done'); sys.exit(3)")
    assert (completed.returncode, completed.stdout) == (3, b"done\n")
    assert len(pids.read_text().split()) == 4
    assert survivors(pids) == []


async def test_strays_end_with_a_program_that_takes_too_long(python, pids):
    with pytest.raises(ProgramTimeout):
        await python(STRAY + "time.sleep(300)", seconds=3)
    assert survivors(pids) == []


async def test_strays_end_with_a_program_whose_call_is_cancelled(python, pids):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(python, STRAY + "time.sleep(300)")
        while not pids.exists() or pids.read_text().count("\n") < 4:  # noqa: ASYNC110 - it is another process
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert survivors(pids) == []


def test_strays_end_with_a_server_that_is_killed(tmp_path, pids):
    server = (
        "import anyio, sys\nfrom pathlib import Path\nfrom deepwork.programs.processes import run_program\n"
        "async def main():\n"
        "    words = [sys.executable, '-IS', '-c', sys.argv[1]]\n"
        "    await run_program(words, cwd=Path('.'), environment={}, seconds=300)\n"
        "anyio.run(main)\n"
    )
    code = f"PIDS = {str(pids)!r}\n{STRAY}time.sleep(300)"
    process = subprocess.Popen([sys.executable, "-P", "-c", server, code], cwd=tmp_path)
    deadline = time.monotonic() + PATIENCE
    while not pids.exists() or pids.read_text().count("\n") < 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while survivors(pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_a_program_that_kills_its_supervisor_has_no_result_and_its_group_ends(python, pids):
    code = (
        "import os, signal, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-IS', '-c', 'import time; time.sleep(300)'])\n"
        "open(PIDS, 'w').write(f'{child.pid} {os.getpid()}')\n"
        "os.kill(os.getppid(), signal.SIGKILL)\n"
        "time.sleep(300)\n"
    )
    completed = await python(code)
    assert completed.ending == "was killed by SIGKILL"
    deadline = time.monotonic() + PATIENCE
    while survivors(pids):
        assert time.monotonic() < deadline
        await anyio.sleep(0.01)


async def test_a_program_gets_its_input_its_arguments_and_exactly_its_environment(python):
    code = "import os, sys; print(sys.stdin.read(), dict(os.environ), file=sys.stderr)"
    completed = await python(code, stdin=b"some input", environment={"A": "1", "B": "ä=\n"})
    output = completed.stderr.decode()
    assert output.startswith("some input {")
    assert "'A': '1'" in output
    assert "'B': 'ä=\\n'" in output
    assert set(re.findall(r"'(\w+)': '", output)) - {"LC_CTYPE"} == {"A", "B", "PATH"}  # Python itself may set that


async def test_stdin_stays_open_until_a_program_has_answered(python):
    """As for a server that ends when its stdin is closed, although it has not answered yet."""
    code = """
import select, sys
sys.stdin.readline()
print(select.select([sys.stdin], [], [], 1)[0] or "open", flush=True)
sys.stdin.read()
"""
    completed = await python(code, stdin=b"?\n", answered=lambda out: out.endswith(b"\n"))
    assert (completed.returncode, completed.stdout) == (0, b"open\n")


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("", "ended with code 0"),
        ("raise SystemExit(9)", "ended with code 9"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "was killed by SIGTERM"),
    ],
)
async def test_its_end_is_told_as_it_was(python, code, ending):
    for _ in range(5):
        assert (await python(code)).ending == ending


async def test_a_file_that_is_no_program_is_told(tmp_path):
    file = tmp_path.parent / f"{tmp_path.name} no program"
    file.write_bytes(b"\0\1\2")
    file.chmod(0o755)
    with pytest.raises(ProgramMissing, match="cannot be started: Exec format error"):
        await run_program([str(file)], cwd=tmp_path, environment={}, seconds=PATIENCE)


async def test_no_descriptor_is_left_open(python):
    await python("")
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        await python("")
    assert len(os.listdir("/proc/self/fd")) <= len(before)
