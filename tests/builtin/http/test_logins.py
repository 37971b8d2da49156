"""Logins to pages: who is taken for a person, when a login ends, and the file that a browser logs in with."""

from __future__ import annotations

import stat
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from deepwork.api import HttpApp
from deepwork.builtin.http.guard import Guard
from deepwork.builtin.http.login_file import LoginFile
from deepwork.builtin.http.logins import CODE_SECONDS, IDLE_SECONDS, MAX_LOGINS
from deepwork.builtin.http.plugins import PluginApps
from deepwork.builtin.http.tokens import read_tokens
from deepwork.ports.records import ServedApp

OURS = {"Origin": "http://testserver"}
ANNS, CIS = "anns-token-for-tests", "the-token-of-ci-for-tests"


async def tell(scope, receive, send):
    """Answer who asks; over a WebSocket, once for each message."""
    by, csrf = scope["state"]["answerer"], scope["state"].get("csrf_token", "")
    text = f"{by.principal} {'person' if by.is_person else 'program'} {by.client}"
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-csrf", csrf.encode())]})
        await send({"type": "http.response.body", "body": text.encode()})
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": text})


class Server:
    """A server whose plugin `acme` has pages."""

    def __init__(self, tokens=None):
        offer = ServedApp("acme", "acme 1", HttpApp(lambda: tell, public=("",)))
        apps = PluginApps([offer], tokens, alone="acme")
        self.pages = apps.pages
        self._app = Guard(apps, ["testserver"], tokens, apps.pages)

    def browser(self, token=None):
        """Make a browser, and log in with a token, or with the server's own."""
        browser = TestClient(self._app, headers=OURS)
        if token != "":
            browser.post("/login", json={"token": token or self.pages.random_token}).raise_for_status()
        return browser


@pytest.fixture
def tokens(token_file):
    return read_tokens(Path(token_file(f"ann {ANNS} person\nci {CIS}\n")))


@pytest.fixture
def later(monkeypatch):
    """Let time pass."""

    def wait(seconds):
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + seconds)

    return wait


def cookie_of(browser):
    [cookie] = browser.cookies.items()
    return "{}={}".format(*cookie)


def asked(server, cookie):
    """Ask with a cookie alone, as its thief would."""
    return server.browser("").get("/data", headers={"Cookie": cookie}).status_code


def test_a_person_is_who_logs_in_with_the_servers_own_token_or_with_one_of_a_person(tokens):
    assert Server().browser().get("/data").text == "local person acme"
    server = Server(tokens)
    assert server.browser(ANNS).get("/data").text == "ann person acme"
    assert server.browser(CIS).get("/data").text == "ci program None"


def test_a_program_that_sends_a_token_is_no_person_whatever_token_it_is(tokens):
    server = Server(tokens)
    for token, name in ((ANNS, "ann"), (CIS, "ci")):
        answer = server.browser("").get("/data", headers={"Authorization": f"Bearer {token}"})
        assert answer.text == f"{name} program None"
    own = Server()
    bearer = {"Authorization": f"Bearer {own.pages.random_token}"}
    assert own.browser("").get("/data", headers=bearer).text == "local program None"
    assert own.browser().get("/data", headers=bearer).text == "local program None"


def test_each_login_has_a_cookie_and_a_csrf_token_of_its_own():
    server = Server()
    first_browser, second_browser = server.browser(), server.browser()
    assert cookie_of(first_browser) != cookie_of(second_browser)
    csrf = [browser.get("/data").headers["x-csrf"] for browser in (first_browser, second_browser)]
    assert csrf[0] != csrf[1]
    assert first_browser.post("/data", headers={"X-CSRF-Token": csrf[1]}).status_code == 403
    assert first_browser.post("/data", headers={"X-CSRF-Token": csrf[0]}).status_code == 200


def test_a_copied_cookie_ends_with_the_logout_and_with_the_server(tokens):
    server = Server(tokens)
    browser, second_browser = server.browser(ANNS), server.browser(ANNS)
    cookie = cookie_of(browser)
    assert asked(server, cookie) == 200
    assert asked(Server(tokens), cookie) == 401
    csrf = {"X-CSRF-Token": browser.get("/data").headers["x-csrf"]}
    assert browser.post("/logout", headers=csrf).status_code == 204
    assert asked(server, cookie) == 401
    assert second_browser.get("/data").status_code == 200


def test_a_login_ends_after_twelve_hours_without_use(later):
    server = Server()
    cookie = cookie_of(server.browser())
    later(IDLE_SECONDS - 60)
    assert asked(server, cookie) == 200
    later(IDLE_SECONDS - 60)
    assert asked(server, cookie) == 200
    later(IDLE_SECONDS + 60)
    assert asked(server, cookie) == 401


def test_too_many_logins_of_a_principal_end_the_one_unused_longest(tokens):
    server = Server(tokens)
    ann = server.browser(ANNS)
    first, second = (cookie_of(server.browser(CIS)) for _ in range(2))
    for _ in range(MAX_LOGINS - 2):
        server.browser(CIS)
    assert asked(server, first) == 200
    server.browser(CIS)
    assert (asked(server, first), asked(server, second)) == (200, 401)
    assert ann.get("/data").status_code == 200


def test_each_cookie_of_our_name_is_tried_and_the_newest_login_counts(tokens):
    """A page of another port of the host can add cookies, also one of a login of its owner."""
    server = Server(tokens)
    planted = cookie_of(server.browser(CIS))
    own = cookie_of(server.browser(ANNS))
    name = own.partition("=")[0]
    for cookies in (f"{name}=x; {own}", f"{own}; {name}=x", f"{name}=; {planted}; {own}", f"{own}; {planted}"):
        answer = server.browser("").get("/data", headers={"Cookie": cookies})
        assert (cookies, answer.text) == (cookies, "ann person acme")


def test_a_websocket_hears_nothing_after_the_logout():
    server = Server()
    browser = server.browser()
    with browser.websocket_connect("/data") as socket:
        socket.send_text("?")
        assert socket.receive_text() == "local person acme"
        csrf = {"X-CSRF-Token": browser.get("/data").headers["x-csrf"]}
        assert browser.post("/logout", headers=csrf).status_code == 204
        socket.send_text("?")
        with pytest.raises(WebSocketDisconnect) as caught:
            socket.receive_text()
    assert caught.value.code == 1008


# The file for a browser


def file_of(address):
    assert address.startswith("file:///")
    return Path(unquote(urlsplit(address).path))


def code_in(file):
    return file.read_text().partition("#token=")[2].partition('"')[0]


def test_a_browser_gets_a_file_that_only_the_user_can_read_and_that_logs_in_once():
    server = Server()
    address = server.pages.address_for_browser("http://testserver/")
    file = file_of(address)
    code = code_in(file)
    assert 'content="0; url=http://testserver/#token=' in file.read_text()
    assert code not in address
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    assert server.browser("").get("/data", headers={"Authorization": f"Bearer {code}"}).status_code == 401
    assert server.browser(code).get("/data").text == "local person acme"
    assert not file.exists()
    assert server.browser("").post("/login", json={"token": code}).status_code == 401


def test_the_file_of_a_login_that_nobody_began_goes_with_the_server():
    server = Server()
    file = file_of(server.pages.address_for_browser("http://testserver/"))
    server.pages.close()
    assert not file.exists()


def test_a_code_is_forgotten_after_ten_minutes_and_so_is_a_file_that_a_killed_server_left(later):
    server = Server()
    file = file_of(server.pages.address_for_browser("http://testserver/"))
    code = code_in(file)
    later(CODE_SECONDS + 1)
    assert server.browser("").post("/login", json={"token": code}).status_code == 401
    LoginFile("http://testserver/").remove()
    assert not file.exists()


def test_a_folder_that_others_could_read_is_closed_before_a_file_is_made():
    folder = file_of(LoginFile("x").address).parent
    folder.chmod(0o755)
    LoginFile("x")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_with_a_token_file_the_only_person_logs_in_and_nobody_else_is_guessed(token_file):
    def logs_in(text):
        server = Server(read_tokens(Path(token_file(text))))
        address = server.pages.address_for_browser("http://testserver/")
        return address if address.startswith("http") else server.browser(code_in(file_of(address))).get("/data").text

    assert logs_in(f"ann {ANNS} person\nci {CIS}\n") == "ann person acme"
    assert logs_in(f"ci {CIS}\n") == "ci program None"
    assert logs_in(f"ann {ANNS}\nci {CIS}\n") == "http://testserver/"
    assert logs_in(f"ann {ANNS} person\nbob {CIS} person\n") == "http://testserver/"
