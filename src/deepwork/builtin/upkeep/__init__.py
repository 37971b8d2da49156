"""The feature `upkeep`: commands for who looks after a project: they list jobs, keep sessions, and try gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from click import Command


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """The commands that are added to the core's groups `sessions`, `gate` and `jobs`."""
    from deepwork.builtin.upkeep.commands import gate, jobs, sessions

    yield from (sessions, gate, jobs)
