"""What the tests of the threats share."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest


@pytest.fixture
def serve(project):
    """Start `deepwork serve` with pipes, or with a file for stderr; it is gone when the test has ended."""
    started = []

    def serve(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **environment):
        command = [sys.executable, "-m", "deepwork", "serve", "--path", str(project.root), *arguments]
        env = {**os.environ, **environment}
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, env=env, text=True, errors="replace"
        )
        started.append(process)
        return process

    yield serve
    for process in started:
        with process:
            process.kill()


@pytest.fixture
def listen(serve):
    """Start it for HTTP, and give the process, its address, and the log until then."""

    def listen(*arguments, **environment):
        process = serve("--transport", "http", "--port", "0", *arguments, **environment)
        log = line = process.stderr.readline()
        while "listening on" not in line:
            assert line, log
            line = process.stderr.readline()
            log += line
        return process, re.search(r"http://\S+", line)[0], log

    return listen


AT_FDCWD, RENAME_EXCHANGE = -100, 2


@pytest.fixture
def swapping():
    """Swap a folder for a link, again and again, as long as the block runs; yields the number of swaps so far.

    The kernel exchanges the two names in one step: there is no moment at which nothing is there.
    """
    if sys.platform != "linux":
        pytest.skip("only Linux exchanges two names in one step")
    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2

    @contextmanager
    def swapping(folder, target):
        link = folder.with_name(f"{folder.name}.link")
        link.symlink_to(target)
        stop, swaps = threading.Event(), []

        def swap():
            while not stop.is_set():
                assert renameat2(AT_FDCWD, bytes(folder), AT_FDCWD, bytes(link), RENAME_EXCHANGE) == 0
                swaps.append(1)
                time.sleep(0.001)

        thread = threading.Thread(target=swap)
        thread.start()
        try:
            yield lambda: len(swaps)
        finally:
            stop.set()
            thread.join()

    return swapping
