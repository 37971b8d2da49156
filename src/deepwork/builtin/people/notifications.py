"""Who is told of what waits for a person, by the user's own configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from deepwork.api import Project
from deepwork.builtin.people.notifier import Notifier
from deepwork.builtin.people.targets import Command, Target, Webhook
from deepwork.errors import ConfigError
from deepwork.models.config import NotificationsSection
from deepwork.paths.private import read_private
from deepwork.paths.user_folders import project_name, user_state_dir
from deepwork.ports.call import is_loopback
from deepwork.ports.inbox import Answerer, Inbox, InboxItem, InboxSource
from deepwork.programs.processes import allowed_environment

SECRET = "DEEPWORK_WEBHOOK_SECRET"
MIN_SECRET = 16
_MAKE_SECRET = "`openssl rand -hex 32` prints one."


class Notifications(InboxSource):
    """No source of items: what sends notifications of those of all sources."""

    name = "notifications"

    def __init__(self, project: Project) -> None:
        self._project = project

    async def items(self) -> list[InboxItem]:
        """Return nothing."""
        return []

    async def answer(self, item_id: str, action: str, text: str | None, by: Answerer) -> str:
        """Never called: there are no items."""
        raise NotImplementedError

    async def notify(self, inbox: Inbox) -> None:
        """Send until cancelled, if the user has configured a receiver."""
        notifier = notifier_of(self._project, inbox)
        if notifier:
            await notifier.run()


def notifier_of(project: Project, inbox: Inbox | None = None) -> Notifier | None:
    """Make the notifier of a project; None if the user has configured no receiver.

    Args:
        project: The project.
        inbox: What waits, if it is not to be asked of the project.

    Raises:
        ConfigError: The webhook, its secret or the command cannot be used.
    """
    section, root, environment = project.config(NotificationsSection), project.root, os.environ
    targets: list[Target] = []
    if section.webhook is not None:
        targets.append(Webhook(_url(section.webhook), _secret(section, environment)))
    if section.command is not None:
        visible_part = allowed_environment(environment, section.pass_env)
        targets.append(Command(section.command, visible_part, project=root, folder=Path.home()))
    folder = user_state_dir(environment) / "projects" / project_name(root) / "notifications"
    return Notifier(inbox or project.inbox(), targets, folder=folder, project=root) if targets else None


def _url(text: str) -> SplitResult:
    """Check an address. What is told must not be read on its way, so it is of `https`, or stays on this machine."""
    try:
        url = urlsplit(text)
        has_place = bool(url.hostname) and url.port != 0 and "@" not in url.netloc and text.isascii()
    except ValueError:
        has_place = False
    if not has_place or any(char <= " " or char == "\x7f" for char in text):
        raise ConfigError(
            "notifications.webhook is not an address such as https://hooks.example/deepwork",
            hint="Write it without a user, a password, spaces and fragments; what is not ASCII as %XX.",
        )
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.hostname or "")):
        raise ConfigError(
            f"notifications.webhook: {url.scheme}://{url.netloc} would let others read what is sent",
            hint="Use https://, or http:// on this machine alone (127.0.0.1, ::1, localhost).",
        )
    return url


def _secret(section: NotificationsSection, environment: Mapping[str, str]) -> str:
    secret = environment.get(SECRET, "").strip()
    if not secret and section.secret_file is not None:
        path = Path(os.path.expanduser(section.secret_file))
        if not path.is_absolute():
            raise ConfigError("notifications.secret_file is not an absolute path", hint="~ is your home.")
        secret = read_private(path, "secret file").strip()
    if not secret:
        raise ConfigError(
            "notifications.webhook has no secret to sign with",
            hint=f"Write one into a file of mode 600, and name it: notifications.secret_file. Or set {SECRET}. "
            f"{_MAKE_SECRET}",
        )
    if len(secret) < MIN_SECRET:
        raise ConfigError(f"the secret of notifications.webhook has under {MIN_SECRET} characters", hint=_MAKE_SECRET)
    return secret
