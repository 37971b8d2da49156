"""`deepwork inbox`: what waits for a person, and their answers."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import anyio
import click
from click.shell_completion import CompletionItem

from deepwork.api import Project, project_at
from deepwork.builtin.people.comments_file import Said, read_file
from deepwork.builtin.people.items import look, looked, named, run
from deepwork.builtin.people.notifications import notifier_of
from deepwork.builtin.people.notifier import Notifier
from deepwork.builtin.people.review import review
from deepwork.commands.groups import CommandGroup
from deepwork.commands.options import json_option, path_option
from deepwork.commands.person import at_terminal
from deepwork.commands.terminal import Styled, redraw, say, say_json, say_json_line, say_notices, say_text
from deepwork.errors import ConfigError
from deepwork.paths.user_folders import user_config_file
from deepwork.ports.inbox import Answer, InboxAction, InboxContents, InboxFailure, InboxItem
from deepwork.programs.stdout import stdout_on_stderr
from deepwork.text import age, visible

LOOK_SECONDS = 1.0
# The beginning of an id that is shown has at least so much of what follows its source.
MIN_BEGINNING = 8
MAX_SHOWN_ID = 40
DETAIL_LINES = 3


def complete_id(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the id of an item."""
    return [
        CompletionItem(item.id, help=visible(item.what))
        for item in _items_to_complete(context)
        if item.id.startswith(typed)
    ]


def complete_action(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the actions of the item whose id was typed before."""
    item_id = str(context.params.get("item_id") or "")
    return [
        CompletionItem(action.name, help=action.label)
        for item in _items_to_complete(context)
        if item.id.startswith(item_id)
        for action in item.actions
        if action.name.startswith(typed)
    ]


def complete_task(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the tasks that the action typed before can be about."""
    item_id, name = (str(context.params.get(key) or "") for key in ("item_id", "action"))
    return [
        CompletionItem(task_id, help=visible(task_name))
        for item in _items_to_complete(context)
        if item.id.startswith(item_id)
        for action in item.actions
        if action.name == name
        for task_id, task_name in action.tasks.items()
        if task_id.startswith(typed)
    ]


def _items_to_complete(context: click.Context) -> Sequence[InboxItem]:
    with suppress(Exception):  # a shell that completes has no place for errors
        return looked(project_at(context.params.get("root") or ".")).items
    return ()


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    epilog="Example: deepwork inbox answer sessions:3f2a override --text 'I have read it'",
)
@path_option
@click.option("--watch", is_flag=True, help="Go on showing it, until Ctrl-C.")
@click.option("--notify", is_flag=True, help="With --watch: also send notifications, as your own config.yml says.")
@json_option
@click.pass_context
def inbox(context: click.Context, root: str, watch: bool, notify: bool, as_json: bool) -> None:
    """Show what waits for a person: who waits, for what, since when, and what can be done.

    That is steps whose reviews have failed too often, overrides that a strict gate asks a person for, damaged
    sessions, reviewers that cannot work, and what plugins add: blockers, tasks and messages for people.
    """
    if context.invoked_subcommand is not None:
        return
    if notify and not watch:
        raise click.UsageError("--notify needs --watch: notifications are sent as long as the command runs")
    project = project_at(root)
    if watch:
        run(project, lambda: _watch(project, notify=notify, as_json=as_json))
        return
    contents = looked(project)
    say_notices(project.notices())
    if as_json:
        say_json(contents.as_json())
        return
    for line in _lines(contents, datetime.now(UTC)):
        say(*line)
    if contents.more:
        say(_more(contents))
    _say_failures(contents.failures)
    if not contents.total:
        limit = ", as far as the others can say" if contents.failures else ""
        say(f"Nothing waits for a person{limit}.", err=True)
    elif any(item.actions for item in contents.items):
        say("deepwork inbox answer ID ACTION answers one, `inbox show ID` shows all of it.", err=True)


@inbox.command()
@click.argument("item_id", metavar="ID", shell_complete=complete_id)
@path_option
@json_option
def show(item_id: str, root: str, as_json: bool) -> None:
    """Show one item with everything that is known of it. The beginning of its id is enough."""
    project = project_at(root)
    item = named(looked(project), item_id)
    if as_json:
        say_json(item.as_json())
        return
    say(Styled(item.id, bold=True))
    say_text(item.what, "what     ")
    say(f"kind     {item.kind}")
    say(f"who      {item.who or '-'}")
    say(f"since    {item.since or '-'}")
    if item.held_by:
        say(f"held by  {item.held_by}")
    say(f"about    {' '.join(f'{key}={value}' for key, value in item.reference.items())}")
    if item.detail:
        say_text(item.detail, "detail   ")
    for path in item.files:
        say_text(path, "file     ")
    for criterion in item.criteria:
        say_text(criterion, "asked    ")
    for action in item.actions:
        say_text(_call(item.id, action), "do       ")


@inbox.command(epilog="Example: deepwork inbox answer sessions:3f2a retry --text 'The data are corrected'")
@click.argument("item_id", metavar="ID", shell_complete=complete_id)
@click.argument("action", metavar="ACTION", shell_complete=complete_action)
@click.option("--text", metavar="TEXT", help="The reason, reply or note that the action needs; asked for if missing.")
@click.option(
    "--comments",
    "comments_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Comments on lines, for changes and pass: JSON, or as `inbox review` writes them.",
)
@click.option(
    "--task",
    "task_id",
    metavar="ID",
    shell_complete=complete_task,
    help="The task that is meant, where several can be; asked for if missing.",
)
@path_option
@json_option
def answer(
    item_id: str,
    action: str,
    text: str | None,
    comments_file: str | None,
    task_id: str | None,
    root: str,
    as_json: bool,
) -> None:
    """Answer a waiting item: ACTION is one that `deepwork inbox` lists for it.

    The beginning of an id is enough. It needs a terminal, because only a person may answer.
    """
    project, by = project_at(root), at_terminal()
    by.check_person("answer what waits in the inbox")
    remarks = read_file(Path(comments_file)) if comments_file else Said()

    async def carry_out() -> tuple[InboxItem, str]:
        item = named(await look(project, by), item_id)
        offered = next((offered for offered in item.actions if offered.name == action), None)
        task = _asked_task(offered) if task_id is None and offered else task_id
        answer_text = remarks.text or None if text is None and comments_file else text
        if answer_text is None and offered and not comments_file:
            answer_text = _asked(offered)
        given = Answer(action, answer_text, task=task, comments=remarks.comments, state=item.state)
        with stdout_on_stderr():
            return item, await project.inbox().answer(item.id, given, by)

    item, result = run(project, carry_out)
    if as_json:
        say_json({"id": item.id, "action": action, "result": result})
        return
    say(result)


@inbox.command("test")
@path_option
@json_option
def send_test(root: str, as_json: bool) -> None:
    """Send a test notification to every recipient in your own config.yml, and tell whether it was accepted."""
    notifier = _notifier(project_at(root))
    results = anyio.run(notifier.test)
    if as_json:
        say_json({name: error.message if error else None for name, error in results.items()})
    else:
        for name, error in results.items():
            say(error.message if error else f"{name} has it", err=error is not None)
    if any(results.values()):
        raise click.exceptions.Exit(1)


inbox.add_command(review)


def _notifier(project: Project) -> Notifier:
    notifier = notifier_of(project)
    if notifier is None:
        raise ConfigError(
            "your own config.yml names no recipient of notifications",
            hint=f"Set notifications.webhook or notifications.command in {user_config_file(os.environ)}.",
        )
    return notifier


# Watching


async def _watch(project: Project, *, notify: bool, as_json: bool) -> None:
    """Show the inbox again whenever it has changed, until the user ends it."""
    notifier = _notifier(project) if notify else None
    by = at_terminal()
    show_contents = _JsonLines() if as_json else _Screen() if sys.stdout.isatty() else _Changes()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_at_signal, tasks.cancel_scope)
        if notifier:
            tasks.start_soon(notifier.run)
        while True:
            show_contents(await look(project, by), _notes(notifier) if notifier else ())
            await anyio.sleep(LOOK_SECONDS)


async def _end_at_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()
            return


def _notes(notifier: Notifier) -> tuple[str, ...]:
    """Return notes on how the notifications are doing."""
    return f"Notifications: {notifier.state}", *notifier.problems.values()


class _Screen:
    """Draws the whole inbox on a terminal."""

    def __init__(self) -> None:
        self._drawn: list[Line] = []

    def __call__(self, contents: InboxContents, notes: Sequence[str]) -> None:
        count = contents.total
        title = f"{count:,} {'thing waits' if count == 1 else 'things wait'} for a person. Ctrl-C ends this."
        failures = [f"{failure.source}: {failure.error}" for failure in contents.failures]
        others = [part for text in (*failures, *notes) for part in _wrapped(text, "")]
        lines: list[Line] = [(title,), ("",), *_lines(contents, datetime.now(UTC)), *((text,) for text in others)]
        room = max(5, shutil.get_terminal_size((80, 24)).lines - 2)
        if len(lines) > room:
            lines = [*lines[: room - 1], (f"… {len(lines) - room + 1} more lines: `deepwork inbox` shows them",)]
        if lines != self._drawn:
            redraw(lines)
            self._drawn = lines


class _Changes:
    """Prints a line for everything that is new or has gone, for logs and pipes."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._notes: set[str] = set()

    def __call__(self, contents: InboxContents, notes: Sequence[str]) -> None:
        unknown = {failure.source for failure in contents.failures}
        states = {item.id: item.state for item in contents.items}
        for item in contents.items:
            if self._states.get(item.id) != item.state:
                say(f"waits  {item.id}  {item.kind}  {item.what}")
        for item_id in self._states.keys() - states.keys():
            # A listing that is cut does not show whether an item is gone, or only made room for another.
            if contents.more or item_id.partition(":")[0] in unknown:
                states[item_id] = self._states[item_id]
            else:
                say(f"gone   {item_id}")
        texts = {*notes, *(f"{failure.source}: {failure.error}" for failure in contents.failures)}
        for text in sorted(texts - self._notes):
            say_text(text, "Note: ", err=True)
        self._states, self._notes = states, texts
        sys.stdout.flush()


class _JsonLines:
    """Prints the whole inbox as JSON in one line whenever it has changed."""

    def __init__(self) -> None:
        self._printed: InboxContents | None = None

    def __call__(self, contents: InboxContents, notes: Sequence[str]) -> None:
        if contents != self._printed:
            say_json_line(contents.as_json())
            self._printed = contents


# What is asked for


def _asked(action: InboxAction) -> str | None:
    """Ask for the text of an action."""
    return None if action.text is None else str(click.prompt(action.text.capitalize(), err=True))


def _asked_task(action: InboxAction) -> str | None:
    """Ask which of several tasks an action is about."""
    if len(action.tasks) < 2:
        return None
    for task_id, name in action.tasks.items():
        say_text(f"{task_id}  {name}", err=True)
    return str(click.prompt("Task", type=click.Choice([*action.tasks]), show_choices=False, err=True))


# What is printed

Line = tuple[str | Styled, ...]


def _lines(contents: InboxContents, now: datetime) -> Iterator[Line]:
    """Write the items for a terminal of any width."""
    beginnings = _beginnings([item.id for item in contents.items])
    for item in contents.items:
        beginning = visible(beginnings[item.id])
        since = f"{age(item.since, now)} ago" if item.since else ""
        held = f"held by {item.held_by}" if item.held_by else ""
        head = "  ".join(filter(None, [beginning, item.kind, since, item.who, held]))
        first, *more = _wrapped(head, "", "  ")
        is_whole = first.startswith(beginning)
        yield (Styled(beginning, bold=True), first[len(beginning) :]) if is_whole else (first,)
        yield from ((text,) for text in more)
        yield from ((text,) for text in _wrapped(item.what, "  "))
        yield from ((text,) for text in _detail_lines(item.detail))
        yield from ((text,) for text in _wrapped(_choices(item), "  "))


def _detail_lines(detail: str) -> list[str]:
    lines = [line for line in detail.split("\n") if line.strip()]
    wrapped = [part for line in lines[:DETAIL_LINES] for part in _wrapped(line, "  | ")]
    cut = len(lines) > DETAIL_LINES or len(wrapped) > DETAIL_LINES
    return [*wrapped[:DETAIL_LINES], *(["  | …"] if cut else [])]


def _choices(item: InboxItem) -> str:
    words = [_words(action) for action in item.actions]
    return f"-> {', or '.join(words)}" if words else "-> it goes by itself once its cause has gone"


def _words(action: InboxAction) -> str:
    task = " --task ID" if len(action.tasks) > 1 else ""
    return f"{action.name}{task}{f' --text {action.text.upper()}' if action.text else ''}"


def _wrapped(text: str, indent: str, hanging: str | None = None) -> list[str]:
    width = max(20, min(shutil.get_terminal_size((80, 24)).columns, 120))
    following = indent if hanging is None else hanging
    return textwrap.wrap(visible(text), width, initial_indent=indent, subsequent_indent=following) or [indent]


def _beginnings(ids: Sequence[str]) -> dict[str, str]:
    """Shorten long ids to beginnings that no other id has."""
    shortened = {}
    for item_id in ids:
        length = len(item_id)
        if length > MAX_SHOWN_ID:
            length = item_id.index(":") + 1 + MIN_BEGINNING
            while length < len(item_id) and sum(candidate.startswith(item_id[:length]) for candidate in ids) > 1:
                length += 1
        shortened[item_id] = item_id[:length]
    return shortened


def _call(item_id: str, action: InboxAction) -> str:
    task = " --task ID" if len(action.tasks) > 1 else ""
    text = f" --text '{action.text.upper()}'" if action.text else ""
    return f"deepwork inbox answer {item_id} {action.name}{task}{text}\n{action.label}"


def _more(contents: InboxContents) -> str:
    """Return what is said below a list that is cut."""
    return f"and {contents.more:,} more, which are listed when these are answered"


def _say_failures(failures: Iterable[InboxFailure]) -> None:
    for failure in failures:
        say_text(f"{failure.source} cannot say what waits: {failure.error}", "Note: ", err=True)
        if failure.hint:
            say_text(failure.hint, "Hint: ", err=True)
