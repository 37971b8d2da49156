"""Who may listen to the events: no foreign page, and with tokens only their owners."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from deepwork.testing.wire import PATIENCE

FOREIGN = [
    ({"Host": "evil.example"}, 421),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({}, 403),
]


def upgrade(url, headers):
    """Ask for a WebSocket, and give the status of the answer."""
    address = urlsplit(url)
    lines = {
        "Host": address.netloc,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as connection:
        connection.sendall(f"GET /plugins/tracking/events HTTP/1.1\r\n{head}\r\n".encode())
        return int(connection.makefile("rb").readline().split()[1])


@pytest.fixture
def listen(project):
    """Start a server, and give its address; it is gone when the test has ended."""
    processes = []

    def listen(*options):
        command = [sys.executable, "-m", "deepwork", "serve", "--path", str(project.root), "--transport", "http"]
        process = subprocess.Popen([*command, "--port", "0", *options], stderr=subprocess.PIPE, text=True)
        processes.append(process)
        while "listening on" not in (line := process.stderr.readline()):
            assert line
        return re.search(r"http://\S+", line)[0]

    yield listen
    for process in processes:
        with process:
            process.kill()


def test_no_page_and_nobody_without_a_token_listens_to_the_events_of_a_plugin(listen, tmp_path):
    url = listen()
    assert [upgrade(url, headers) for headers, _ in FOREIGN] == [status for _, status in FOREIGN]
    own = {"Origin": f"http://{urlsplit(url).netloc}"}
    assert upgrade(url, own) == 101
    tokens = tmp_path / "tokens"
    tokens.write_text("alice alices-token-for-tests\n")
    tokens.chmod(0o600)
    url = listen("--token-file", str(tokens))
    own = {"Origin": f"http://{urlsplit(url).netloc}"}
    assert upgrade(url, own) == upgrade(url, {**own, "Authorization": "Bearer wrong"}) == 401
    assert upgrade(url, {"Authorization": "Bearer alices-token-for-tests"}) == 101
