"""The items of the inbox for commands: asked for, and found by the beginning of an id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from deepwork.api import Project
from deepwork.commands.person import at_terminal
from deepwork.errors import ArgumentError, UnknownItem
from deepwork.ports.inbox import Answerer, InboxContents, InboxItem
from deepwork.programs.stdout import stdout_on_stderr

ResultT = TypeVar("ResultT")


def run(project: Project, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """Run something with the inbox, and close what it has opened."""

    async def run() -> ResultT:
        try:
            return await work()
        finally:
            await project.close()

    return anyio.run(run)


async def look(project: Project, by: Answerer) -> InboxContents:
    with stdout_on_stderr():  # sources are code of plugins
        return await project.inbox().items(by)


def looked(project: Project) -> InboxContents:
    return run(project, lambda: look(project, at_terminal()))


def named(contents: InboxContents, text: str) -> InboxItem:
    """Find the item of an id, or of the beginning of an id, with or without its source.

    Raises:
        UnknownItem: No item matches.
        ArgumentError: There are several.
    """
    exact = [item for item in contents.items if item.id == text]
    matches = exact or [
        item for item in contents.items if item.id.startswith(text) or item.id.partition(":")[2].startswith(text)
    ]
    if not matches:
        failed = "".join(f" {failure.source} cannot say what waits: {failure.error}." for failure in contents.failures)
        raise UnknownItem(f"Nothing waits under the id {text!r}.{failed}", hint="`deepwork inbox` lists what waits.")
    if len(matches) > 1:
        some = ", ".join(item.id for item in matches[:5])
        raise ArgumentError(f"{text!r} is the beginning of {len(matches)} ids: {some}", hint="Give more of it.")
    return matches[0]
