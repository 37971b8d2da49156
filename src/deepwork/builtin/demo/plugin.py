"""The hooks of the feature `demo`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepwork import hookimpl
from deepwork.builtin.demo import COMMANDS

if TYPE_CHECKING:
    from click import Command


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """The commands of `COMMANDS`."""
    yield from (spec.load() for spec in COMMANDS.values())
