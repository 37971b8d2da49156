"""Text for terminals: characters that would control the terminal, or be invisible, are written as escapes."""

from __future__ import annotations

from unicodedata import category

# Control and format characters, lone surrogates, and the separators of lines and of paragraphs.
_ESCAPED_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def visible(text: str) -> str:
    r"""Write a name, a path or a sentence in one line: a line end in it becomes `\n`, an escape character `\x1b`."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def visible_lines(text: str) -> str:
    """Write a text of several lines: line ends and tabs stay, everything else is as in `visible`."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in lines)


def _escaped(char: str) -> str:
    return ascii(char)[1:-1] if category(char) in _ESCAPED_CATEGORIES else char
