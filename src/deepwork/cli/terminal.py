"""What people read: the one place that writes to the terminal. All of it is made visible, whoever wrote it."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import click
from click.exceptions import NoArgsIsHelpError

from deepwork.errors import DeepWorkError
from deepwork.text.escape import visible, visible_lines


class Styled(NamedTuple):
    """A part of a line in colour or bold: the only escapes that are meant."""

    text: str
    colour: str | None = None
    bold: bool | None = None


def say(*parts: str | Styled, err: bool = False) -> None:
    """Print one line, on stderr with `err`. A line end in a part is written out, for it may be a part of a name."""
    click.echo("".join(map(_drawn, parts)), err=err)


def say_text(text: str, *before: str | Styled, err: bool = False) -> None:
    """Print a text that may have lines; the first stands behind what is given, the others are indented as far."""
    indent = " " * sum(len(part.text if isinstance(part, Styled) else part) for part in before)
    first, *others = visible_lines(text).split("\n")
    lines = ["".join(map(_drawn, before)) + first, *(f"{indent}{line}" if line else "" for line in others)]
    click.echo("\n".join(lines), err=err)


def say_json(data: Any) -> None:
    """Print JSON for programs: exact, and ASCII alone."""
    click.echo(json.dumps(data, indent=2))


def say_error(error: DeepWorkError) -> None:
    """Print an expected error and its cure."""
    click.echo(f"Error: {_told(error.message)}", err=True)
    if error.hint:
        click.echo(f"Hint: {_told(error.hint)}", err=True)


def say_misuse(error: click.ClickException) -> None:
    """Print what click finds wrong with a command line, which can hold the names of any files."""
    if isinstance(error, NoArgsIsHelpError):
        error.show()
    else:
        click.UsageError(_told(error.format_message()), ctx=getattr(error, "ctx", None)).show()


def _told(message: str) -> str:
    """Let no later line of a message begin where `Error:` and `Hint:` do."""
    return re.sub(r"\n(?=\S)", "\n  ", visible_lines(message))


def _drawn(part: str | Styled) -> str:
    if isinstance(part, Styled):
        return click.style(visible(part.text), fg=part.colour, bold=part.bold)
    return visible(part)
