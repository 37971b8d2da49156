r"""Text for people and agents: escaping, shortening, ages and did-you-mean, one recipe each.

Much of it was written by others: names, goals, bodies, output of programs.

A reader of plain text cannot tell our lines from the lines of a text. So a name becomes one line
(`visible`, `one_line`, `quoted`), and a text of several lines stands behind a bar (`quoted_lines`). Characters that
would control a terminal or be invisible are written as escapes. Values of JSON need none of this: they are passed on as
they are.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
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

# What YAML reads as text without quotes, also within brackets, unless it is one of the words for other values.
_PLAIN_YAML = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_YAML_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "y", "n", "null"))

MAX_NAME = 100
MAX_LISTED = 20
# Comparing a name takes about a tenth of a millisecond for each valid name, and an author may have made very many.
MAX_COMPARED = 300
# From this likeness on (0 to 1) a name counts as a slip of the other; below it a suggestion misleads.
NEAR = 0.75

# An agent that has made no call for so many seconds may have gone.
QUIET_SECONDS = 300

_JSON_TYPES = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}


def visible(text: str) -> str:
    r"""Return a name, a path or a sentence in one line: a line end in it becomes `\n`, an escape character `\x1b`."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def visible_lines(text: str) -> str:
    """Return a text of several lines: line ends and tabs stay, everything else is as in `visible`.

    The lines are not marked as foreign: use it for a text that stands alone, or is our own.
    """
    if text.isprintable():
        return text
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


def yaml_text(text: str) -> str:
    """Return a text as one line of YAML that is read as this text, in brackets and as a key too."""
    if _PLAIN_YAML.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(char if char.isprintable() else f"{chr(92)}U{ord(char):08x}" for char in escaped)}"'


def is_blank(text: str) -> bool:
    """True if nothing of a text can be seen."""
    return all(char in _FILLERS or category(char)[0] in _UNSEEN_CLASSES for char in text)


def age(moment: str, now: datetime) -> str:
    """Return how long ago something was; files of other releases may hold any text."""
    try:
        seconds = max(0, int((now - datetime.fromisoformat(moment).astimezone()).total_seconds()))
    except ValueError:
        return "some time"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def no_agent(last_call_at: str, gone_at: str, now: datetime) -> str:
    """Return `no agent since 14 min` for a session whose agent has gone, or is quiet for five minutes; else ""."""
    if gone_at:
        return f"no agent since {age(gone_at, now)}"
    try:
        seconds = (now - datetime.fromisoformat(last_call_at).astimezone()).total_seconds()
    except ValueError:
        return ""
    return f"no agent since {age(last_call_at, now)}" if seconds >= QUIET_SECONDS else ""


def near(name: str, valid: Sequence[str]) -> str | None:
    """Return the valid name that was probably meant; None if none is near."""
    import difflib  # hooks import this module, and suggest nothing

    if len(name) > MAX_NAME or len(valid) > MAX_COMPARED:
        return None
    short_enough = [text for text in valid if len(text) <= MAX_NAME]
    close = difflib.get_close_matches(name, short_enough, n=1, cutoff=NEAR)
    return close[0] if close else None


def nearest(name: str, valid: Sequence[str]) -> str:
    """Suggest the valid name that was probably meant, or list them all; for the end of a message."""
    close = near(name, valid)
    if close:
        return f"; did you mean {close!r}?"
    some = [visible(text[:MAX_NAME]) for text in heapq.nsmallest(MAX_LISTED, valid)]
    return f"; valid: {', '.join(some)}{', …' if len(some) < len(valid) else ''}" if valid else ""


def json_type(value: Any) -> str:
    """Return the type of a value; null, true and false are their own names."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _JSON_TYPES.get(type(value), type(value).__name__)


def tokens_of(name: str, description: str | None, schema: Any) -> int:
    """Return about how many tokens a tool costs with every request; about four characters are a token."""
    return len(f"{name}{description}{json.dumps(schema, separators=(',', ':'))}") // 4


def _escaped(char: str) -> str:
    return ascii(char)[1:-1] if category(char) in _ESCAPED_CATEGORIES else char


def is_past(moment: str, now: datetime) -> bool:
    """True if a moment has come; a text that is not a moment counts as past."""
    try:
        return datetime.fromisoformat(moment).astimezone() <= now
    except ValueError:
        return True


def paused(until: str, cause: str, now: datetime) -> str:
    """Return `waits until 15:40: usage limit of claude` in local time, or else an empty text once that is over."""
    if is_past(until, now):
        return ""
    moment, local_now = datetime.fromisoformat(until).astimezone(), now.astimezone()
    day = "" if moment.date() == local_now.date() else f"{moment:%Y-%m-%d} "
    return f"waits until {day}{moment:%H:%M}: {cause}"


def is_overdue(since: str, after: float | None) -> bool:
    """True if something waits for longer than so many seconds; None lets it wait for ever."""
    try:
        return after is not None and datetime.now(UTC).timestamp() > datetime.fromisoformat(since).timestamp() + after
    except ValueError:
        return False
