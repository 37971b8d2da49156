"""The hook as a tool, which a server answers and does not list: for clients whose hooks can call one."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import anyio

from deepwork.builtin.clients import NOTHING
from deepwork.builtin.clients.deliveries import Deliveries
from deepwork.builtin.clients.desk import Histories, ServerDesk
from deepwork.builtin.clients.hook_events import CLAUDE, HookEvent, answer, event_of
from deepwork.builtin.clients.listeners import ClientSession, key_of

if TYPE_CHECKING:
    from deepwork.api import Project, ToolCall

# A client waits two seconds. What comes later than this would be lost, so nothing is handed over then.
SECONDS = 1.5
MAX_CLIENT_SESSIONS = 1000
_TRANSCRIPT = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$")


class HookTool:
    """Answers the hooks of all clients of one server."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._root = os.path.realpath(project.root)
        self._server = secrets.token_hex(6)
        self._histories: Histories = {}
        self._client_session = lru_cache(MAX_CLIENT_SESSIONS)(ClientSession)

    async def answer(self, call: ToolCall, arguments: Mapping[str, Any]) -> str:
        """Return the JSON for the client; `{}` if there is nothing to say, or what it hands over makes no sense."""
        event = _event(call, arguments, self._project.sessions().session_of(str(arguments.get("call"))))
        desk = ServerDesk(
            self._project,
            self._root,
            server=self._server,
            principal=call.principal,
            call=call,
            histories=self._histories,
        )
        session = self._client_session(key_of(event.client, event.session, call.principal))
        with anyio.move_on_after(SECONDS):
            return await answer(event, Deliveries(desk, session, event.agent)) or NOTHING
        return NOTHING


def _event(call: ToolCall, arguments: Mapping[str, Any], session_id: str | None) -> HookEvent:
    """Read what a client hands over to the tool; objects may come as their JSON.

    Args:
        call: The call of the hook.
        arguments: What is handed over.
        session_id: The session that the tool's call was about, which it need not have named.
    """
    from deepwork.builtin.clients.table import HOOK_FIELDS  # which comes with readers of files: not at each start

    program = call.client.name.lower() if call.client else ""
    tool_input = _parsed(arguments.get("arguments"))
    named = tool_input if isinstance(tool_input, dict) else {"text": tool_input}
    data = {words[2:-1]: arguments.get(name) for name, words in HOOK_FIELDS.items() if isinstance(words, str)}
    data["tool_input"] = {**named, "session_id": session_id or named.get("session_id")}
    data["agent_id"] = data["agent_id"] or _sub_agent(arguments)
    data["paths"] = arguments.get("paths")
    return event_of(str(arguments.get("event")), "codex" if "codex" in program else CLAUDE, data)


def _sub_agent(arguments: Mapping[str, Any]) -> str:
    """Return the sub-agent of Codex whose transcript is named: its id ends the name, as that of the session does."""
    match = _TRANSCRIPT.search(str(arguments.get("transcript")))
    return match[1] if match and match[1] != arguments.get("session") else ""


def _parsed(value: Any) -> Any:
    """Return the value that a text of JSON stands for, or the text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
