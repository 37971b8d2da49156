"""The hooks: three tools, two commands and one check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from click import Command

    from deepwork.api import Check, PluginContext, ToolSet


@hookimpl
def deepwork_tool_sets(context: PluginContext) -> Iterator[ToolSet]:
    """The set `review`."""
    from deepwork_review.tools import tool_set

    yield tool_set(context)


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """`deepwork review` and `deepwork reviews`."""
    from deepwork_review.cli import review, reviews

    yield review
    yield reviews


@hookimpl
def deepwork_checks(context: PluginContext) -> Iterator[Check]:
    """The check `reviews`."""
    from deepwork_review.lint import check

    yield check(context)
