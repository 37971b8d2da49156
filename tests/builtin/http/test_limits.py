"""What one client may cost: sizes, times and counts over HTTP, and how a server ends."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import time
from urllib.parse import urlsplit

import anyio
import pytest
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StreamableHttpTransport

from deepwork.testing.wire import PATIENCE

MIB = 1024 * 1024
MANY = 5000  # as pieces that are sent in twentieths of a second they take more than four minutes

TRANSPORTS = {"http": StreamableHttpTransport, "sse": SSETransport}


@contextlib.contextmanager
def held_up(server):
    """Hold up a server, which then finds all that was sent meanwhile: no client is too slow for its limits."""
    server.send_signal(signal.SIGSTOP)
    yield
    server.send_signal(signal.SIGCONT)


@pytest.fixture
def is_served(dial):
    """Check that a well-behaved client is served, promptly."""

    def is_served(url, server=None):
        with held_up(server) if server else contextlib.nullcontext():
            line = dial(url)
            line.ask("GET", "/custom")
        assert line.answer().status == 200
        line.socket.close()
        return True

    return is_served


def post(url, path, body):
    """Send a body, in chunks if it is an iterator, and give status and body of the answer."""
    with contextlib.closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=100)) as connection:
        connection.request("POST", path, body, encode_chunked=not isinstance(body, bytes))
        answer = connection.getresponse()
        return answer.status, answer.read()


def is_cut_off(line, pieces):
    """Send piece after piece until the other side ends the connection; False if it takes them all."""
    line.socket.settimeout(0.05)
    for piece in pieces:
        try:
            line.socket.sendall(piece)
            if line.socket.recv(100) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.parametrize("path", ["/mcp", "/custom", "/mounted/size"])
@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
def test_a_body_over_4_mib_is_refused_on_every_route(listen_with_routes, is_served, path, chunked):
    _, url = listen_with_routes("http")
    body = b"x" * (4 * MIB + 1)
    assert post(url, path, iter([body]) if chunked else body) == (
        413,
        b"Too large: a body has at most 4194304 bytes.\n",
    )
    assert is_served(url)


def test_a_body_of_4_mib_arrives_whole(listen_with_routes):
    _, url = listen_with_routes("http")
    for body in (b"x" * 4 * MIB, iter([b"x" * MIB] * 4)):
        assert post(url, "/mounted/size", body) == (200, b"4194304")


@pytest.mark.parametrize(
    "headers", [["Content-Length: 5000000000"], ["Content-Length: 10"], ["Transfer-Encoding: chunked"]]
)
def test_who_goes_on_sending_after_a_refusal_is_cut_off(listen_with_routes, dial, headers):
    process, url = listen_with_routes("http", HEADER_SECONDS=0.5, MAX_BODY=1)
    with held_up(process):
        line = dial(url)
        line.ask("POST", "/custom", *headers, body=b"2\r\nxx\r\n")
    assert line.answer().status == 413
    assert is_cut_off(line, itertools.repeat(b"1\r\nx\r\n", MANY))


@pytest.mark.parametrize("path", ["/mcp", "/custom"])
def test_a_body_that_does_not_arrive_in_time_is_refused(listen_with_routes, dial, is_served, path):
    _, url = listen_with_routes("http", BODY_SECONDS=0.3)
    lines = [dial(url) for _ in range(3)]
    lines[0].ask("POST", path, "Content-Length: 100", body=b"{")
    lines[1].ask("POST", path, "Transfer-Encoding: chunked")
    lines[2].ask("GET", path, "Content-Length: 100")
    assert is_served(url)
    for line in lines:
        answer = line.answer()
        assert (answer.status, line.body(answer)) == (408, b"Timeout: the body did not arrive in 0.3 s.\n")
        assert line.is_closed()


@pytest.mark.parametrize("began", [b"", b"GET /custom HT", b"GET /custom HTTP/1.1\r\nHost: localhost\r\nA: "])
def test_headers_that_do_not_arrive_in_time_end_the_connection(listen_with_routes, dial, is_served, began):
    process, url = listen_with_routes("http", HEADER_SECONDS=0.3)
    line = dial(url)
    line.send(began)
    assert is_served(url, process)
    assert line.is_closed()
    assert line.rest == b""


def test_headers_that_drip_end_the_connection_too(listen_with_routes, dial):
    process, url = listen_with_routes("http", HEADER_SECONDS=0.5)
    with held_up(process):
        line = dial(url)
        line.ask("GET", "/custom")
    line.body(line.answer())
    headers = b"GET /custom HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * MANY
    assert is_cut_off(line, (bytes([letter]) for letter in headers))


@pytest.mark.slow
def test_each_answer_gives_a_connection_its_whole_time_anew(listen_with_routes, dial):
    """Requests follow each other soon, for longer than one of them may take to come."""
    _, url = listen_with_routes("http", HEADER_SECONDS=20)
    line = dial(url)
    started_at = time.monotonic()
    while time.monotonic() < started_at + 21:
        line.ask("GET", "/custom")
        assert line.body(line.answer()) == b"hello"
        time.sleep(0.5)


@pytest.mark.parametrize("headers", [["A: " + "x" * 65536], [f"A{number}: {'x' * 1000}" for number in range(66)]])
def test_headers_over_64_kib_are_refused(listen_with_routes, dial, is_served, log_of, headers):
    process, url = listen_with_routes("http")
    line = dial(url)
    line.ask("GET", "/custom", *headers)
    answer = line.answer()
    assert answer is None or answer.status in (400, 431)
    assert line.is_closed()
    assert is_served(url)
    assert max(map(len, log_of(process)), default=0) <= 500


@pytest.mark.parametrize("piece", [b"x" * 1000, b"x: y\r\n" * 100], ids=["one", "many"])
def test_headers_without_end_are_refused(listen_with_routes, dial, piece):
    _, url = listen_with_routes("http")
    line = dial(url)
    line.send(b"GET /custom HTTP/1.1\r\nHost: localhost\r\n" + piece * 600)
    assert line.answer().status == 400
    assert line.is_closed()


@pytest.mark.parametrize(
    "half",
    [b"", b"GET /custom HT", b"POST /custom HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"],
    ids=["silent", "in its headers", "in its body"],
)
def test_the_oldest_of_too_many_half_open_connections_are_closed(listen_with_routes, dial, is_served, half):
    _, url = listen_with_routes("http", MAX_WAITING=8)
    first = dial(url)
    first.send(half)
    lines = []
    for _ in range(30):
        line = dial(url)
        line.send(half)
        lines.append(line)
    assert first.is_closed()
    assert is_served(url)
    still_open = 0
    for line in lines:
        line.socket.settimeout(0.02)
        try:
            assert line.is_closed()
        except TimeoutError:
            still_open += 1
    # The client that was served came last, and pushed out one more.
    assert still_open == 7


def test_a_burst_of_half_open_connections_is_bounded_at_once(listen_with_routes, is_served):
    """The server gets to know of all of them in one turn of its event loop."""
    process, url = listen_with_routes("http", MAX_WAITING=8)
    address = urlsplit(url)
    process.send_signal(signal.SIGSTOP)
    sockets = [socket.create_connection((address.hostname, address.port), timeout=0.05) for _ in range(60)]
    process.send_signal(signal.SIGCONT)
    assert is_served(url)
    still_open = 0
    for client_socket in sockets:
        with client_socket:
            try:
                assert client_socket.recv(1) == b""
            except TimeoutError:
                still_open += 1
            except ConnectionResetError:
                pass
    assert still_open == 7


def test_slow_bodies_hold_up_nobody(listen_with_routes, dial, is_served):
    """Even if there are more of them than there may be connections."""
    _, url = listen_with_routes("http", MAX_CONNECTIONS=20, MAX_WAITING=8)
    for _ in range(40):
        dial(url).ask("POST", "/custom", "Content-Length: 9")
    assert is_served(url)


def test_calls_in_flight_give_way_to_nobody(listen_with_routes, dial):
    """A connection that waits for its answer does not count as half-open."""
    _, url = listen_with_routes("http", MAX_WAITING=2)
    streams = []
    for _ in range(6):
        stream = dial(url)
        stream.ask("GET", "/endless")
        assert stream.answer().status == 200
        streams.append(stream)
    for _ in range(10):
        dial(url)
    for stream in streams:
        assert len(stream.socket.recv(1000, socket.MSG_WAITALL)) == 1000


@pytest.mark.slow
def test_a_client_that_reads_nothing_holds_up_nobody_and_is_cut_off(listen_with_routes, dial, is_served, eventually):
    _, url = listen_with_routes("http", WRITE_SECONDS=0.5, MAX_CONNECTIONS=10)
    stuck = [dial(url) for _ in range(8)]
    for line in stuck:
        line.ask("GET", "/endless")
    assert is_served(url)

    def are_gone():
        """Ask for as many again, which are too many while the others are still there."""
        with contextlib.ExitStack() as lines:
            more = [lines.enter_context(dial(url)) for _ in range(8)]
            for line in more:
                line.ask("GET", "/endless")
            return {line.answer().status for line in more} == {200}

    # They read nothing before that, or the server would go on with them.
    eventually(are_gone)
    for line in stuck:
        assert line.is_closed()


def test_over_so_many_connections_further_requests_are_told_to_come_later(listen_with_routes, dial, eventually):
    _, url = listen_with_routes("http", MAX_CONNECTIONS=5)
    streams = [dial(url) for _ in range(4)]
    for stream in streams:
        stream.ask("GET", "/endless")
        assert stream.answer().status == 200
    line = dial(url)
    line.ask("GET", "/custom")
    assert line.answer().status == 503
    assert line.is_closed()
    streams[0].socket.close()

    def is_room():
        line = dial(url)
        line.ask("GET", "/custom")
        return line.answer().status == 200

    eventually(is_room)


def masked(opcode, payload, *, fin=True):
    """Make a frame as clients send it."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else bytes([0xFF]) + size.to_bytes(8, "big")
    return bytes([opcode | (0x80 if fin else 0)]) + length + b"\0\0\0\0" + payload


@pytest.fixture
def open_socket(dial, upgrade):
    """Open a WebSocket as a page of the server does."""

    def open_socket(url, server=None):
        with held_up(server) if server else contextlib.nullcontext():
            line = dial(url)
            line.ask("GET", "/socket", *upgrade, f"Origin: http://{line.host}")
        line.status = line.answer().status
        return line

    return open_socket


def test_a_frame_of_1_mib_arrives_and_a_larger_one_ends_the_websocket(listen_with_routes, open_socket, log_of):
    process, url = listen_with_routes("http")
    line = open_socket(url)
    line.send(masked(1, b"x" * MIB))
    assert line.frame() == (1, b"1048576")
    line.send(masked(1, b"x" * (MIB + 1)))
    kind, payload = line.frame()
    assert (kind, int.from_bytes(payload[:2], "big")) == (8, 1009)
    line = open_socket(url)
    line.send(masked(1, b"x" * MIB, fin=False) + masked(0, b"x"))
    kind, payload = line.frame()
    assert (kind, int.from_bytes(payload[:2], "big")) == (8, 1009)
    assert log_of(process) == []


def test_over_so_many_websockets_further_ones_are_refused(listen_with_routes, open_socket, eventually):
    _, url = listen_with_routes("http", MAX_SOCKETS=3)
    lines = [open_socket(url) for _ in range(4)]
    assert [line.status for line in lines] == [101, 101, 101, 503]
    lines[0].send(masked(8, b"\x03\xe8"))
    assert lines[0].is_closed()
    eventually(lambda: open_socket(url).status == 101)


def test_an_open_websocket_is_not_half_open(listen_with_routes, dial, open_socket):
    process, url = listen_with_routes("http", MAX_WAITING=2, HEADER_SECONDS=0.2)
    line = open_socket(url, process)
    further_lines = [dial(url) for _ in range(10)]
    assert all(further_line.is_closed() for further_line in further_lines)
    line.send(masked(1, b"four"))
    assert line.frame() == (1, b"4")


def test_over_so_many_sessions_further_ones_are_refused_until_one_ends(listen_with_routes, dial, hello):
    _, url = listen_with_routes("http", MAX_SESSIONS=2)
    body, headers = hello

    def ask(method, *more):
        line = dial(url)
        line.ask(method, "/mcp", *headers, *more, body=body)
        return line.answer()

    sessions = [ask("POST").headers["mcp-session-id"] for _ in range(2)]
    assert ask("POST").status == 503
    assert ask("DELETE", f"Mcp-Session-Id: {sessions[0]}").status == 200
    assert ask("POST").status == 200


def test_an_idle_session_ends_and_makes_room(listen, dial, hello, eventually):
    _, url = listen("http", FASTMCP_HTTP_SESSION_IDLE_TIMEOUT="0.3")
    body, headers = hello
    line = dial(url)
    line.ask("POST", "/mcp", *headers, body=body)
    session = line.answer().headers["mcp-session-id"]

    def has_ended():
        time.sleep(1)  # each request keeps the session open for a while longer
        line = dial(url)
        line.ask("POST", "/mcp", *headers, f"Mcp-Session-Id: {session}", body=body)
        return line.answer().status == 404

    eventually(has_ended)


def test_what_clients_do_wrong_costs_a_short_line_at_most(listen_with_routes, dial, upgrade, log_of):
    broken = [
        ("POST", ["Content-Length: 100"], b"{"),
        ("POST", ["Content-Length: 3"], b'{"x'),
        ("POST", ["Content-Length: 2", "Accept: text/html"], b"{}"),
        ("POST", ["Content-Length: 2", f"Mcp-Session-Id: {'z' * 5000}"], b"{}"),
        ("POST", ["Content-Length: 2", f"MCP-Protocol-Version: {'z' * 5000}"], b"{}"),
        ("POST", ["Content-Length: 2", f"Mcp-Method: {'z' * 5000}", "MCP-Protocol-Version: 2026-07-28"], b"{}"),
        ("GET", ["Content-Length: 100"], b""),
        ("GET", ["Content-Length: -1"], b""),
        ("GET", ["Upgrade: nothing", "Connection: upgrade"], b""),
        ("GET", [*upgrade, "Origin: null"], b""),
        ("GET", [*upgrade[:2]], b""),
        ("BAD METHOD", [], b""),
        ("PUT", [], b""),
    ]
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x" * 20000}}).encode()
    broken.append(("POST", [f"Content-Length: {len(call)}"], call))
    for transport in ("http", "sse"):
        process, url = listen_with_routes(transport, BODY_SECONDS=0.05)
        paths = ["/mcp", "/custom", "/nowhere", "/messages/", f"/messages/?session_id={'0' * 32}"]
        paths += [f"/messages/?session_id={'x' * 5000}", f"/custom?{'x' * 5000}", f"/{'x' * 5000}"]
        for path in paths:
            for method, headers, body in broken:
                for waits in (True, False):
                    line = dial(url)
                    line.ask(method, path, "Content-Type: application/json", *headers, body=body)
                    if waits:
                        line.answer()
                    line.socket.close()
        lines = log_of(process)
        assert not [line for line in lines if "Traceback" in line or "ERROR" in line]
        assert max(map(len, lines), default=0) <= 500


@pytest.fixture
def pipe(tmp_path):
    """Make a named pipe that a call writes to when it has arrived."""
    path = tmp_path / "arrived"
    os.mkfifo(path)
    return path


@pytest.mark.anyio
@pytest.mark.parametrize(("transport", "mode"), [("http", "legacy"), ("http", "auto"), ("sse", "legacy")])
async def test_a_call_in_flight_is_answered_before_the_server_ends(listen_with_routes, pipe, transport, mode):
    process, url = listen_with_routes(transport, DRAIN_SECONDS=PATIENCE, END_SECONDS=PATIENCE)

    answers = []

    def end_when_it_has_arrived():
        pipe.read_text()
        process.send_signal(signal.SIGTERM)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, end_when_it_has_arrived)
        with contextlib.suppress(Exception):  # by its end the client misses the server
            async with Client(TRANSPORTS[transport](url), mode=mode) as client:
                await client.list_tools()  # or it would ask for them to check the answer
                reply = await client.call_tool("wait", {"path": str(pipe), "seconds": 0.2})
                answers.append(reply.content[0].text)
    assert answers == ["waited"]
    assert process.wait(100) == 0


def _dial_for_ever(dial, url):
    while True:
        dial(url).socket.close()
        time.sleep(0.01)


def test_while_it_ends_new_requests_are_refused_and_old_ones_answered(listen_with_routes, dial, hello, pipe, tmp_path):
    process, url = listen_with_routes("http", DRAIN_SECONDS=PATIENCE, END_SECONDS=PATIENCE)
    _, headers = hello
    release = tmp_path / "release"
    os.mkfifo(release)
    params = {"name": "wait_for", "arguments": {"path": str(pipe), "release": str(release)}}
    body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).encode()
    busy, idle, late = dial(url), dial(url), dial(url)
    idle.ask("GET", "/custom")
    assert idle.body(idle.answer()) == b"hello"
    opening = dial(url)
    opening.ask("POST", "/mcp", *headers, body=hello[0])
    session = f"Mcp-Session-Id: {opening.answer().headers['mcp-session-id']}"
    stream = dial(url)
    stream.ask("GET", "/mcp", headers[1], session)
    assert stream.answer().status == 200
    busy.ask("POST", "/mcp", *headers[:2], session, f"Content-Length: {len(body)}", body=body)
    pipe.read_text()
    process.send_signal(signal.SIGTERM)
    with pytest.raises(ConnectionRefusedError):
        _dial_for_ever(dial, url)
    for line in (idle, late):
        line.ask("GET", "/custom")
        answer = line.answer()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert line.is_closed()
    release.write_text("go on")
    assert busy.answer().status == 200
    assert busy.is_closed()
    assert b"waited" in busy.rest
    assert stream.is_closed()
    assert process.wait(100) == 0
    lines = process.stderr.read().splitlines()
    assert not [line for line in lines if "Traceback" in line or "ERROR" in line]


def test_clients_that_do_nothing_do_not_hold_up_the_end(listen_with_routes, dial, open_socket):
    process, url = listen_with_routes("http")
    dial(url)
    dial(url).send(b"GET /custom HT")
    dial(url).ask("POST", "/custom", "Content-Length: 9")
    dial(url).ask("GET", "/endless")
    assert open_socket(url).status == 101
    process.send_signal(signal.SIGTERM)
    assert process.wait(100) == 0
    assert "Traceback" not in process.stderr.read()
