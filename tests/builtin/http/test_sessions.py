"""What a principal has a share of: sessions, event streams, calls and WebSockets. And events that are not kept."""

from __future__ import annotations

import contextlib

ALICE, BOB = (f"Authorization: Bearer {name}s-token-for-tests" for name in ("alice", "bob"))


def opened(dial, url, hello, *more):
    """Open a session and give the status and its id."""
    body, headers = hello
    line = dial(url)
    line.ask("POST", "/mcp", *headers, *more, body=body)
    answer = line.answer()
    return answer.status, answer.headers.get("mcp-session-id")


def test_a_principal_with_its_share_of_sessions_keeps_no_other_out(listen_with_routes, token_file, dial, hello):
    """F14, h02: one token holder opened 997 sessions in two seconds, and others got 503 for half an hour."""
    _, url = listen_with_routes("http", "--token-file", token_file(), MAX_OF_PRINCIPAL=2)
    sessions = [opened(dial, url, hello, ALICE) for _ in range(3)]
    assert [status for status, _ in sessions] == [200, 200, 503]
    assert opened(dial, url, hello, BOB)[0] == 200
    line = dial(url)
    line.ask("DELETE", "/mcp", ALICE, f"Mcp-Session-Id: {sessions[0][1]}")
    assert line.answer().status == 200
    assert opened(dial, url, hello, ALICE)[0] == 200


def streamed(dial, url, token):
    """Open an event stream of the transport sse, and give the status and the connection."""
    line = dial(url)
    line.ask("GET", "/sse", token)
    return line.answer().status, line


def test_a_principal_with_its_share_of_streams_keeps_no_other_out(
    listen_with_routes, token_file, dial, hello, eventually
):
    """F14, h02: one client could hold every connection of the server by event streams."""
    _, url = listen_with_routes("sse", "--token-file", token_file(), MAX_GETS_OF_PRINCIPAL=2)
    streams = [streamed(dial, url, ALICE) for _ in range(4)]
    assert [status for status, _ in streams] == [200, 200, 503, 503]
    assert streamed(dial, url, BOB)[0] == 200
    _, first = streams[0]
    while b"session_id=" not in first.rest or not first.rest.endswith(b"\n"):
        first.rest += first.socket.recv(65536)
    address = first.rest.decode().partition("data: ")[2].split()[0]
    line = dial(url)
    body, headers = hello
    line.ask("POST", address, *headers, ALICE, body=body)
    assert line.answer().status == 202  # clients that hold their share can use it
    first.socket.close()
    eventually(lambda: streamed(dial, url, ALICE)[0] == 200)


def test_a_principal_with_its_share_of_calls_keeps_no_other_out(
    listen_with_routes, token_file, dial, hello, eventually
):
    _, url = listen_with_routes("http", "--token-file", token_file(), MAX_CALLS_OF_PRINCIPAL=2)
    with contextlib.ExitStack() as slow:
        for _ in range(2):
            line = slow.enter_context(dial(url))
            line.ask("POST", "/custom", ALICE, "Content-Length: 100", body=b"{")
        eventually(lambda: opened(dial, url, hello, ALICE)[0] == 503)
        assert opened(dial, url, hello, BOB)[0] == 200


def test_a_principal_with_its_share_of_websockets_keeps_no_other_out(listen_with_routes, token_file, dial, upgrade):
    _, url = listen_with_routes("http", "--token-file", token_file(), MAX_SOCKETS_OF_PRINCIPAL=1)
    statuses = []
    for token in (ALICE, ALICE, BOB):
        line = dial(url)
        line.ask("GET", "/socket", *upgrade, token)
        statuses.append(line.answer().status)
    assert statuses == [101, 503, 101]


def test_a_client_that_asks_for_events_it_has_missed_gets_a_new_stream(listen_with_routes, dial, hello):
    """F20, h04: `Last-Event-ID` was answered with 500."""
    _, url = listen_with_routes("http")
    _, session = opened(dial, url, hello)
    line = dial(url)
    line.ask("GET", "/mcp", hello[1][1], f"Mcp-Session-Id: {session}", "Last-Event-ID: 7")
    answer = line.answer()
    assert (answer.status, answer.headers["content-type"].split(";")[0]) == (200, "text/event-stream")
