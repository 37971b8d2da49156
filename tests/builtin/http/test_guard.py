"""Which requests the guard refuses, by Host, Origin and token, on every kind of route."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytestmark = pytest.mark.req("T1", "T2", "T5")

# What a request says of where it goes and where it comes from, what token it has, and the answer.
TABLE = [
    # host, origin, token, answer
    ("address", "none", "none", 401),
    ("address", "none", "wrong", 401),
    ("address", "none", "right", "through"),
    ("address", "ours", "none", 401),
    ("address", "ours", "wrong", 401),
    ("address", "ours", "right", "through"),
    ("address", "foreign", "none", 403),
    ("address", "foreign", "wrong", 403),
    ("address", "foreign", "right", 403),
    ("address", "null", "none", 403),
    ("address", "null", "wrong", 403),
    ("address", "null", "right", 403),
    ("name", "none", "none", 401),
    ("name", "none", "wrong", 401),
    ("name", "none", "right", "through"),
    ("name", "ours", "none", 401),
    ("name", "ours", "wrong", 401),
    ("name", "ours", "right", "through"),
    ("name", "foreign", "none", 403),
    ("name", "foreign", "wrong", 403),
    ("name", "foreign", "right", 403),
    ("name", "null", "none", 403),
    ("name", "null", "wrong", 403),
    ("name", "null", "right", 403),
    ("foreign", "none", "none", 421),
    ("foreign", "none", "wrong", 421),
    ("foreign", "none", "right", 421),
    ("foreign", "ours", "none", 421),
    ("foreign", "ours", "wrong", 421),
    ("foreign", "ours", "right", 421),
    ("foreign", "foreign", "none", 421),
    ("foreign", "foreign", "wrong", 421),
    ("foreign", "foreign", "right", 421),
    ("foreign", "null", "none", 421),
    ("foreign", "null", "wrong", 421),
    ("foreign", "null", "right", 421),
]

HOSTS = {"address": "127.0.0.1:{port}", "name": "localhost:{port}", "foreign": "evil.example:{port}"}
ORIGINS = {"none": None, "ours": "http://127.0.0.1:{port}", "foreign": "http://evil.example:{port}", "null": "null"}
TOKENS = {"none": None, "wrong": "Bearer nobodys-token-for-tests", "right": "Bearer alices-token-for-tests"}

SOCKET = "a WebSocket"
# Every kind of route: a method or a WebSocket, a path, and the answer of the route itself.
ROUTES = {
    "http": [
        ("POST", "/mcp", 200),
        ("GET", "/mcp", 400),
        ("DELETE", "/mcp", 400),
        ("OPTIONS", "/mcp", 405),
        ("GET", "/custom", 200),
        ("GET", "/mounted/", 200),
        ("GET", "/nowhere", 404),
        (SOCKET, "/socket", 101),
        (SOCKET, "/mcp", 404),
        (SOCKET, "/nowhere", 403),
    ],
    "sse": [
        ("GET", "/sse", 200),
        ("POST", "/messages/?session_id=00000000000000000000000000000000", 404),
        ("GET", "/custom", 200),
        ("GET", "/mounted/", 200),
        (SOCKET, "/socket", 101),
        (SOCKET, "/messages/", 404),
        (SOCKET, "/sse", 403),
    ],
}


@pytest.fixture
def knock(dial, hello, upgrade):
    """Ask for a path with these headers, and give the head of the answer."""
    body, about = hello

    def knock(url, method, path, *headers, **options):
        line = dial(url)
        if method is SOCKET:
            line.ask("GET", path, *upgrade, *headers, host=False, **options)
        elif method == "POST":
            line.ask(method, path, *about, *headers, body=body, host=False, **options)
        else:
            line.ask(method, path, "Accept: text/event-stream", *headers, host=False, **options)
        answer = line.answer()
        line.socket.close()
        return answer

    return knock


def written(url, host, origin, token):
    port = urlsplit(url).port
    values = {"Host": HOSTS[host], "Origin": ORIGINS[origin], "Authorization": TOKENS[token]}
    return [f"{name}: {value.format(port=port)}" for name, value in values.items() if value]


@pytest.mark.parametrize("transport", ROUTES)
def test_every_route_answers_by_the_table(listen_with_routes, token_file, knock, log_of, transport):
    process, url = listen_with_routes(transport, "--token-file", token_file())
    assert len(set(TABLE)) == 36
    differences = {}
    for method, path, own in ROUTES[transport]:
        for host, origin, token, answer in TABLE:
            response = knock(url, method, path, *written(url, host, origin, token))
            expected = own if answer == "through" else answer
            challenged = response.headers.get("www-authenticate")
            if (response.status, challenged) != (expected, "Bearer" if expected == 401 else None):
                differences[method, path, host, origin, token] = (response.status, challenged, "not", expected)
    assert differences == {}
    lines = log_of(process)
    assert len([line for line in lines if "refused a request" in line]) == 32 * len(ROUTES[transport])
    assert max(len(line) for line in lines) <= 500
    assert not [line for line in lines if "Traceback" in line or "ERROR" in line or "-for-tests" in line]


@pytest.mark.parametrize("transport", ROUTES)
def test_without_tokens_every_route_answers_by_host_and_origin(listen_with_routes, knock, transport):
    """A WebSocket from nowhere needs a token: foreign pages can open one and send no Origin that is checked."""
    _, url = listen_with_routes(transport)
    differences = {}
    for method, path, own in ROUTES[transport]:
        for host, origin, token, answer in TABLE:
            expected = own if answer in (401, "through") else answer
            if method is SOCKET and origin == "none" and host != "foreign":
                expected = 403
            response = knock(url, method, path, *written(url, host, origin, token))
            if response.status != expected:
                differences[method, path, host, origin, token] = (response.status, "not", expected)
    assert differences == {}


@pytest.mark.parametrize(
    "credentials",
    [
        ["Authorization: Bearer"],
        ["Authorization: Bearer "],
        ["Authorization: alices-token-for-tests"],
        ["Authorization: Basic alices-token-for-tests"],
        ["Authorization: Bearer alices-token-for-test"],
        ["Authorization: Bearer alices-token-for-tests1"],
        ["Authorization: Bearer ALICES-TOKEN-FOR-TESTS"],
        ["Authorization: Bearer alice alices-token-for-tests"],
        ["Authorization: Bearer alices-token-for-tests, Bearer bobs-token-for-tests"],
        ["Authorization: Bearer alices-token-for-tests", "Authorization: Bearer alices-token-for-tests"],
        ["Authorization: Bearer alices-token-for-tests", "Authorization: Bearer bobs-token-for-tests"],
        ["Authorization: Bearer \xfc\xff"],
        ["Proxy-Authorization: Bearer alices-token-for-tests"],
        ["Cookie: token=alices-token-for-tests"],
    ],
)
def test_other_credentials_are_no_token(listen_with_routes, token_file, knock, credentials):
    _, url = listen_with_routes("http", "--token-file", token_file())
    for method, path in (("GET", "/custom"), ("GET", "/custom?token=alices-token-for-tests"), (SOCKET, "/socket")):
        answer = knock(url, method, path, f"Host: {urlsplit(url).netloc}", *credentials)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_of_a_token_may_be_in_any_case(listen_with_routes, token_file, knock, scheme):
    _, url = listen_with_routes("http", "--token-file", token_file())
    headers = [f"Host: {urlsplit(url).netloc}", f"Authorization: {scheme} bobs-token-for-tests"]
    assert knock(url, "GET", "/custom", *headers).status == 200


def test_the_name_by_which_a_request_comes_has_to_be_one_of_the_server(listen_with_routes, knock):
    _, url = listen_with_routes("http", "--allowed-host", "Agents.example")
    port = urlsplit(url).port
    answers = {
        200: [
            "localhost",
            "LOCALHOST",
            f"127.0.0.1:{port}",
            f"[::1]:{port}",
            "agents.example",
            "AGENTS.example:443",
        ],
        421: [
            "",
            "agents.example.",
            "agents.example.evil.example",
            "evil.agents.example",
            "localhost.evil.example",
            "localhost@evil.example",
            "evil.example@localhost",
            "localhost/evil",
            "localhost?evil",
            "localhost#evil",
            "localhost:port",
            "localhost:99999",
            "127.0.0.2",
            "0.0.0.0",
            "127.1",
            "[::1",
            "::1",
            "http://localhost",
        ],
    }
    statuses = {
        name: knock(url, "GET", "/custom", f"Host: {name}").status for names in answers.values() for name in names
    }
    assert statuses == {name: status for status, names in answers.items() for name in names}
    assert knock(url, "GET", "/custom", version="1.0").status == 421
    assert knock(url, "GET", "/custom").status == 400
    assert knock(url, "GET", "/custom", "Host: localhost", "Host: evil.example").status == 400


def test_pages_that_are_not_of_the_server_are_foreign(listen_with_routes, knock):
    _, url = listen_with_routes("http", "--allowed-host", "agents.example")
    address = urlsplit(url)
    answers = {
        200: [
            f"http://{address.netloc}",
            f"HTTP://LOCALHOST:{address.port}",
            f"http://agents.example:{address.port}",
        ],
        403: [
            "",
            "null",
            # Another user's server may have the same port of this address.
            f"http://[::1]:{address.port}",
            "http://127.0.0.1",
            f"http://127.0.0.1:{address.port - 1}",
            f"http://127.0.0.1.evil.example:{address.port}",
            f"http://evil.agents.example:{address.port}",
            f"http://{address.netloc}/",
            f"http://{address.netloc}@evil.example",
            f"http://evil.example@{address.netloc}",
            f"http://evil.example http://{address.netloc}",
            f"ws://{address.netloc}",
            "file://",
            "chrome-extension://abcdef",
            address.netloc,
        ],
    }
    for method, path, through in (("GET", "/custom", 200), (SOCKET, "/socket", 101)):
        for status, origins in answers.items():
            for origin in origins:
                answer = knock(url, method, path, f"Host: {address.netloc}", f"Origin: {origin}")
                assert (origin, answer.status) == (origin, through if status == 200 else status)
        twice = [f"Origin: http://{address.netloc}", "Origin: http://evil.example"]
        assert knock(url, method, path, f"Host: {address.netloc}", *twice).status in (400, 403)


def test_a_page_behind_a_proxy_is_ours_if_it_has_the_name_and_port_that_were_asked_for(listen_with_routes, knock):
    _, url = listen_with_routes("http", "--allowed-host", "agents.example")
    origins = {
        "https://agents.example": 200,
        "https://agents.example:443": 200,
        "http://agents.example": 200,
        "https://agents.example:8443": 403,
    }
    for origin, status in origins.items():
        assert knock(url, "GET", "/custom", "Host: agents.example", f"Origin: {origin}").status == status


def test_what_is_refused_says_why_and_ends_the_connection(listen_with_routes, dial):
    _, url = listen_with_routes("http")
    line = dial(url)
    line.ask("GET", "/custom", "Origin: http://evil.example")
    answer = line.answer()
    assert line.body(answer) == b"Forbidden: requests of foreign web pages are refused.\n"
    assert answer.headers["connection"] == "close"
    assert line.is_closed()


def test_a_refused_websocket_says_why_before_it_is_one(listen_with_routes, token_file, dial, upgrade):
    _, url = listen_with_routes("http", "--token-file", token_file())
    line = dial(url)
    line.ask("GET", "/socket", *upgrade)
    answer = line.answer()
    assert answer.status == 401
    assert "sec-websocket-accept" not in answer.headers
    assert line.body(answer).startswith(b"Unauthorized: send the header Authorization: Bearer TOKEN")
    assert line.is_closed()


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "somewhere.example", "192.0.2.1"])
@pytest.mark.parametrize("names", [[], ["--token-file"], ["--allowed-host"]])
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_off_loopback_it_starts_with_tokens_and_names_alone(start, token_file, transport, address, names):
    values = {"--token-file": token_file(), "--allowed-host": "agents.example"}
    options = [word for option in names for word in (option, values[option])]
    process = start("--transport", transport, "--host", address, "--port", "0", *options)
    assert process.wait(100) == 1
    assert process.stderr.read() == (
        f"Error: on {address!r} other machines can reach this server, so it needs --token-file and --allowed-host\n"
        "Hint: Write lines NAME TOKEN into a file of mode 600, and name the host as clients address it.\n"
    )


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_off_loopback_it_is_called_by_its_name_with_a_token(listen_with_routes, token_file, knock, address):
    options = ["--host", address, "--token-file", token_file(), "--allowed-host", "agents.example"]
    _, url = listen_with_routes("http", *options)
    port = urlsplit(url).port
    local_url = f"http://{'127.0.0.1' if address == '0.0.0.0' else '[::1]'}:{port}"
    token = "Authorization: Bearer alices-token-for-tests"
    assert knock(local_url, "GET", "/custom", f"Host: agents.example:{port}", token).status == 200
    assert knock(local_url, "GET", "/custom", f"Host: agents.example:{port}").status == 401
    assert knock(local_url, "GET", "/custom", f"Host: other.example:{port}", token).status == 421


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("http://agents.example", "'http://agents.example'"),
        ("agents.example:8000", "'agents.example:8000'"),
        ("*", "'*'"),
        ("", "''"),
        ("a b", "'a b'"),
    ],
)
def test_a_name_is_a_bare_host_name(start, name, quoted):
    process = start("--transport", "http", "--allowed-host", name)
    assert process.wait(100) == 1
    assert process.stderr.read() == (
        f"Error: --allowed-host {quoted} is not a host name\n"
        "Hint: Give the bare name: no scheme, no port, no wildcard.\n"
    )


@pytest.mark.parametrize("address", ["nowhere.invalid", "a..b", "256.1.1.1", "x" * 300])
def test_an_address_that_is_none_is_a_clear_error(start, token_file, address):
    options = ["--host", address, "--token-file", token_file(), "--allowed-host", "agents.example"]
    process = start("--transport", "http", *options)
    assert process.wait(100) == 1
    stderr = process.stderr.read()
    assert stderr.startswith(f"Error: cannot listen on {address}:8000: ")
    assert stderr.endswith("Hint: Choose another address with --host and --port; port 0 takes a free one.\n")


@pytest.mark.parametrize(
    ("address", "listening", "table"),
    [("127.0.0.1", "0100007F", "tcp"), ("localhost", None, None), ("::1", "0" * 24 + "01000000", "tcp6")],
)
def test_on_loopback_it_listens_there_alone(listen_with_routes, knock, address, listening, table):
    _, url = listen_with_routes("http", "--host", address)
    port = urlsplit(url).port
    assert knock(url, "GET", "/custom", f"Host: {urlsplit(url).netloc}").status == 200
    if table and sys.platform == "linux":
        lines = [line.split() for line in Path(f"/proc/net/{table}").read_text().splitlines()]
        bound = [line[1] for line in lines if line[3] == "0A" and line[1].endswith(f":{port:04X}")]
        assert bound == [f"{listening}:{port:04X}"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5).close()


def test_an_address_of_ipv6_is_shown_as_urls_have_it(listen):
    _, url = listen("http", "--host", "::1")
    assert re.fullmatch(r"http://\[::1\]:\d+/mcp", url)


def test_what_a_proxy_says_of_a_request_counts_for_nothing(listen_with_routes, dial):
    _, url = listen_with_routes("http")
    headers = (
        "X-Forwarded-Host: {0}",
        "X-Forwarded-For: {0}",
        "Forwarded: host={0};for={0}",
        "X-Forwarded-Proto: https",
    )
    statuses = []
    for host, claimed_host in (("localhost", "evil.example"), ("evil.example", "localhost")):
        line = dial(url)
        line.ask("GET", "/custom", f"Host: {host}", *(header.format(claimed_host) for header in headers), host=False)
        statuses.append(line.answer().status)
    assert statuses == [200, 421]
