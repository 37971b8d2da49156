"""A command of the terminal that is imported when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from click import Command


class CommandSpec(NamedTuple):
    """A command of the kernel or of a feature.

    Attributes:
        target: Its module and its name there: `deepwork.cli.serve:serve`.
        place: Where it stands in the root's help, which lists commands as a new user needs them.
        summary: Its first sentence, so that the root's help imports no command.
        is_answer: Whether programs call it and go on after any answer: where its feature is left out it prints nothing
            and ends with 0.
    """

    target: str
    place: int
    summary: str
    is_answer: bool = False

    def load(self) -> Command:
        """Import the command."""
        module, _, name = self.target.partition(":")
        command: Command = getattr(import_module(module), name)
        return command
