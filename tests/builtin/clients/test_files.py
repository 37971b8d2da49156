"""Client files are edited in place: generated files of each format, and texts that are refused with their place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deepwork.builtin.clients.files import decoded, with_entry, without_entry
from deepwork.builtin.clients.json_text import LENIENT, STRICT, WITH_COMMENTS
from deepwork.builtin.clients.toml_text import TomlSyntax
from deepwork.errors import ConfigError

sys.path.insert(0, str(Path(__file__).parent))
from generated_files import ENTRY, complaints, generators

JSON_KEYS = ("mcpServers", "deepwork")
TOML_KEYS = ("mcp_servers", "deepwork")


@pytest.mark.parametrize("name", generators(0))
def test_foreign_parts_of_generated_files_stay(name):
    generator = generators(20)[name]
    assert [complaint for _ in range(150) for complaint in complaints(generator, generator.sample())] == []


@pytest.mark.parametrize(
    ("syntax", "text", "words"),
    [
        (STRICT, '{\n  "a": 1 // one\n}', "line 2, column 10: there is a comment, which this client refuses"),
        (STRICT, '{"a": [1, 2,]}', "line 1, column 12: there is a comma before ']', which this client refuses"),
        (WITH_COMMENTS, '{"a": 1,}', "line 1, column 8: there is a comma before '}'"),
        (LENIENT, '{"a": 1', "line 1, column 8: a comma or '}' is missing"),
        (LENIENT, '{"a": tru}', "line 1, column 7: 't' where a value should be"),
        (LENIENT, "{a: 1}", "line 1, column 2: 'a' where a name in quotes should be"),
        (LENIENT, "{} {}", "line 1, column 4: '{' where the end of the file should be"),
        (LENIENT, '{"mcpServers": []}', "line 1, column 16: mcpServers should be an object"),
        (LENIENT, "[]", "line 1, column 1: the whole file should be an object"),
        (LENIENT, "[" * 200, "line 1, column 102: more than 100 values are nested"),
    ],
)
def test_json_that_cannot_be_changed_is_refused_with_line_and_column(syntax, text, words):
    with pytest.raises(ConfigError) as refused:
        with_entry(text, syntax, JSON_KEYS, ENTRY)
    assert refused.value.message.startswith(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1\nb = \n", "line 2, column 5: "),
        ("\ufeffa = 1\nb == 2\n", "line 2, column 4: "),
        ("a = [1", "line 1, column 7: "),
        ("mcp_servers = 1\n", "line 1, column 1: mcp_servers should be a table"),
        ("[[mcp_servers]]\n", "line 1, column 1: mcp_servers should be a table, not a list of tables"),
    ],
)
def test_toml_that_cannot_be_changed_is_refused_with_line_and_column(text, words):
    with pytest.raises(ConfigError) as refused:
        with_entry(text, TomlSyntax(), TOML_KEYS, ENTRY)
    assert refused.value.message.startswith(words)


def test_what_is_not_utf_8_is_refused_with_line_and_column():
    with pytest.raises(ConfigError, match="line 2, column 3: the file is not UTF-8"):
        decoded(b"{\n  \xff}")


def test_a_change_that_the_second_parser_reads_otherwise_is_not_made(monkeypatch):
    text = '{"mcpServers": {}, "other": 1}'
    broken = type(STRICT.document(text))
    monkeypatch.setattr(broken, "with_member", lambda *_: '{"mcpServers": {"deepwork": {}}}')
    with pytest.raises(ConfigError, match="cannot be changed safely"):
        with_entry(text, STRICT, JSON_KEYS, ENTRY)


def test_an_entry_is_written_in_the_files_own_line_ends_and_indentation():
    text = '{\r\n\t"mcpServers": {\r\n\t\t"a": {} // first\r\n\t}\r\n}\r\n'
    after = with_entry(text, LENIENT, JSON_KEYS, {"command": "x"})
    servers = ['\t\t"a": {}, // first', '\t\t"deepwork": {', '\t\t\t"command": "x"', "\t\t}"]
    lines = ["{", '\t"mcpServers": {', *servers, "\t}", "}"]
    assert after == "".join(f"{line}\r\n" for line in lines)
    assert without_entry(after, LENIENT, JSON_KEYS) == text


def test_a_table_is_not_put_between_the_dotted_keys_of_another():
    text = '\ufeff[mcp_servers.a]\nenv.A = "1"\nenv.B = "2"\n'
    after = with_entry(text, TomlSyntax(), TOML_KEYS, {"command": "x"})
    assert after == f'{text}\n[mcp_servers.deepwork]\ncommand = "x"\n'
    assert without_entry(after, TomlSyntax(), TOML_KEYS) == text
