"""The hooks of the feature `people`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from deepwork import hookimpl
from deepwork.builtin.people import COMMANDS

if TYPE_CHECKING:
    from click import Command

    from deepwork.api import Check, Finding, InboxSource, Project, ReviewRunnerSpec


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """The commands of `COMMANDS`, and those that are added to the core's group `gate`."""
    from deepwork.builtin.people.comments import gate

    yield from (spec.load() for spec in COMMANDS.values())
    yield gate


@hookimpl
def deepwork_inbox(project: Project) -> Iterator[InboxSource]:
    """What of the core waits for people, and the notifications of what waits."""
    from deepwork.builtin.people.notifications import Notifications
    from deepwork.builtin.people.sessions import SessionInbox
    from deepwork.builtin.people.setup import SetupInbox

    yield SessionInbox(project)
    yield SetupInbox(project)
    yield Notifications(project)


@hookimpl
def deepwork_review_runners() -> Iterator[ReviewRunnerSpec]:
    """The reviewer `person`."""
    from deepwork.api import ReviewRunnerSpec
    from deepwork.builtin.people.reviewer import NAME, PersonReviewer

    yield ReviewRunnerSpec(name=NAME, create=PersonReviewer, max_inline_files=0, waits=True)


@hookimpl
def deepwork_checks(project: Project) -> Iterator[Check]:
    """Who is notified, if the user has configured anybody."""
    from deepwork.api import Check
    from deepwork.models.config import NotificationsSection

    if project.config(NotificationsSection).model_fields_set:
        yield Check("notifications", partial(_notifications, project))


def _notifications(project: Project) -> Iterator[Finding]:
    from deepwork.api import Finding, Level
    from deepwork.builtin.people.notifications import notifier_of

    notifier = notifier_of(project)
    for target in notifier.targets if notifier else ():
        yield Finding(Level.OK, f"{target.name}; `deepwork inbox test` sends it one")
