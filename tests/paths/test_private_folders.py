"""Copies of work: in folders that only their owner can enter, and gone also when their server was killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from deepwork.api import NeedsWork
from deepwork.paths.private_folders import private_folder, remove_left_folders

HOLD = """
import sys
from deepwork.paths.private_folders import private_folder
with private_folder() as folder:
    (folder / "below").mkdir()
    (folder / "below/secret.txt").write_text("secret")
    (folder / "below/secret.txt").chmod(0o400)
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@contextmanager
def holding():
    """Let another process hold a private folder with a file in it."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD], **pipes, text=True) as process:
        yield process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_has_left_goes_at_the_next_start_of_a_server(temporary, project):
    with holding() as (process, folder), holding() as (_, in_use), private_folder() as own:
        process.kill()
        process.wait()
        assert (folder / "below/secret.txt").exists()
        command = [sys.executable, "-m", "deepwork", "serve", "--path", str(project.root)]
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=240)
        assert not folder.exists()
        assert (in_use / "below/secret.txt").exists()
        assert own.exists()
    assert list(temporary.iterdir()) == []


def test_nothing_that_only_looks_like_ours_is_removed(temporary):
    name = "deepwork-private-abcdefgh"
    (temporary / "deepwork-private-notes").mkdir(mode=0o700)
    (temporary / f"my-{name}").mkdir(mode=0o700)
    (temporary / name).mkdir(mode=0o755)
    (temporary / "deepwork-private-12345678").write_text("a file")
    (temporary / "mine").mkdir(mode=0o700)
    (temporary / "deepwork-private-lllllll1").symlink_to(temporary / "mine")
    if os.geteuid() == 0:
        (temporary / "deepwork-private-ofothers").mkdir(mode=0o700)
        os.chown(temporary / "deepwork-private-ofothers", 65534, 65534)
        assert re.fullmatch("deepwork-private-.{8}", "deepwork-private-ofothers")
    before = sorted(temporary.iterdir())
    remove_left_folders()
    assert sorted(temporary.iterdir()) == before


@pytest.mark.anyio
async def test_what_a_reviewer_reads_lies_in_such_a_folder(temporary, reviewed, served, judge):
    places = []

    def answer(request):
        places.append(request.files_root)
        return NeedsWork("no")

    async with reviewed.agent(served(judge(answer))) as agent:
        await agent.start("demo")
        await agent.finish({"a.md": "a.md"})
    [place] = places
    assert place.parent == temporary
    assert re.fullmatch("deepwork-private-.{8}", place.name)
    assert list(temporary.iterdir()) == []
