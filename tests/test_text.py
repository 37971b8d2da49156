"""Which characters of a foreign text are shown as they are, which as escapes, and which texts behind a bar."""

from __future__ import annotations

import sys
import unicodedata

import pytest
import yaml

from deepwork.text import is_blank, labelled, nearest, one_line, quoted, quoted_lines, visible, visible_lines, yaml_text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain, with spaces", "plain, with spaces"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("over\rwritten\x08", r"over\rwritten\x08"),
        ("name\nforged", r"name\nforged"),
        ("a\tb", r"a\tb"),
        ("\0\x7f", r"\x00\x7f"),
        ("\x85\x9b2J", r"\x85\x9b2J"),
        ("\u202egpj.exe\u202c", r"\u202egpj.exe\u202c"),
        ("\u2066\u2069\u200e\u200f\u061c", r"\u2066\u2069\u200e\u200f\u061c"),
        ("a\u200bb\u2060\ufeff\u00ad", r"a\u200bb\u2060\ufeff\xad"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("\udcff\ud800", r"\udcff\ud800"),
        (
            "Prüfen ✓ 検査\u3000済 e\u0301 ❤\ufe0f 👍🏽 עברית عربي",
            "Prüfen ✓ 検査\u3000済 e\u0301 ❤\ufe0f 👍🏽 עברית عربي",
        ),
        ("👩\u200d💻", r"👩\u200d💻"),
        (r"C:\x1b", r"C:\x1b"),
        ("", ""),
    ],
)
def test_what_would_steer_a_terminal_or_hide_is_written_as_an_escape(text, escaped):
    assert visible(text) == escaped


def test_exactly_the_characters_that_terminals_obey_are_escaped():
    obeyed = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    for char in map(chr, range(sys.maxunicode + 1)):
        assert (visible(char) != char) == (unicodedata.category(char) in obeyed)


def test_a_text_of_several_lines_keeps_its_line_ends_and_tabs_alone():
    assert (
        visible_lines("one\n\ttwo\r\nthree\x1b[2J\rfour\x0b\u2028\n")
        == "one\n\ttwo\nthree\\x1b[2J\\rfour\\x0b\\u2028\n"
    )


@pytest.mark.parametrize(
    "end", ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"], ids=ascii
)
def test_every_line_of_a_quotation_stands_behind_its_bar_wherever_a_reader_may_end_it(end):
    assert quoted_lines(f"one{end}| two{end}{end}\tthree\x1b", "  ") == "  | one\n  | | two\n  | \n  | \tthree\\x1b"


def test_an_empty_quotation_still_shows_that_it_is_one():
    assert quoted_lines("") == "| "


def test_a_labelled_text_is_quoted_only_if_it_has_several_lines():
    assert labelled("Goal", " Ship it\x1b \n") == "Goal: Ship it\\x1b"
    assert labelled("Goal", "Ship\u2028## Done") == "Goal:\n| Ship\n| ## Done"


def test_a_line_is_cut_without_looking_at_all_of_a_long_text():
    assert one_line("a\n\tb\u2028c\x1b") == "a b c\\x1b"
    assert one_line("x" * 10**6, 5) == "xxxx…"
    assert quoted("it's\n" * 100, 8) == '"it\'s\\nit…"'


def test_a_text_of_nothing_but_invisible_characters_is_blank():
    assert is_blank("\u3164\u200b \n\u2800")
    assert not is_blank("\u3164x")


def test_a_name_that_resembles_none_is_answered_with_some_of_the_valid_ones():
    assert nearest("zzz", ["b", "a"]) == "; valid: a, b"
    assert nearest("zzz", []) == ""
    assert nearest("zzz", [f"n{number:03}" for number in range(100)]).endswith("n019, …")


@pytest.mark.parametrize(
    "text",
    [
        *("plain", "a/b-c.md", "True", "NO", "on", "null", "y", "", " ", "1.0", "a b", "a: b", "#x", "- x", "é", "ü😀"),
        *('"', "\\", "it's", "{a, b}", "line\nend", "\x1b", "\u2028", "\x85", "\ufeff"),
    ],
    ids=ascii,
)
def test_yaml_reads_back_what_was_written_as_a_value_a_key_and_in_brackets(text):
    written = yaml_text(text)
    assert yaml.safe_load(f"{{{written}: [{written}, {written}]}}") == {text: [text, text]}
    assert yaml.safe_load(f"{written}: {written}") == {text: text}
