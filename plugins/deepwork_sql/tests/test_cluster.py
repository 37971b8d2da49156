"""The private PostgreSQL of tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deepwork.testing.wire import PATIENCE


@pytest.mark.slow
def test_a_test_process_that_is_killed_leaves_no_postgresql_and_no_folder(postgres_server):
    code = (
        "import time\nfrom deepwork_sql.cluster import running_cluster\n"
        "with running_cluster() as cluster:\n    print(cluster.url, cluster.folder, flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        url, folder = process.stdout.readline().split()
        os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while Path(folder).exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    parts = urlsplit(url)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((parts.hostname, parts.port))
    assert not Path(folder).exists()
