"""What of a text reaches a terminal as it is, and what as an escape."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from deepwork.text.foreign import visible, visible_lines


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


def test_of_all_characters_those_are_escaped_that_are_obeyed_and_no_others():
    obeyed = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    for char in map(chr, range(sys.maxunicode + 1)):
        assert (visible(char) != char) == (unicodedata.category(char) in obeyed)


def test_a_text_of_several_lines_keeps_its_line_ends_and_tabs_alone():
    assert (
        visible_lines("one\n\ttwo\r\nthree\x1b[2J\rfour\x0b\u2028\n")
        == "one\n\ttwo\nthree\\x1b[2J\\rfour\\x0b\\u2028\n"
    )
