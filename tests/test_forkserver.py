"""Quick starts are like starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deepwork.testing import StdioWire
from forkserver import forked_starts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="starts are forked on Linux alone")

COMMAND = [sys.executable, "-m", "deepwork"]
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@pytest.fixture(autouse=True, scope="module")
def _forked(pytestconfig):
    if pytestconfig.getoption("starts") == "fork":
        yield
        return
    with forked_starts():
        yield


@pytest.fixture
def plugin(tmp_path):
    """A folder with a plugin whose command shows its process."""

    def write(body, module="probe_plugin"):
        folder = tmp_path / "plugins"
        info = folder / "probe-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: probe\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[deepwork]\nprobe = {module}\n")
        lines = "".join(f"        {line}\n" for line in body.splitlines())
        (folder / f"{module}.py").write_text(
            "import json, os, sys\nimport click\nfrom deepwork import hookimpl\n\n"
            f"@hookimpl\ndef deepwork_commands():\n    @click.command()\n    def probe():\n{lines}    yield probe\n"
        )
        return {**os.environ, "PYTHONPATH": str(folder)}

    return write


def was_forked(pid):
    return b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()


def children():
    return {pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


def serve(project, **options):
    command = [*COMMAND, "serve", "--path", str(project.root)]
    return subprocess.Popen(command, **PIPES, **options)


def test_a_process_is_a_child_with_its_own_pid_that_ends_by_its_input(project):
    with serve(project) as process:
        assert was_forked(process.pid)
        assert f"\nPPid:\t{os.getpid()}\n" in Path(f"/proc/{process.pid}/status").read_text()
        process.stdin.close()
        assert process.wait(100) == 0


@pytest.mark.parametrize("options", [(), ("-P",)], ids=["module", "safe path"])
def test_modules_of_the_current_folder_are_not_found(project, plugin, options):
    body = "import importlib.util\nprint('forkserver' in open('/proc/self/cmdline').read())\n"
    env = plugin(body + "print(importlib.util.find_spec('lies_here'))")
    project.write("lies_here.py", "")
    command = [sys.executable, *options, "-m", "deepwork", "probe"]
    ended = subprocess.run(command, cwd=project.root, env=env, check=True, stdout=subprocess.PIPE, timeout=100)
    assert ended.stdout.split() == [b"True", b"None"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_it_is_ended_by_signals(project, number, code):
    with serve(project) as process:
        StdioWire(process).greet()
        process.send_signal(number)
        assert process.wait(100) == code


def test_it_may_lead_a_session_of_its_own(project):
    with serve(project, start_new_session=True) as process:
        assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid
        os.killpg(process.pid, signal.SIGKILL)
    with serve(project) as process:
        assert os.getpgid(process.pid) == os.getpgid(0)
        process.kill()


def test_it_has_the_arguments_folder_variables_and_streams_that_it_was_given(plugin, tmp_path):
    environment = plugin("print(json.dumps([os.getcwd(), os.environ['PROBE'], sys.stdin.read(), sys.stdout.isatty()]))")
    result = subprocess.run(
        [*COMMAND, "probe"], env={**environment, "PROBE": "ü"}, cwd=tmp_path, input="ö", capture_output=True, text=True
    )
    assert (result.returncode, result.stdout) == (0, f'["{tmp_path}", "\\u00fc", "\\u00f6", false]\n'), result.stderr


@pytest.mark.parametrize(
    ("body", "code", "end"),
    [
        ("sys.exit(7)", 7, ""),
        ("sys.stdout.write('no newline')", 0, "no newline"),
        ("import atexit; atexit.register(print, 'last'); print('first')", 0, "first\nlast\n"),
        ("import threading, time; threading.Timer(0.05, print, ['late']).start()", 0, "late\n"),
    ],
)
def test_it_ends_as_an_interpreter_ends(plugin, body, code, end):
    forked = subprocess.run([*COMMAND, "probe"], env=plugin(body), capture_output=True, text=True)
    assert (forked.returncode, forked.stdout) == (code, end), forked.stderr


def test_a_script_finds_the_modules_beside_it(tmp_path):
    (tmp_path / "beside.py").write_text("import sys\nsaid = sys.argv\n")
    script = tmp_path / "script.py"
    script.write_text("import os, beside\nif __name__ == '__main__':\n    print(os.getpid(), *beside.said[1:])\n")
    with subprocess.Popen([sys.executable, script, "a", "b"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.read() == f"{process.pid} a b\n"


def test_a_module_in_place_of_one_that_is_imported_already_is_imported(plugin):
    environment = plugin("import click.testing; print('planted' in dir(click))")
    (Path(environment["PYTHONPATH"]) / "yaml.py").write_text("raise SystemExit('planted')\n")
    result = subprocess.run([*COMMAND, "jobs", "list"], env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (1, "planted\n")


@pytest.mark.parametrize(
    ("command", "more"),
    [
        (["-X", "utf8", "-m", "deepwork"], {}),
        (["-m", "deepwork"], {"PYTHONNODEBUGRANGES": "1"}),
        (["-m", "deepwork"], {"FASTMCP_LOG_LEVEL": "DEBUG"}),
        (["-m", "deepwork"], {"PYTHONPATH": "relative"}),
    ],
)
def test_what_python_or_a_library_reads_at_its_start_is_a_start_as_ever(project, command, more):
    words = [sys.executable, *command, "serve", "--path", str(project.root)]
    with subprocess.Popen(words, **PIPES, env={**os.environ, **more}) as process:
        assert not was_forked(process.pid)
        process.kill()


def test_python_without_arguments_is_a_start_as_ever():
    result = subprocess.run([sys.executable], input="print('read')", capture_output=True, text=True)
    assert result.stdout == "read\n"


def test_a_folder_that_is_not_there_is_the_error_of_subprocess(tmp_path):
    with pytest.raises(FileNotFoundError, match="gone"):
        subprocess.run(COMMAND, cwd=tmp_path / "gone")


def test_threads_may_start_at_once(project):
    command = [*COMMAND, "jobs", "list", "--path", str(project.root)]
    with ThreadPoolExecutor(8) as threads:
        processes = list(threads.map(lambda _: subprocess.run(command, capture_output=True, text=True), range(16)))
    assert {process.returncode for process in processes} == {0}
    assert len({process.stdout for process in processes}) == 1


@pytest.mark.slow
def test_nothing_is_left_when_tests_end():
    before = children()
    with forked_starts():
        assert subprocess.run([*COMMAND, "--version"], capture_output=True).returncode == 0
        [server] = children() - before
    assert not Path(f"/proc/{server}").exists()
