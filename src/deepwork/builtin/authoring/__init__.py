"""The workbench for authors of jobs: the commands of `deepwork jobs` that check, try, test, change and draw them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from click import Command


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """The commands that are added to the core's group `jobs`."""
    from deepwork.builtin.authoring.commands import jobs

    yield jobs
