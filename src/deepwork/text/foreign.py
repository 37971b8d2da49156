r"""Text that others wrote, as people and agents may be shown it: names, goals, bodies, output of programs.

A reader of plain text cannot tell our lines from those that a text brings along. So a name becomes one line
(`visible`, `one_line`, `quoted`), and a text of several lines stands behind a bar (`quoted_lines`). What would control
a terminal or be invisible is written as an escape. Values of JSON need none of this: they are passed on as they are.
"""

from __future__ import annotations

from unicodedata import category

MAX_VALUE = 60
MAX_LINE = 200
BAR = "| "

# Control and format characters, lone surrogates, and the separators of lines and of paragraphs.
_ESCAPED_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Letters and symbols that are drawn as nothing: the fillers of Hangul, the empty pattern of Braille, a null note head.
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\U0001d159")
# Control and format characters, separators, and marks that stand on another character.
_UNSEEN_CLASSES = frozenset("CZM")


def visible(text: str) -> str:
    r"""Return a name, a path or a sentence in one line: a line end in it becomes `\n`, an escape character `\x1b`."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def visible_lines(text: str) -> str:
    """Return a text of several lines: line ends and tabs stay, everything else is as in `visible`.

    The lines are not marked as those of somebody else: use it for a text that stands alone, or is our own.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in lines)


def quoted_lines(text: str, before: str = "") -> str:
    """Return a text of several lines, each behind `before` and a bar, so that none looks like a line of ours.

    A line ends wherever any reader would end it, at U+2028 and a lone carriage return too.
    """
    return "\n".join(f"{before}{BAR}{visible_lines(line)}" for line in text.splitlines() or [""])


def labelled(label: str, text: str) -> str:
    """Return a text behind its label: in the same line, or quoted below if it has several lines."""
    lines = text.strip().splitlines()
    return f"{label}:\n{quoted_lines(text.strip())}" if len(lines) > 1 else f"{label}: {visible(text.strip())}"


def shorten(text: str, limit: int) -> str:
    """Return a text cut to so many characters; the last of them then says that it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """Return a short line of a text: without line ends, and without invisible characters."""
    if len(text) <= limit and text.isprintable():
        return text
    # Only the beginning is shown, so the rest, which can be very long, is not looked at.
    line = visible(" ".join(text[: 2 * limit].split()))
    return shorten(f"{line}…" if len(text) > 2 * limit else line, limit)


def quoted(value: object, limit: int = MAX_VALUE) -> str:
    """Return a value as Python writes it, so that it is one line and its ends can be seen; a long one is cut."""
    return repr(shorten(value, limit)) if isinstance(value, str) else shorten(repr(value), limit)


def is_blank(text: str) -> bool:
    """True if nothing of a text can be seen."""
    return all(char in _FILLERS or category(char)[0] in _UNSEEN_CLASSES for char in text)


def _escaped(char: str) -> str:
    return ascii(char)[1:-1] if category(char) in _ESCAPED_CATEGORIES else char
