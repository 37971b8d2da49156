"""Our commands among the hooks of a client."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from deepwork.builtin.clients.files import get, with_element, without_element, without_entry
from deepwork.builtin.clients.table import HOOK_SYNTAX, NAME, Client, HookEvent

_HOOKS = "hooks"


def hook_group(client: Client, event: HookEvent, command: Sequence[str], root: str | None) -> dict[str, Any]:
    """Write the hook for one event, as Claude Code, Codex and Gemini CLI do."""
    words = [*command, "hook", event.name, "--client", client.name, *(["--path", root] if root else [])]
    hook = {"type": "command", "command": shlex.join(words), "timeout": client.hooks.timeout if client.hooks else 10}
    return {**({"matcher": event.matcher} if event.matcher else {}), "hooks": [hook]}


def hooks_of(client: Client, command: Sequence[str], root: str | None) -> dict[str, Any]:
    """Write all our hooks, by event."""
    events = client.hooks.events if client.hooks else ()
    return {event.name: [hook_group(client, event, command, root)] for event in events}


def with_hooks(client: Client, command: Sequence[str], root: str | None, text: str) -> str:
    """Return a text of hooks with ours at the end of each event's list, and everything else unchanged.

    Raises:
        ConfigError: The text cannot be parsed or changed.
    """
    for event, groups in hooks_of(client, command, root).items():
        HOOK_SYNTAX.document(text)
        if not any(group in groups for group in _groups(text, event)):
            text = with_element(_without_event(client, event, text), HOOK_SYNTAX, (_HOOKS, event), groups[0])
    return text


def without_hooks(client: Client, text: str) -> str:
    """Return a text of hooks without ours, and everything else unchanged.

    Raises:
        ConfigError: The text cannot be parsed or changed.
    """
    HOOK_SYNTAX.document(text)
    for event in client.hooks.events if client.hooks else ():
        shorter = _without_event(client, event.name, text)
        if shorter != text and not _groups(shorter, event.name):
            shorter = without_entry(shorter, HOOK_SYNTAX, (_HOOKS, event.name))
        text = shorter
    return text


def _without_event(client: Client, event: str, text: str) -> str:
    groups = _groups(text, event)
    for index in reversed(range(len(groups))):
        if _is_ours(client, event, groups[index]):
            text = without_element(text, HOOK_SYNTAX, (_HOOKS, event), index)
    return text


def _groups(text: str, event: str) -> list[Any]:
    groups = get(HOOK_SYNTAX.data(text), (_HOOKS, event))
    return groups if isinstance(groups, list) else []


def _is_ours(client: Client, event: str, group: Any) -> bool:
    """True if a group runs nothing but our command for this event and this client."""
    hooks = group.get("hooks") if isinstance(group, dict) else None
    commands = [hook.get("command") for hook in hooks if isinstance(hook, dict)] if isinstance(hooks, list) else []
    ending = f" hook {event} --client {client.name}"
    return bool(commands) and all(
        isinstance(command, str) and NAME in command and ending in command for command in commands
    )
