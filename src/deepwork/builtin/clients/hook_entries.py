"""Our commands and our tool among the hooks of a client."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from deepwork.builtin.clients.files import get, with_element, without_element, without_entry
from deepwork.builtin.clients.table import HOOK_FIELDS, HOOK_SYNTAX, NAME, Client

# As Claude Code names the server of our plugin. Under the short name it calls nothing, and says nothing of it.
PLUGIN_SERVER = f"plugin:{NAME}:{NAME}"

_HOOKS = "hooks"
_TOOL = "mcp_tool"


def hooks_of(client: Client, command: Sequence[str], root: str | None, server: str | None = None) -> dict[str, Any]:
    """Write all our hooks, by event, as Claude Code, Codex and Gemini CLI do.

    Args:
        client: The client.
        command: The words that start this deepwork.
        root: The project, if the client does not say which it is in.
        server: The name under which the client knows our server, if its hooks can call tools: in a Claude plugin that
            is `PLUGIN_SERVER`. The others run the command.
    """
    files, hooks = client.hooks, dict[str, Any]()
    if files is None:
        return hooks
    for event, fields in files.events.items():
        hook: dict[str, Any]
        if server and fields is not None:
            about = {name: HOOK_FIELDS[name] for name in (*files.who, *fields)}
            hook = {"type": _TOOL, "server": server, "tool": "hook", "input": {"event": event, **about}}
            hook |= {"timeout": 2, "onFailure": "continue"}  # a server that is gone or slow holds nobody
        else:
            words = [*command, "hook", event, "--client", client.name, *(["--path", root] if root else [])]
            hook = {"type": "command", "command": shlex.join(words), "timeout": files.timeout}
        hooks[event] = [{"hooks": [hook]}]
    return hooks


def with_hooks(client: Client, command: Sequence[str], root: str | None, text: str, server: str | None = None) -> str:
    """Return a text of hooks with ours at the end of each event's list, and everything else unchanged.

    Raises:
        ConfigError: The text cannot be parsed or changed.
    """
    for event, groups in hooks_of(client, command, root, server).items():
        HOOK_SYNTAX.document(text)
        if [group for group in _groups(text, event) if _is_ours(client, event, group)] != groups:
            text = with_element(_without_event(client, event, text), HOOK_SYNTAX, (_HOOKS, event), groups[0])
    return text


def form_of(client: Client, text: str) -> str | None:
    """Return the server that our hooks in a text call; "" if all run the command, None if there are none of ours."""
    groups = [
        group
        for event in (client.hooks.events if client.hooks else ())
        for group in _groups(text, event)
        if _is_ours(client, event, group)
    ]
    servers = [hook["server"] for group in groups for hook in group["hooks"] if hook.get("type") == _TOOL]
    return servers[0] if servers else "" if groups else None


def without_hooks(client: Client, text: str) -> str:
    """Return a text of hooks without ours, and everything else unchanged.

    Raises:
        ConfigError: The text cannot be parsed or changed.
    """
    HOOK_SYNTAX.document(text)
    for event in client.hooks.events if client.hooks else ():
        shorter = _without_event(client, event, text)
        if shorter != text and not _groups(shorter, event):
            shorter = without_entry(shorter, HOOK_SYNTAX, (_HOOKS, event))
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
    """True if a group runs nothing but our command or our tool for this event and this client."""
    hooks = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(hooks, list) or not hooks:
        return False
    return all(isinstance(hook, dict) and (_is_command(client, event, hook) or _is_tool(hook)) for hook in hooks)


def _is_command(client: Client, event: str, hook: dict[str, Any]) -> bool:
    command = hook.get("command")
    return isinstance(command, str) and NAME in command and f" hook {event} --client {client.name}" in command


def _is_tool(hook: dict[str, Any]) -> bool:
    return hook.get("type") == _TOOL and hook.get("tool") == "hook" and hook.get("server") in (NAME, PLUGIN_SERVER)
