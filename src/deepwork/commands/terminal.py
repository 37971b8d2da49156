"""The only module that writes to the terminal. It escapes every text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import click
from click.exceptions import NoArgsIsHelpError

from deepwork.errors import DeepWorkError
from deepwork.text import BAR, quoted_lines, visible, visible_lines


class Styled(NamedTuple):
    """A part of a line in colour or bold; no other escape sequences are written."""

    text: str
    colour: str | None = None
    bold: bool | None = None


def say(*parts: str | Styled, err: bool = False) -> None:
    """Print one line, on stderr with `err`. A line end in a part is escaped, because it may belong to a name."""
    click.echo("".join(map(_drawn, parts)), err=err)


def say_text(text: str, *before: str | Styled, err: bool = False) -> None:
    """Print a text of one or more lines: as it is, or after `before`, as a text from an untrusted author.

    Then its further lines stand behind bars, below the first one, so that none looks like a line of ours; the first
    does so too if there is nothing but an indentation before it.
    """
    if not before:
        click.echo(visible_lines(text), err=err)
        return
    label = "".join(part.text if isinstance(part, Styled) else part for part in before)
    first, *more_lines = text.splitlines() or [""]
    bar = BAR if more_lines and label.isspace() else ""
    click.echo("".join(map(_drawn, before)) + bar + visible_lines(first), err=err)
    if more_lines:
        click.echo(quoted_lines("\n".join(more_lines), " " * len(label)), err=err)


def redraw(lines: Iterable[tuple[str | Styled, ...]]) -> None:
    """Draw these lines over what the terminal shows, without clearing it first, which would flicker."""
    drawn = ("".join(map(_drawn, parts)) + "\x1b[K\n" for parts in lines)
    click.echo("\x1b[H" + "".join(drawn) + "\x1b[J", nl=False)


def say_json(data: Any) -> None:
    """Print JSON for programs: every text exactly, in ASCII."""
    click.echo(json.dumps(data, indent=2))


def say_json_line(data: Any) -> None:
    """Print JSON on one line, for programs that read a line at a time."""
    click.echo(json.dumps(data))


def say_notices(notices: Iterable[str]) -> None:
    """Print on stderr what of the configuration has no effect."""
    for notice in notices:
        say_text(notice, "Note: ", err=True)


def say_error(error: DeepWorkError) -> None:
    """Print an expected error and its hint."""
    click.echo(f"Error: {_indented(error.message)}", err=True)
    if error.hint:
        click.echo(f"Hint: {_indented(error.hint)}", err=True)


def say_misuse(error: click.ClickException) -> None:
    """Print click's error about a command line; it may contain any text that the user typed."""
    if isinstance(error, NoArgsIsHelpError):
        error.show()
    else:
        click.UsageError(visible(error.format_message()), ctx=getattr(error, "ctx", None)).show()


def _indented(message: str) -> str:
    """Indent the further lines of a message, so that none of them looks like `Error:` or `Hint:`."""
    return re.sub(r"\n(?=\S)", "\n  ", visible_lines(message))


def _drawn(part: str | Styled) -> str:
    if isinstance(part, Styled):
        return click.style(visible(part.text), fg=part.colour, bold=part.bold)
    return visible(part)
