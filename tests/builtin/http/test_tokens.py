"""The token file: what it may look like, and that no token is told to anybody."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deepwork.builtin.http.tokens import read_tokens
from deepwork.errors import ConfigError

TOKEN = "alices-token-for-tests"


@pytest.fixture
def refusal(start):
    """Start a server with a token file that it refuses, and give what it says."""

    def refusal(path):
        process = start("--transport", "http", "--port", "0", "--token-file", str(path))
        assert process.wait(100) == 1
        stderr = process.stderr.read()
        assert TOKEN not in stderr
        assert process.stdout.read() == ""
        return stderr

    return refusal


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o602, 0o610, 0o660])
def test_others_may_not_read_or_write_it(refusal, token_file, mode):
    path = token_file(mode=mode)
    assert refusal(path) == (
        f"Error: token file {path!r} can be read by others (mode {mode:04o})\nHint: Run: chmod 600 {path}\n"
    )


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_its_owner_alone_may_read_it(listen, token_file, mode):
    listen("http", "--token-file", token_file(mode=mode))


@pytest.mark.parametrize("kind", ["a named pipe", "a device", "too large"])
def test_it_is_a_regular_file_of_a_sensible_size(refusal, token_file, tmp_path, kind):
    path = tmp_path / "thing"
    if kind == "a named pipe":
        os.mkfifo(path, 0o600)
    elif kind == "a device":
        path = "/dev/zero"
    else:
        path = token_file(b"#" * (1024 * 1024 + 1))
    assert refusal(path) == f"Error: token file {str(path)!r} is not a regular file of at most 1 MiB\n"


def test_it_is_no_folder(refusal, tmp_path):
    tmp_path.chmod(0o700)
    assert refusal(tmp_path) == f"Error: token file {str(tmp_path)!r} cannot be read: Is a directory\n"


def test_it_has_to_be_there(refusal, tmp_path):
    path = tmp_path / "nowhere"
    assert refusal(path) == f"Error: token file {str(path)!r} cannot be read: No such file or directory\n"


@pytest.mark.usefixtures("bound_by_permissions")
def test_it_has_to_be_readable(token_file):
    path = token_file(mode=0o000)
    with pytest.raises(ConfigError) as error:
        read_tokens(Path(path))
    assert error.value.message == f"token file {str(path)!r} cannot be read: Permission denied"


def test_it_is_utf_8(refusal, token_file):
    path = token_file(f"alice {TOKEN}\n# caf\xe9\n".encode("latin-1"))
    assert refusal(path) == f"Error: token file {path!r} is not UTF-8\n"


@pytest.mark.parametrize("text", ["", "\n\n", "# alice is on holiday\n", f"# alice {TOKEN}\n"])
def test_a_token_file_without_tokens_is_refused(refusal, token_file, text):
    path = token_file(text)
    assert refusal(path) == (
        f"Error: token file {path!r} has no tokens\nHint: Write a line NAME TOKEN for everyone who may call.\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "alice",
        TOKEN,
        f"alice {TOKEN} # hers",
        f"alice {TOKEN} people",
        f"alice {TOKEN} person person",
        f"alice person {TOKEN}",
        f"alice: {TOKEN} x",
        f"alice,{TOKEN}",
        f"alice:{TOKEN}",
        f"a/lice {TOKEN}",
        f"-alice {TOKEN}",
        f"älice {TOKEN}",
        f"{'a' * 65} {TOKEN}",
        f"alice {TOKEN}é",
        f'alice "{TOKEN}"',
        f"alice {TOKEN}\0",
        f"\ufeffalice {TOKEN}",
    ],
)
def test_a_line_that_is_no_name_and_token_is_named_by_its_number(refusal, token_file, line):
    path = token_file(f"# who may call\n\n{line}\n")
    assert refusal(path) == (
        f"Error: token file {path!r}, line 3: not of the form NAME TOKEN, or NAME TOKEN person\n"
        "Hint: NAME may contain letters, digits and . _ @ -; for TOKEN use what `openssl rand -hex 32` prints.\n"
    )


def test_two_lines_have_two_tokens(refusal, token_file):
    path = token_file(f"alice {TOKEN}\nbob {TOKEN}\n")
    assert refusal(path) == (
        f"Error: token file {path!r}, line 2: this token is used twice\nHint: Give every line a token of its own.\n"
    )


def test_comments_blank_lines_and_spaces_do_not_count_and_a_name_may_have_two_tokens(
    listen_with_routes, token_file, dial
):
    path = token_file(
        f"# now\r\n\r\n\t alice\t{TOKEN}   person \r\nalice alices-next-token==\n  # bob\nb.o_b@x-1 a+token/of~bob_1"
    )
    _, url = listen_with_routes("http", "--token-file", path)
    answers = {}
    for token in (TOKEN, "alices-next-token==", "a+token/of~bob_1", "alices-next-token", "#", "now"):
        line = dial(url)
        line.ask("GET", "/custom", f"Authorization: Bearer {token}")
        answers[token] = line.answer().status
    assert list(answers.values()) == [200, 200, 200, 401, 401, 401]


def test_a_short_token_is_warned_of_and_not_shown(start, token_file):
    path = token_file("alice s3cret\n")
    process = start("--transport", "http", "--port", "0", "--token-file", path)
    line = process.stderr.readline()
    assert line.startswith(f"WARNING deepwork.server: token file {path!r}, line 1: the token of alice is short; ")
    assert "s3cret" not in line


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_no_token_is_logged(listen_with_routes, token_file, dial, log_of, tmp_path, transport):
    """At the lowest level, for right, wrong and misplaced tokens, on requests that are served, refused and broken."""
    log = tmp_path / "log.jsonl"
    options = ["--token-file", token_file(), "--log-level", "debug", "--log-json", str(log)]
    process, url = listen_with_routes(transport, *options)
    path = urlsplit(url).path
    for token in (TOKEN, "wrong-token-for-tests"):
        for target in ("/custom", path, "/nowhere", f"/custom?token={token}", f"/messages/?session_id={token}"):
            for method in ("GET", "POST", "BAD METHOD"):
                line = dial(url)
                line.ask(method, target, f"Authorization: Bearer {token}", "Content-Length: 2", body=b"{}")
                line.answer()
                line.socket.close()
    logged = "\n".join([*log_of(process), log.read_text()])
    assert "Unauthorized" in logged
    assert "token-for-tests" not in logged


@pytest.mark.parametrize("option", [["--token-file", "tokens"], ["--allowed-host", "agents.example"], ["--stateless"]])
def test_what_would_have_no_effect_on_stdio_is_refused(start, option):
    process = start(*option)
    assert process.wait(100) == 2
    assert f"{option[0]} has no effect with --transport stdio." in process.stderr.read()
