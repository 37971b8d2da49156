"""YAML as it is read: what is a document, and what is refused with its line."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deepwork.documents.document import Document
from deepwork.documents.load import read_document
from deepwork.documents.problems import DocumentError


def is_answered(content):
    """True if bytes are a document, or refused with a problem; nothing else may escape."""
    try:
        return isinstance(read_document(content), Document)
    except DocumentError as error:
        return bool(error.problems)


SNIPPETS = [
    "a: b\n", "- ", "? ", ": ", "&a ", "*a ", "*a\n", "<<: *a\n", "{", "}", "[", "]", ", ", '"', "'", "|\n ", ">\n ",
    "\n", "---\n", "...\n", "%YAML 1.1\n", "%TAG !a! b\n", "!!int ", "!!bool ", "!!timestamp ", "!!float ", "!!binary ",
    "!!set ", "!!omap ", "!!pairs ", "!!null ", "!!map ", "!!seq ", "!!str ", "!!merge ", "!!value ", "!x ", "!<x> ",
    "!!python/name:os.system ", "1_0", "0x", "0b", "08", "1:2:3", "1e9", ".inf", "-", "+", "=", "<<", "~", "2001-13-45",
    "2001-01-01 25:61:61", "\\", "\t", "#", "@", "`", "\x00", "\x07", "\x85", "\u2028", "\ufeff", "é", "😀", " ", "  ",
]  # fmt: skip


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode(errors="surrogatepass"))))
def test_any_bytes_are_a_document_or_a_document_error(content):
    assert is_answered(content)


@settings(max_examples=500)
@given(st.lists(st.sampled_from(SNIPPETS), max_size=20).map("".join))
@example('!!int ""')
@example('!!float ""')
@example("!!bool perhaps")
@example("!!timestamp today")
@example("!!int {=: x}")
@example("é: x\x00")
def test_any_pieces_of_yaml_are_a_document_or_a_document_error(text):
    assert is_answered(text.encode())


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", None),
        ("a: 1\n", {"a": 1}),
        ("\ufeffa: 1\n", {"a": 1}),
        ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
        ("a: 1\rb: 2\r", {"a": 1, "b": 2}),
        ('{"a": [1, true, null, "x"]}', {"a": [1, True, None, "x"]}),
        ("[yes, No, ON, off, True, FALSE]", [True, False, True, False, True, False]),
        ("[y, n]", ["y", "n"]),
        ("[1_000, 0x1F, 010, 0b11, 1:30]", [1000, 31, 8, 3, 90]),
        ("%YAML 1.1\n---\na: 1\n...\n", {"a": 1}),
    ],
)
def test_yaml_1_1_is_read_as_before(text, data):
    assert read_document(text.encode()).data == data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: &x {k: 1}\nb: *x\n", {"a": {"k": 1}, "b": {"k": 1}}),
        ("a: &x {k: 1, l: 1}\nb: {<<: *x, k: 2}\n", {"a": {"k": 1, "l": 1}, "b": {"k": 2, "l": 1}}),
        (
            "a: &x {k: 1}\nb: &y {k: 2, l: 2}\nc: {<<: [*x, *y]}\n",
            {"a": {"k": 1}, "b": {"k": 2, "l": 2}, "c": {"k": 1, "l": 2}},
        ),
        (
            "a: &x {k: 1}\nb: {deep: &y {<<: *x, k: 2}}\nc: {<<: *y}\n",
            {"a": {"k": 1}, "b": {"deep": {"k": 2}}, "c": {"k": 2}},
        ),
    ],
)
def test_aliases_and_merge_keys_are_allowed(text, data):
    assert read_document(text.encode()).data == data


def test_a_merged_key_is_no_duplicate_but_an_own_one_is(refused):
    assert refused("a: &x {k: 1}\nb:\n  <<: *x\n  l: 1\n  l: 2\n") == "5: key 'l' is used twice, first in line 4"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\n\na: 2\n", "3: key 'a' is used twice, first in line 1"),
        ("- {a: 1, b: 2, a: 3}\n", "1: key 'a' is used twice, first in line 1"),
        ("x:\n  - y:\n      a: 1\n      'a': 2\n", "4: key 'a' is used twice, first in line 3"),
        ("? [a]\n: b\n", "1: while constructing a mapping, found unhashable key"),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_both_lines(refused, text, says):
    assert refused(text) == says


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a: 1\nb: \xff\n", "2: byte 0xff is not UTF-8"),
        ("ä: 1\nb: ä\n".encode("latin-1"), "1: byte 0xe4 is not UTF-8"),
        ("a: 1\n".encode("utf-16"), "1: byte 0xff is not UTF-8"),
        (b"a: 1\nb: \x00\n", "2: character #x0000 is not allowed"),
        ("é: é\n\n\nb: \x07".encode(), "4: character #x0007 is not allowed"),
        (b'a: "\\ud800"\n', "1: while parsing a quoted scalar, found invalid Unicode character escape code"),
        (b"a: [\n", "2: while parsing a flow node, did not find expected node content"),
        (b"a: b: c\n", "1: a second ': ' in one line; put the text that contains it in quotes"),
        (b"a: 1\n---\nb: 1\n", "2: expected a single document in the stream, but found another document"),
        (b"a: *nowhere\n", "1: found undefined alias"),
        (b"a: 1\nb: !!python/object/apply:os.system [ls]\n", "2: could not determine a constructor for the tag"),
        (b"a: !mine x\n", "1: could not determine a constructor for the tag '!mine'"),
        (b"a: 1\nb: 2001-13-45\n", "2: '2001-13-45' cannot be read: month must be in 1..12"),
        (b"a: !!bool perhaps\n", "1: 'perhaps' cannot be read as bool"),
        (b'a: 1\nb: !!int ""\n', "2: '' cannot be read as int"),
        (b"a: !!int [1]\n", "1: a collection cannot be read as int"),
        (b"a: !!timestamp today\n", "1: 'today' cannot be read as timestamp"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(refused, content, says):
    assert refused(content).startswith(says)


def test_a_byte_order_mark_does_not_shift_lines(refused):
    assert refused("\ufeffa: 1\na: 2\n").startswith("2: ")


@pytest.mark.parametrize(
    "number", ["{}", "-{}", "0x{}", "0b{}", "{}.5", "1.{}", "1.5e+{}", "{}:30", "2001-01-01 00:00:00.{}"]
)
def test_a_number_of_more_than_500_digits_is_refused(refused, number):
    assert read_document(f"a: {number.format('1' * 200)}".encode())
    assert refused(f"\na: {number.format('1' * 501)}") == "2: a number of more than 500 digits"


def test_a_long_quoted_text_of_digits_is_no_number():
    assert read_document(f"a: '{'1' * 501}'\nb: |\n  {'-' * 501}\n".encode()).data == {
        "a": "1" * 501,
        "b": "-" * 501 + "\n",
    }
