"""Locks on files, which the kernel frees when their holder dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from deepwork.errors import StorageError
from deepwork.paths.locks import LOCK_SECONDS
from deepwork.testing.wire import PATIENCE

HOLD = """
import os, signal, sys, time
from deepwork.paths.folder import Folder
with Folder(os.open(sys.argv[1], os.O_RDONLY)).locked("lock", subject="the folder"):
    print("held", flush=True)
    if sys.argv[2] == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)
"""


@pytest.fixture
def hold(root):
    """Start a process that takes the lock and keeps it."""
    started = []

    def hold(how="sleep"):
        process = subprocess.Popen([sys.executable, "-c", HOLD, root, how], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()


def test_a_lock_keeps_others_out_until_it_is_given_back(folder):
    with folder.locked("lock", subject="the folder"):
        with pytest.raises(StorageError), folder.locked("lock", subject="the folder", seconds=0.05):
            pass
        with folder.locked("another", subject="the folder", seconds=0.05):
            pass
    with folder.locked("lock", subject="the folder", seconds=0):
        pass


def test_the_lock_file_is_private_and_no_link_is_followed(root, folder, outside, mode):
    with folder.locked("lock", subject="the folder"):
        assert mode(root / "lock") == 0o600
    (root / "link").symlink_to(outside / "lock")
    with pytest.raises(StorageError, match="symbolic links"), folder.locked("link", subject="the folder"):
        pass
    assert os.listdir(outside) == ["file.md"]


def test_a_lock_is_freed_when_its_holder_is_killed(folder, hold):
    holder = hold()
    with pytest.raises(StorageError), folder.locked("lock", subject="the folder", seconds=0.05):
        pass
    holder.kill()
    with folder.locked("lock", subject="the folder", seconds=PATIENCE):
        pass


def test_the_one_slow_test_a_stopped_holder_makes_others_fail_clearly_within_5_s(folder, hold):
    holder = hold("stop")
    assert LOCK_SECONDS < 5
    started = time.monotonic()
    with pytest.raises(StorageError) as error, folder.locked("lock", subject="the folder"):
        pass
    assert time.monotonic() - started >= LOCK_SECONDS
    assert error.value.message == (
        f"another process has held the lock of the folder for {LOCK_SECONDS:g} s; nothing was changed"
    )
    assert error.value.hint == "Call again; if it stays so, look for a suspended deepwork process."
    holder.send_signal(signal.SIGCONT)
