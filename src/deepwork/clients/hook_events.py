"""What we answer to the events of a client: nothing, a reminder, or what is open."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deepwork.clients.client_sessions import ClientSession
from deepwork.clients.open_sessions import OpenSession, OpenSessions

MAX_CHARACTERS = 10_000
LISTED = 10
_LEAD = "You are in the middle of this workflow of deepwork. Go on with it."

# Only these calls make a session the caller's own; what get_workflows lists belongs to anybody.
_OUR_TOOL = re.compile(r"mcp_.*deepwork_+(start_workflow|finished_step)")
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_GEMINI = "gemini"
_CLAUDE = "claude"

Resume = Callable[[str], str]


@dataclass(frozen=True)
class HookCall:
    """One call of a hook.

    Attributes:
        event: The client's own word for it.
        client: The client's name.
        data: The JSON that the client sends.
        sessions: The open sessions of the project.
        resume: Gives the text with which a session is resumed.
        environment: Where the user's state folder is.
    """

    event: str
    client: str
    data: Mapping[str, Any]
    sessions: OpenSessions
    resume: Resume
    environment: Mapping[str, str]

    @property
    def client_session(self) -> ClientSession | None:
        """The client's session; None if it has no id."""
        session_id = self.data.get("session_id")
        return ClientSession(self.client, session_id, self.environment) if isinstance(session_id, str) else None


def answer(call: HookCall) -> str:
    """Give what is printed for the client; nothing if there is nothing to say."""
    act = _EVENTS.get(call.event)
    return act(call) if act else ""


def _after_tool(call: HookCall) -> str:
    """Note the session that a call of ours has started or gone on with."""
    if call.client_session and _OUR_TOOL.fullmatch(str(call.data.get("tool_name"))):
        arguments = call.data.get("tool_input")
        named = [arguments.get("session_id")] if isinstance(arguments, dict) else []
        begun = [begin.get("session_id") for begin in _begun(call.data.get("tool_response"))]
        own = [
            session_id for session_id in (*named, *begun) if isinstance(session_id, str) and _ID.fullmatch(session_id)
        ]
        if own:
            call.client_session.add(own)
    return ""


def _stop(call: HookCall) -> str:
    """Remind the agent of its open steps, once for each state; never in a turn that a reminder has caused."""
    if call.client_session is None or call.data.get("stop_hook_active"):
        return ""
    reminded = call.client_session.note().reminded
    forgotten = [
        session
        for session in _own(call)
        if not session.waits_for_person and reminded.get(session.session_id) != session.state
    ]
    if not forgotten:
        return ""
    call.client_session.remind({session.session_id: session.state for session in forgotten})
    decision = "deny" if call.client == _GEMINI else "block"
    return json.dumps({"decision": decision, "reason": "\n\n".join(map(_reminder, forgotten))})


def _session_start(call: HookCall) -> str:
    text = _what_is_open(call)
    output = {"hookEventName": call.event, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": output}) if text else ""


def _compaction(call: HookCall) -> str:
    """Claude Code adds the text to the instructions of the summary; others show a message."""
    text = _what_is_open(call)
    return text if call.client == _CLAUDE or not text else json.dumps({"systemMessage": text})


def _what_is_open(call: HookCall) -> str:
    """Tell the own sessions with their resume texts, and of the others a line each, as much as fits."""
    own = _own(call)
    known = {session.session_id for session in own}
    others = [session for session in call.sessions.all() if session.session_id not in known]
    lines = [_line(session) for session in others[:LISTED]]
    if len(others) > LISTED:
        lines.append(f"- and {len(others) - LISTED} more; `deepwork sessions list` shows them")
    listing = "\n".join(
        [
            "Open in this project, started by somebody else or earlier; leave them alone unless the user asks for one:",
            *lines,
        ]
    )
    parts = [listing] if lines else []
    room = MAX_CHARACTERS - sum(map(len, parts)) - 2
    # The session that was used last comes with everything, those below it on the stack with where they are.
    for session in reversed(own):
        text = _reminder(session)
        if session is own[-1]:
            whole = f"{_LEAD}\n\n{call.resume(session.session_id)}"
            text = whole if len(whole) + 2 <= room else text
        if len(text) + 2 <= room:
            parts.insert(0, text)
            room -= len(text) + 2
    return "\n\n".join(parts)


def _own(call: HookCall) -> list[OpenSession]:
    """Give the open sessions of this client session, in the order in which it has used them."""
    ids = call.client_session.note().sessions if call.client_session else ()
    return [session for session in map(call.sessions.named, ids) if session]


def _reminder(session: OpenSession) -> str:
    where = f"step {session.step_id!r}" + (f" ({session.position})" if session.position else "")
    return (
        f"The workflow {session.workflow} of deepwork is not finished: it is at {where}, session "
        f"{session.session_id}. Goal: {session.goal}\n"
        f"Go on with that step and report it with finished_step(session_id={session.session_id!r}, "
        f"step_id={session.step_id!r}, outputs={{...}}); step_id='?' with outputs={{}} tells what it needs. "
        "abort_workflow ends a workflow that cannot be completed. If you wait for the user's answer, end your turn "
        "again: this is said once."
    )


def _line(session: OpenSession) -> str:
    waits = ", waits for a person" if session.waits_for_person else ""
    return f"- {session.session_id}  {session.workflow}, step {session.step_id!r}{waits}: {session.goal}"


def _begun(response: Any) -> Iterator[Mapping[str, Any]]:
    """Find what was begun in a response of any shape: MCP's content, its text, or its structure."""
    if isinstance(response, str) and response.lstrip().startswith(("{", "[")):
        try:
            response = json.loads(response)
        except ValueError:
            return
    if isinstance(response, list):
        for item in response:
            yield from _begun(item)
    elif isinstance(response, dict):
        if isinstance(response.get("begin_step"), dict):
            yield response["begin_step"]
            return
        for value in response.values():
            yield from _begun(value)


_EVENTS: dict[str, Callable[[HookCall], str]] = {
    "SessionStart": _session_start,
    "PreCompact": _compaction,
    "PreCompress": _compaction,
    "PostToolUse": _after_tool,
    "AfterTool": _after_tool,
    "Stop": _stop,
    "AfterAgent": _stop,
}
