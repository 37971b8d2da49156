"""What waits for people in one project, gathered from the core and all plugins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import anyio

from deepwork import __version__
from deepwork.errors import ArgumentError, DeepWorkError, PluginLoadError, UnknownItem
from deepwork.inbox.notifier import Notifier
from deepwork.loading.discovery import Candidate
from deepwork.loading.faults import fault, hint_to_block, told_as_fault
from deepwork.loading.manager import Answers, Provided
from deepwork.ports.inbox import (
    Answerer,
    Inbox,
    InboxAction,
    InboxContents,
    InboxFailure,
    InboxItem,
    InboxSource,
)
from deepwork.text.blank import is_blank
from deepwork.text.shorten import one_line, shorten
from deepwork.text.suggest import nearest

# A source that takes longer is shown as one that fails; the others are not held up.
SECONDS = 10.0
MAX_ITEMS = 1000
MAX_WHAT = 200
MAX_DETAIL = 4000
MAX_TEXT = 10_000
TEXTS = ("id", "kind", "what", "since", "state", "detail")


def of_core(name: str, source: InboxSource) -> Provided[InboxSource]:
    """Mark a source as the core's."""
    return Provided(source, Candidate(name, "deepwork", __version__, lambda: None, builtin=True))


class ProjectInbox(Inbox):
    """The sources of one project.

    Args:
        answers: Those of the plugins.
        core: Those of the core, whose names no plugin can take.
        notifier: Gives what sends notifications; None if the user has configured no receiver.
    """

    def __init__(
        self,
        answers: Answers[InboxSource],
        core: Iterable[Provided[InboxSource]],
        notifier: Callable[[], Notifier | None],
    ) -> None:
        self._notifier = notifier
        self._overdue: dict[str, asyncio.Task[list[InboxItem]]] = {}
        self._failures = [_failure(failure.by, failure.item) for failure in answers.failures]
        self._sources: dict[str, Provided[InboxSource]] = {}
        for source in (*core, *answers.items):
            if source.by.name in self._sources:
                text = f"{source.by} offers a second InboxSource, or one under a name of the core's"
                error = PluginLoadError(text, hint=hint_to_block(source.by))
                self._failures.append(_failure(source.by, error))
            else:
                self._sources[source.by.name] = source

    async def items(self, by: Answerer) -> InboxContents:
        """Ask all sources at once."""
        items: dict[str, list[InboxItem]] = {}
        failures = [*self._failures]

        async def ask(name: str, source: Provided[InboxSource]) -> None:
            try:
                items[name] = await self._items(name, source)
            except DeepWorkError as error:
                failures.append(_failure(source.by, error))

        async with anyio.create_task_group() as tasks:
            for name, source in self._sources.items():
                tasks.start_soon(ask, name, source)
        visible_items = [item for source_items in items.values() for item in source_items if by.may_see(item)]
        return InboxContents(
            items=tuple(sorted(visible_items, key=lambda item: (item.since, item.id))),
            failures=tuple(sorted(failures, key=lambda failure: failure.source)),
        )

    async def answer(
        self, item_id: str, action: str, text: str | None, by: Answerer, *, state: str | None = None
    ) -> str:
        """Look at the item as it is now, then have its source carry the action out."""
        name, _, own_id = item_id.partition(":")
        source = self._sources.get(name)
        items = {item.id: item for item in await self._items(name, source) if by.may_see(item)} if source else {}
        item = items.get(item_id)
        if source is None or item is None:
            raise UnknownItem(
                f"Nothing waits under the id {item_id!r}; nothing was changed",
                hint="It may have been answered meanwhile. `deepwork inbox` lists what waits.",
            )
        if state is not None and state != item.state:
            raise ArgumentError(
                f"{item_id!r} has changed since you saw it; nothing was changed", hint="Look at it again, then answer."
            )
        chosen = _chosen(item, action)
        with told_as_fault(source.by, f"answer {action!r}"):
            return one_line(await source.item.answer(own_id, chosen.name, _checked_text(chosen, text), by), MAX_WHAT)

    async def close(self) -> None:
        """Give up what sources have not answered."""
        for task in self._overdue.values():
            task.cancel()
        self._overdue.clear()

    async def _items(self, name: str, source: Provided[InboxSource]) -> list[InboxItem]:
        """Ask one source in a task of its own: one that waits for a database in a thread cannot be cancelled.

        Raises:
            DeepWorkError: It has failed, or does not answer in time. It is not asked again until it has answered.
        """
        overdue = self._overdue.get(name)
        if overdue is None or overdue.done():
            self._overdue.pop(name, None)
            task = asyncio.create_task(_items(name, source))
            try:
                await asyncio.wait({task}, timeout=SECONDS)
            except BaseException:
                task.cancel()
                raise
            if task.done():
                return task.result()
            task.add_done_callback(_ended)
            self._overdue[name] = task
        raise PluginLoadError(f"{source.by}: its inbox did not answer within {SECONDS:g} s")

    async def notify(self) -> None:
        """Run the notifier, if there is one."""
        notifier = self._notifier()
        if notifier:
            await notifier.run()


async def _items(name: str, source: Provided[InboxSource]) -> list[InboxItem]:
    """Ask one source, and give its items as the inbox shows them.

    Raises:
        DeepWorkError: It has failed.
    """
    try:
        items = [*await source.item.items()]
    except DeepWorkError:
        raise
    except Exception as error:
        raise fault(source.by, "its inbox", error) from error
    if problem := _problem(items):
        raise PluginLoadError(f"{source.by}: its inbox {problem}", hint=hint_to_block(source.by))
    return [
        replace(
            item,
            id=f"{name}:{item.id}",
            what=one_line(item.what, MAX_WHAT),
            detail=shorten(item.detail, MAX_DETAIL),
            reference=dict(item.reference),
            source=name,
        )
        for item in items
    ]


def _ended(task: asyncio.Task[list[InboxItem]]) -> None:
    """Look at the error of a source that nobody waits for any more, of which asyncio would complain."""
    if not task.cancelled():
        task.exception()


def _problem(items: list[Any]) -> str | None:
    """Say what is wrong with the items of a plugin."""
    wrong = next((item for item in items if not isinstance(item, InboxItem)), None)
    if wrong is not None:
        return f"gave {wrong!r:.100}, not an InboxItem"
    if len(items) > MAX_ITEMS:
        return f"has over {MAX_ITEMS:,} items"
    texts = [(item, name) for item in items for name in TEXTS if not isinstance(getattr(item, name), str)]
    if texts:
        return f"gave an item whose {texts[0][1]} is {getattr(*texts[0])!r:.100}, not a text"
    ids = [item.id for item in items]
    twice = next((item_id for item_id in ids if ids.count(item_id) > 1), None) if len(ids) > len(set(ids)) else None
    # Each of the two would be a new state of the other, and people would be told of both without end.
    return None if twice is None else f"gave two items with the id {twice!r:.100}"


def _chosen(item: InboxItem, name: str) -> InboxAction:
    actions = {action.name: action for action in item.actions}
    if name not in actions:
        offered = f"it has: {', '.join(actions)}" if actions else "it has none"
        raise ArgumentError(
            f"{item.id!r} has no action {name!r}; {offered}{nearest(name, [*actions])}; nothing was changed"
        )
    return actions[name]


def _checked_text(action: InboxAction, text: str | None) -> str | None:
    if action.text is None:
        return None
    if text is None or is_blank(text):
        raise ArgumentError(
            f"{action.name!r} needs a text, the {action.text}; nothing was changed", hint="In a terminal: --text '…'."
        )
    if len(text) > MAX_TEXT:
        raise ArgumentError(f"The {action.text} has {len(text):,} characters; the limit is {MAX_TEXT:,}")
    return text.strip()


def _failure(plugin: Candidate, error: DeepWorkError) -> InboxFailure:
    return InboxFailure(source=plugin.name, error=error.message, hint=error.hint)
