"""A program that sees a project otherwise than it is, as root and as any user."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepwork.errors import MountsRefused
from deepwork.paths.private_folders import remove_left_folders
from deepwork.programs.private_mounts import MARK
from deepwork.programs.processes import PRIVATE_MOUNTS, run_program
from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio

NOBODY = 65534


def has_private_mounts():
    return sys.platform == "linux" and not subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode


with_private_mounts = pytest.mark.skipif(not has_private_mounts(), reason="this system makes no private mounts")


@pytest.fixture
def places(tmp_path):
    """A project with a file, and a folder of changes of it."""
    project, changes = tmp_path / "project: a,b\\c", tmp_path / "changes"
    (project / "docs").mkdir(parents=True)
    (project / "docs/a.md").write_text("honest\n")
    (project / "b.md").write_text("stays\n")
    (changes / "files/docs").mkdir(parents=True)
    (changes / "mount").mkdir()
    (changes / "files/docs/a.md").write_text("broken\n")
    (changes / "missing").write_text("b.md")
    return project, changes


SCRIPT = "cat docs/a.md; ls; echo new > written; rm -r docs; pwd"


def mounts():
    return Path("/proc/self/mountinfo").read_text()


@with_private_mounts
async def test_it_sees_the_changes_and_writes_none(places):
    project, changes = places
    completed = await run_program(
        ["sh", "-c", SCRIPT], cwd=project, environment={"PATH": os.environ["PATH"]}, seconds=PATIENCE, seen=changes
    )
    assert completed.stdout.decode().splitlines() == ["broken", "docs", str(project)]
    assert sorted(file.name for file in project.rglob("*")) == ["a.md", "b.md", "docs"]
    assert (project / "docs/a.md").read_text() == "honest\n"
    assert str(changes) not in mounts()


@with_private_mounts
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_without_rights_sees_them_too(places):
    project, changes = places
    for folder in (project.parent, *project.parents):
        if folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    for root in (project, changes):
        for file in (root, *root.rglob("*")):
            os.chown(file, NOBODY, NOBODY)
    script = shutil.copy(PRIVATE_MOUNTS, changes / "private_mounts.py")
    os.chmod(script, 0o644)
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or pytest.skip("no Python that others may run")
    command = [python, "-I", "-S", script, str(project), str(changes / "mount"), str(changes)]
    ended = subprocess.run(
        [*command, "/bin/sh", "-c", f"{SCRIPT}; id -u"],
        cwd=project, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.stdout.splitlines() == ["broken", "docs", str(project), str(NOBODY)], ended.stderr
    assert (project / "docs/a.md").read_text() == "honest\n"


async def test_where_it_cannot_be_the_program_does_not_run(places):
    project, changes = places
    (changes / "mount").rmdir()
    with pytest.raises(MountsRefused, match=MARK if sys.platform == "linux" else "no private mounts"):
        await run_program(
            ["touch", "ran"], cwd=project, environment={"PATH": os.environ["PATH"]}, seconds=PATIENCE, seen=changes
        )
    assert not (project / "ran").exists()


def running(word):
    numbers = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (folder / "cmdline").read_bytes():
                numbers.append(folder.name)
        except OSError:
            continue
    return numbers


@with_private_mounts
def test_what_a_killed_server_leaves_goes_by_itself_and_with_the_next(places, monkeypatch):
    project, _ = places
    temporary = project.parent / "t"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    word = f"marked-{os.getpid()}"
    code = f"""
import anyio, sys
from pathlib import Path
from deepwork.paths.private_folders import private_folder
from deepwork.programs.processes import run_program
async def main():
    with private_folder() as changes:
        for name in ("mount", "files"):
            (changes / name).mkdir(mode=0o700)
        (changes / "missing").write_text("b.md")
        script = "test ! -e b.md && touch started; sleep 600; : {word}"
        environment = {{"PATH": "/usr/bin:/bin"}}
        project = Path({str(project)!r})
        await run_program(["sh", "-c", script], cwd=project, environment=environment, seconds=600, seen=changes)
anyio.run(main)
"""
    server = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(temporary)})
    while not any("sleep" in Path(f"/proc/{pid}/cmdline").read_text() for pid in running(word)):
        assert server.poll() is None
        time.sleep(0.02)
    server.send_signal(signal.SIGKILL)
    server.wait()
    end = time.monotonic() + PATIENCE
    while running(word):
        assert time.monotonic() < end, "a process is left"
        time.sleep(0.02)
    assert str(temporary) not in mounts()
    remove_left_folders()
    assert [*temporary.iterdir()] == []
    assert sorted(file.name for file in project.rglob("*")) == ["a.md", "b.md", "docs"]
