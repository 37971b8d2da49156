"""Text of others, made fit for a terminal: what would steer it, or could not be seen, is written as an escape."""

from __future__ import annotations

from unicodedata import category

# Control and format characters, lone surrogates, and the separators of lines and of paragraphs.
_OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def visible(text: str) -> str:
    r"""Write a name, a path or a sentence in one line: a line end in it becomes `\n`, an escape character `\x1b`."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def visible_lines(text: str) -> str:
    """Write a text that may have lines: its line ends and tabs stay, everything else is as in `visible`."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in lines)


def _escaped(char: str) -> str:
    return ascii(char)[1:-1] if category(char) in _OBEYED else char


def quoted(value: object, limit: int = 60) -> str:
    """Quote a value for a message: escaped, and cut where it is long."""
    text = repr(value[:limit]) if isinstance(value, str) else ascii(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
