"""Sessions of the transport: a share for each principal, and requests for events that nobody keeps."""

from __future__ import annotations

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


def test_a_client_that_asks_for_events_it_has_missed_gets_a_new_stream(listen_with_routes, dial, hello):
    """F20, h04: `Last-Event-ID` was answered with 500."""
    _, url = listen_with_routes("http")
    _, session = opened(dial, url, hello)
    line = dial(url)
    line.ask("GET", "/mcp", hello[1][1], f"Mcp-Session-Id: {session}", "Last-Event-ID: 7")
    answer = line.answer()
    assert (answer.status, answer.headers["content-type"].split(";")[0]) == (200, "text/event-stream")
