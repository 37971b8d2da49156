"""What waits for people in one project, gathered from the core and all plugins."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio

from deepwork.errors import ArgumentError, DeepWorkError, ItemChanged, PluginLoadError, UnknownItem
from deepwork.loading.discovery import Candidate
from deepwork.loading.faults import fault, hint_to_block, told_as_fault
from deepwork.loading.manager import Answers, Provided
from deepwork.ports.inbox import (
    Answer,
    Answerer,
    Inbox,
    InboxAction,
    InboxContents,
    InboxFailure,
    InboxItem,
    InboxSource,
)
from deepwork.text import is_blank, nearest, one_line, shorten

# A source that takes longer is shown as failed; the others are not held up.
SECONDS = 10.0
# So many of each source are listed. A person could not choose among more, and they would be read every second.
MAX_ITEMS = 1000
MAX_WHAT = 200
MAX_DETAIL = 4000
MAX_LINES = 20
MAX_LINE = 1000
MAX_TEXT = 10_000

TEXTS = ("id", "kind", "what", "since", "state", "detail")
LISTS = ("files", "criteria")


class ProjectInbox(Inbox):
    """The sources of one project; those of features come first, and no plugin can take their names."""

    def __init__(self, answers: Answers[InboxSource]) -> None:
        self._overdue: dict[str, asyncio.Task[InboxContents]] = {}
        self._failures = [_failure(failure.by, failure.item) for failure in answers.failures]
        self._sources: dict[str, Provided[InboxSource]] = {}
        for source in map(_named, answers.items):
            if source.by.name in self._sources:
                text = f"{source.by} offers a second InboxSource, or one under a name of the core's"
                error = PluginLoadError(text, hint=hint_to_block(source.by))
                self._failures.append(_failure(source.by, error))
            else:
                self._sources[source.by.name] = source

    async def items(self, by: Answerer) -> InboxContents:
        """Ask all sources at once."""
        items: list[InboxItem] = []
        more = 0
        failures = [*self._failures]

        async def ask(name: str, source: Provided[InboxSource]) -> None:
            nonlocal more
            try:
                contents = await self._contents(name, source)
                listed, rest = _listed(name, contents, by)
                items.extend(listed)
                more += rest
            except DeepWorkError as error:
                failures.append(_failure(source.by, error))

        async with anyio.create_task_group() as tasks:
            for name, source in self._sources.items():
                tasks.start_soon(ask, name, source)
        return InboxContents(
            items=tuple(sorted(items, key=_order)),
            failures=tuple(sorted(failures, key=lambda failure: failure.source)),
            more=more,
        )

    async def answer(self, item_id: str, answer: Answer, by: Answerer) -> str:
        """Look at the item as it is now, then have its source carry the action out."""
        by.check_person("answer what waits in the inbox")
        source, item = await self._waiting(item_id, answer.action, by)
        if answer.state not in (None, item.state):
            raise _changed(item_id)
        action = _chosen(item, answer.action)
        if answer.comments and not action.comments:
            raise ArgumentError(f"{action.name!r} takes no comments; nothing was changed")
        task = None if action.comments else _chosen_task(action, answer.task)
        text = _bounded_text(action, answer.text) if action.comments else _checked_text(action, answer.text)
        own_id, target = item_id.partition(":")[2], source.item
        with told_as_fault(source.by, f"answer {action.name!r}"):
            if action.comments:
                checked = replace(answer, text=text, state=item.state)
                sentence = await target.answer_comments(own_id, checked, by)
            elif task is None:
                sentence = await target.answer(own_id, action.name, text, by)
            else:
                sentence = await target.answer_task(own_id, action.name, task, text, by)
            return one_line(sentence, MAX_WHAT)

    async def _waiting(self, item_id: str, action: str, by: Answerer) -> tuple[Provided[InboxSource], InboxItem]:
        """Look for an item, and return its source with it.

        Raises:
            ItemChanged: Another person was first with this action.
            UnknownItem: Nothing waits under this id.
        """
        name, _, own_id = item_id.partition(":")
        source = self._sources.get(name)
        contents = await self._contents(name, source) if source else InboxContents(items=())
        item = next((item for item in contents.items if item.id == own_id and by.may_see(item)), None)
        if source and item:
            return source, _shown(name, item)
        if source and action in source.item.contested:
            raise _changed(item_id)
        unlisted = f" {contents.more:,} more wait that are not listed yet." if contents.more else ""
        raise UnknownItem(
            f"Nothing waits under the id {item_id!r}; nothing was changed",
            hint=f"It may have been answered meanwhile.{unlisted} `deepwork inbox` lists what waits.",
        )

    async def close(self) -> None:
        """Cancel the requests that sources have not answered."""
        for task in self._overdue.values():
            task.cancel()
        self._overdue.clear()

    async def _contents(self, name: str, source: Provided[InboxSource]) -> InboxContents:
        """Ask one source in a task of its own: a source that waits for a database in a thread cannot be cancelled.

        Raises:
            DeepWorkError: It has failed, or does not answer in time. It is not asked again until it has answered.
        """
        overdue = self._overdue.get(name)
        if overdue is None or overdue.done():
            self._overdue.pop(name, None)
            task = asyncio.create_task(_contents(source))
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
        """Have every source send notifications.

        Raises:
            ConfigError: What is configured cannot be used.
        """
        try:
            async with anyio.create_task_group() as tasks:
                for source in self._sources.values():
                    tasks.start_soon(source.item.notify, self)
        except BaseExceptionGroup as group:
            if len(group.exceptions) == 1:
                raise group.exceptions[0] from None
            raise


def _named(source: Provided[InboxSource]) -> Provided[InboxSource]:
    """Name a source: after its plugin, or as the source of a feature says."""
    name = source.item.name if source.by.builtin else ""
    return Provided(source.item, replace(source.by, name=name)) if name else source


async def _contents(source: Provided[InboxSource]) -> InboxContents:
    """Ask one source, and check what it says.

    Raises:
        DeepWorkError: It has failed.
    """
    try:
        answer = await source.item.items()
        contents = answer if isinstance(answer, InboxContents) else InboxContents(items=(*answer,))
        problem = _problem(contents)
    except DeepWorkError:
        raise
    except Exception as error:
        raise fault(source.by, "its inbox", error) from error
    if problem:
        raise PluginLoadError(f"{source.by}: its inbox {problem}", hint=hint_to_block(source.by))
    return contents


def _listed(name: str, contents: InboxContents, by: Answerer) -> tuple[list[InboxItem], int]:
    """Return the items of a source that a person is shown, and how many further items are theirs to see.

    Items that they may not see are left out first: the items of one principal must not push out those of another.
    """
    items = sorted(filter(by.may_see, contents.items), key=_order)
    return [_shown(name, item) for item in _first(items)], max(0, len(items) - MAX_ITEMS) + contents.more


def _first(items: Sequence[InboxItem]) -> Sequence[InboxItem]:
    """Return as many items as are listed, in their order: every principal gets one before any gets a second.

    The share of a principal is divided in the same way among those who wait.
    """
    if len(items) <= MAX_ITEMS:
        return items
    places = [*range(len(items))]
    for group in (lambda item: (item.principal, item.who)), (lambda item: item.principal):
        counts: Counter[Hashable] = Counter()
        turns = {}
        for place in places:
            turns[place] = counts[group(items[place])]
            counts[group(items[place])] += 1
        places.sort(key=turns.__getitem__)
    return [items[place] for place in sorted(places[:MAX_ITEMS])]


def _order(item: InboxItem) -> tuple[int, str, str]:
    return -item.urgency, item.since, item.id


def _shown(name: str, item: InboxItem) -> InboxItem:
    return replace(
        item,
        id=f"{name}:{item.id}",
        what=one_line(item.what, MAX_WHAT),
        detail=shorten(item.detail, MAX_DETAIL),
        files=_lines(item.files),
        criteria=_lines(item.criteria),
        reference=dict(item.reference),
        source=name,
    )


def _lines(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(one_line(text, MAX_LINE) for text in texts[:MAX_LINES])


def _ended(task: asyncio.Task[InboxContents]) -> None:
    """Retrieve the error of an abandoned source: asyncio would complain of it."""
    if not task.cancelled():
        task.exception()


def _problem(contents: InboxContents) -> str | None:
    """Return what is wrong with the items of a plugin."""
    items: Sequence[Any] = contents.items
    stray = next((item for item in items if not isinstance(item, InboxItem)), None)
    if stray is not None:
        return f"gave {stray!r:.100}, not an InboxItem"
    texts = [(item, name) for item in items for name in TEXTS if not isinstance(getattr(item, name), str)]
    if texts:
        return f"gave an item whose {texts[0][1]} is {getattr(*texts[0])!r:.100}, not a text"
    lists = [(item, name) for item in items for name in LISTS if not _are_texts(getattr(item, name))]
    if lists:
        return f"gave an item whose {lists[0][1]} are {getattr(*lists[0])!r:.100}, not texts"
    urgency = next((item.urgency for item in items if not isinstance(item.urgency, int)), None)
    if urgency is not None:
        return f"gave an item whose urgency is {urgency!r:.100}, not a whole number"
    twice = next((item_id for item_id, count in Counter(item.id for item in items).items() if count > 1), None)
    tasks = next((action.tasks for item in items for action in item.actions if not _are_tasks(action.tasks)), None)
    if tasks is not None:
        return f"gave an action whose tasks are {tasks!r:.100}, not ids with names"
    # Each of the two would be a new state of the other, and people would be told of both without end.
    return None if twice is None else f"gave two items with the id {twice!r:.100}"


def _chosen(item: InboxItem, name: str) -> InboxAction:
    actions = {action.name: action for action in item.actions}
    if name not in actions:
        offered = nearest(name, [*actions]) if actions else "; it has none"
        raise ArgumentError(f"{item.id!r} has no action {name!r}{offered}; nothing was changed")
    return actions[name]


def _are_texts(values: Any) -> bool:
    return isinstance(values, tuple | list) and all(isinstance(value, str) for value in values)


def _are_tasks(tasks: Any) -> bool:
    return isinstance(tasks, Mapping) and all(isinstance(text, str) for pair in tasks.items() for text in pair)


def _chosen_task(action: InboxAction, task: str | None) -> str | None:
    """Return the task that is meant; None for an action that is about the item itself."""
    if task is None and len(action.tasks) < 2:
        return next(iter(action.tasks), None)
    if task in action.tasks:
        return task
    if not action.tasks:
        raise ArgumentError(f"{action.name!r} is about the whole item and takes no task; nothing was changed")
    listed = ", ".join(f"{task_id} ({name})" for task_id, name in action.tasks.items())
    problem = f"can be about {len(action.tasks)} tasks" if task is None else f"cannot be about the task {task[:100]!r}"
    raise ArgumentError(
        f"{action.name!r} {problem}; nothing was changed. It can be about: {listed}", hint="In a terminal: --task ID."
    )


def _changed(item_id: str) -> ItemChanged:
    return ItemChanged(
        f"{item_id!r} has changed since you saw it; nothing was changed", hint="Look at it again, then answer."
    )


def _checked_text(action: InboxAction, text: str | None) -> str | None:
    if action.text is None:
        return None
    if text is None or is_blank(text):
        raise ArgumentError(
            f"{action.name!r} needs a text, the {action.text}; nothing was changed", hint="In a terminal: --text '…'."
        )
    return _bounded_text(action, text)


def _bounded_text(action: InboxAction, text: str | None) -> str | None:
    if text is not None and len(text) > MAX_TEXT:
        raise ArgumentError(f"The {action.text} has {len(text):,} characters; the limit is {MAX_TEXT:,}")
    return text.strip() if text else None


def _failure(plugin: Candidate, error: DeepWorkError) -> InboxFailure:
    return InboxFailure(source=plugin.name, error=error.message, hint=error.hint)
