"""Who gets in: 36 cases of host, origin and token over HTTP and WebSocket, the cookie, and the login itself."""

from __future__ import annotations

import socket

import pytest

from deepwork.testing import HttpWire
from deepwork.testing.wire import PATIENCE

HOSTS = {"address": "127.0.0.1:{port}", "name": "localhost:{port}", "foreign": "evil.example:{port}"}
ORIGINS = {"none": None, "ours": "http://127.0.0.1:{port}", "foreign": "http://evil.example:{port}", "null": "null"}
TOKENS = ("none", "wrong", "right")
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
CASES = [(host, origin, token) for host in HOSTS for origin in ORIGINS for token in TOKENS]


@pytest.fixture(scope="module", params=["dashboard", "server"])
def dash(request, shared_project_at):
    """A dashboard by itself, and one of a server with tools."""
    with getattr(shared_project_at(request.param), request.param)() as dash:
        yield dash


def status_of(dash, path, *headers, method="GET"):
    """Send a request whose every byte is ours, and give the status of the answer."""
    host, port = dash.netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
        text = "\r\n".join([f"{method} {dash.mount}{path} HTTP/1.1", *headers, "", ""])
        line.sendall(text.encode("latin-1"))
        return int(line.makefile("rb").readline().split()[1])


def written(dash, host, origin):
    port = dash.netloc.partition(":")[2]
    values = {"Host": HOSTS[host], "Origin": ORIGINS[origin]}
    return [f"{name}: {value.format(port=port)}" for name, value in values.items() if value]


def expected(host, origin, token, through):
    if host == "foreign":
        return 421
    if origin in ("foreign", "null"):
        return 403
    return through if token == "right" else 401


@pytest.mark.parametrize("kind", ["api", "live"])
def test_36_cases_of_host_origin_and_token_are_answered_by_the_table(dash, kind):
    assert len(set(CASES)) == 36
    values = {"none": [], "wrong": ["Authorization: Bearer nobodys"], "right": [f"Authorization: Bearer {dash.token}"]}
    path, more, through = ("api/session", (), 200) if kind == "api" else ("live", UPGRADE, 101)
    differences = {}
    for host, origin, token in CASES:
        status = status_of(dash, path, *written(dash, host, origin), *values[token], *more)
        if status != expected(host, origin, token, through):
            differences[host, origin, token] = status
    assert differences == {}


@pytest.mark.parametrize("kind", ["api", "live"])
def test_36_cases_of_host_origin_and_cookie_are_answered_by_the_table(dash, kind):
    """A WebSocket needs an Origin, which every browser sends; what reads comes from our own page without one."""
    page, _ = dash.log_in()
    values = {"none": [], "wrong": [page["Cookie"][:-1] + "x"], "right": [page["Cookie"]]}
    path, more, through = ("api/session", (), 200) if kind == "api" else ("live", UPGRADE, 101)
    differences = {}
    for host, origin, token in CASES:
        cookies = [f"Cookie: {value}" for value in values[token]]
        status = status_of(dash, path, *written(dash, host, origin), *cookies, *more)
        right = expected(host, origin, token, 403 if (kind, origin) == ("live", "none") else through)
        if status != right:
            differences[host, origin, token] = (status, right)
    assert differences == {}


@pytest.mark.parametrize(
    ("site", "status"), [(None, 200), ("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)]
)
def test_a_cookie_that_comes_along_with_another_sites_request_does_not_count(dash, site, status):
    page, _ = dash.log_in()
    assert dash.ask("api/session", **page, Sec_Fetch_Site=site).status == status


def test_the_cookie_is_for_our_own_pages_and_no_script(dash):
    answer = dash.ask("login", "POST", body={"token": dash.token}, token=None, Origin=dash.origin)
    assert answer.status == 204
    [cookie] = answer.cookies
    name_and_value, *attributes = cookie.split("; ")
    port = dash.netloc.partition(":")[2]
    assert name_and_value.startswith(f"deepwork_{port}=")
    assert dash.token not in cookie
    assert {attribute.lower() for attribute in attributes} == {"httponly", "samesite=strict", f"path={dash.mount}"}


def test_behind_a_proxy_with_tls_the_cookie_is_secure(dash):
    origin = dash.origin.replace("http:", "https:")
    answer = dash.ask("login", "POST", body={"token": dash.token}, token=None, Origin=origin)
    assert "secure" in answer.cookies[0].lower()


@pytest.mark.parametrize(
    "body", [{"token": "wrong"}, {"token": ""}, {"token": None}, {"token": "ü"}, {}, [], "x", b"\xff"]
)
def test_a_wrong_token_gets_no_cookie(dash, body):
    answer = dash.ask("login", "POST", body=body, token=None, Origin=dash.origin)
    assert (answer.status, answer.cookies) == (401, [])
    assert "not valid" in answer.json()["error"]["message"]


@pytest.mark.parametrize("origin", [None, "http://evil.example", "null"])
def test_nobody_is_logged_in_by_a_page_that_is_not_ours(dash, origin):
    answer = dash.ask("login", "POST", body={"token": dash.token}, token=None, Origin=origin)
    assert (answer.status, answer.cookies) == (403, [])


def test_an_action_needs_what_only_the_page_knows(dash):
    page, action = dash.log_in()
    answer = {"id": "core:x", "action": "abort", "text": "why"}
    for headers, status in (
        ({**page, "Origin": dash.origin}, 403),
        ({**action, "X_CSRF_Token": "0" * 64}, 403),
        ({**action, "Origin": None}, 403),
        (action, 404),
    ):
        assert dash.ask("api/inbox/answer", "POST", body=answer, **headers).status == status, headers


def test_logging_out_ends_the_login_also_for_who_has_copied_the_cookie(dash):
    page, action = dash.log_in()
    assert dash.ask("logout", "POST", **page, Origin=dash.origin).status == 403
    answer = dash.ask("logout", "POST", **action)
    assert answer.status == 204
    assert "max-age=0" in answer.cookies[0].lower()
    assert dash.ask("api/session", **page).status == 401


def test_without_login_there_are_the_pages_and_nothing_else(dash):
    for path in ("", "static/nothing.js"):
        assert dash.ask(path, token=None).status in (200, 404)
        assert dash.ask(path, "POST", token=None).status == 401
    closed = ("api/session", "api/sessions", "api/runs", "api/nothing", "static/../api/session")
    for path in (*closed, "static", "statics/x", "live", "x"):
        assert dash.ask(path, token=None).status == 401, path


def test_a_login_ends_with_its_server_though_the_token_is_the_same(project, tokens):
    file = tokens()
    with project.dashboard("--token-file", file) as dash:
        page, _ = dash.log_in("alices-token-for-tests")
        session = dash.ask("api/session", **page).json()
        assert (session["principal"], session["person"]) == ("alice", False)
        dash.end()
    with project.dashboard("--token-file", file, "--port", dash.netloc.partition(":")[2]) as dash:
        assert dash.ask("api/session", **page).status == 401


@pytest.mark.parametrize("command", [("dashboard",), ("serve", "--transport", "http")], ids=["dashboard", "server"])
def test_a_terminal_is_shown_a_token_of_its_own_at_each_start(project, dash_at, command):
    tokens = []
    for _ in range(2):
        with project.shown_in_terminal(*command) as lines:
            url, _, token = lines[-1].split()[-1].partition("#token=")
            dash = dash_at(url, token)
            assert dash.ask("api/session", token=token).json()["person"] is False
            page, _ = dash.log_in()
            assert dash.ask("api/session", **page).json()["person"] is True
        tokens.append(token)
    assert len({*tokens}) == 2
    assert min(map(len, tokens)) >= 40


def test_a_server_without_tokens_wants_one_for_the_pages_alone_and_its_log_has_none(project):
    with project.server(tokens=False) as dash:
        assert dash.ask("api/session", token=None).status == 401
        with HttpWire(f"{dash.origin}/mcp", mode="modern") as wire:
            assert "tools" in wire.request("tools/list")["result"]
        assert dash.end() == 0
        dash.reader.join(100)
    log = "".join(dash.log)
    assert "pages: http" in log
    assert "deepwork dashboard --open" in log
    assert "token=" not in log
