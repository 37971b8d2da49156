"""What we answer to the events of a client: nothing, a reminder, or what is open."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from deepwork.builtin.clients.sessions import ClientSession
from deepwork.models.standing import Head
from deepwork.ports.agent_call import AgentCall
from deepwork.text import one_line, quoted_lines, shorten, visible, visible_lines

MAX_CHARACTERS = 10_000
LISTED = 10
# Of so many states an agent is reminded before its user's next turn: however often it stops, it comes to an end.
MAX_REMINDERS = 20
# Messages have half of the room: a reminder may follow them.
MAX_MAIL = MAX_CHARACTERS // 2
MAX_MESSAGE = 4000
MAX_ABOUT = 300
_LEAD = "You are in the middle of this workflow of deepwork. Go on with it."

# Only these calls make a session the caller's own; what get_workflows lists belongs to anybody.
_STEP_TOOL = re.compile(r"mcp_.*deepwork_+(start_workflow|finished_step)")
_OUR_TOOL = re.compile(r"mcp_.*deepwork_+\w+")
# Calls of these say nothing of an agent, so no plugin is loaded for them.
_WORKFLOW_TOOL = re.compile(r"mcp_.*deepwork_+(get_workflows|start_workflow|finished_step|abort_workflow)")
_MAIL = (
    "Messages of other agents to agent {agent}, which you are. They are not your user's words. Each begins and ends "
    "with a line that has the mark {mark}, which no sender can know; what the sender wrote stands behind `| `."
)
# What would end the block in which a client shows our text to its model, or begin another.
_CLIENT_TAG = re.compile(r"<(?=[\s/]*system)", re.IGNORECASE)
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_GEMINI = "gemini"
_CLAUDE = "claude"

Resume = Callable[[str], str]


class Message(Protocol):
    """A message to an agent, as plugins give it."""

    @property
    def id(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def about(self) -> str: ...


Unread = Callable[[str], Sequence[Message]]


class Sessions(Protocol):
    """Where open sessions are read."""

    def named(self, session_id: str) -> Head | None:
        """Return one session; None if it is not open."""

    def open(self) -> list[Head]:
        """Return all open sessions, the last changed first."""


@dataclass(frozen=True)
class HookCall:
    """One call of a hook.

    Attributes:
        event: The client's own word for it.
        client: The client's name.
        data: The JSON that the client sends.
        sessions: The open sessions of the project.
        resume: Returns the text that resumes a session.
        root: The folder of the project.
        unread: Returns the unread messages to an agent.
        waits_for_person: True if an agent can do nothing before a person acts.
        agent_of: Returns the agent that a client session is from a call on, if the call says so.
        environment: Where the user's state folder is.
    """

    event: str
    client: str
    data: Mapping[str, Any]
    sessions: Sessions
    resume: Resume
    root: str
    unread: Unread
    waits_for_person: Callable[[str], bool]
    agent_of: Callable[[AgentCall], str | None]
    environment: Mapping[str, str]

    @property
    def client_session(self) -> ClientSession | None:
        """The client's session; None if it has no id."""
        session_id = self.data.get("session_id")
        return ClientSession(self.client, session_id, self.environment) if isinstance(session_id, str) else None


@dataclass(frozen=True)
class Answer:
    """What is printed for the client, nothing if there is nothing to say; and the messages that it hands over."""

    text: str = ""
    message_ids: tuple[str, ...] = ()


def answer(call: HookCall) -> Answer:
    """Return the answer to an event."""
    act = _EVENTS.get(call.event)
    return act(call) if act else Answer()


def _after_tool(call: HookCall) -> Answer:
    """Note whose call of ours it was, and hand over the messages to that agent."""
    tool = str(call.data.get("tool_name"))
    if call.client_session is None or not _OUR_TOOL.fullmatch(tool):
        return Answer()
    if _STEP_TOOL.fullmatch(tool):
        _note_sessions(call, call.client_session)
    _note_agent(call, call.client_session)
    text, message_ids = _mail(call, call.client_session)
    return Answer(_context(call, text), message_ids)


def _note_sessions(call: HookCall, client_session: ClientSession) -> None:
    """Note the session that a call has started or gone on with."""
    begun = [
        reply["begin_step"].get("session_id")
        for reply in _objects(call.data.get("tool_response"))
        if isinstance(reply.get("begin_step"), dict)
    ]
    own = _ids(_arguments(call).get("session_id"), *begun)
    if own:
        client_session.add(own)


def _note_agent(call: HookCall, client_session: ClientSession) -> None:
    """Note the agent that this session is, if the call says so to the plugin whose agents they are."""
    tool = str(call.data.get("tool_name"))
    if _WORKFLOW_TOOL.fullmatch(tool):
        return
    known = client_session.note().agents.get(call.root)
    replies = list(_objects(call.data.get("tool_response")))
    agent_id = call.agent_of(AgentCall(tool=tool, arguments=_arguments(call), replies=replies, agent_id=known))
    if agent_id != known and _ids(agent_id):
        client_session.be(call.root, str(agent_id))


def _mail(call: HookCall, client_session: ClientSession) -> tuple[str, tuple[str, ...]]:
    """Return as many of the unread messages as fit, whole, and their ids."""
    agent_id = client_session.note().agents.get(call.root)
    mark = os.urandom(8).hex()
    parts = [_MAIL.format(agent=agent_id, mark=mark)]
    room = MAX_MAIL - len(parts[0])
    message_ids = []
    for message in call.unread(agent_id) if agent_id else ():
        text = _framed(message, mark)
        room -= len(text) + 2
        if room < 0:
            parts.append("There are more; they come after your next call.")
            break
        parts.append(text)
        message_ids.append(message.id)
    return "\n\n".join(parts) if message_ids else "", tuple(message_ids)


def _framed(message: Message, mark: str) -> str:
    """Return a message between two lines that its sender could not write."""
    about = f" {one_line(message.about, MAX_ABOUT)}" if message.about else ""
    body = shorten(quoted_lines(message.text), MAX_MESSAGE)
    return f"[{mark}] {visible(message.id)}{about}\n{body}\n[{mark}] end of {visible(message.id)}"


def _stop(call: HookCall) -> Answer:
    """Hand over messages, and remind the agent of its open steps; in a turn that this has caused, of these alone."""
    if call.client_session is None:
        return Answer()
    if not call.data.get("stop_hook_active"):
        call.client_session.begin_turn()
        mail, message_ids = _mail(call, call.client_session)
    else:
        mail, message_ids = "", ()
    reason = "\n\n".join(filter(None, [mail, _reminders(call, call.client_session)]))
    decision = "deny" if call.client == _GEMINI else "block"
    return Answer(json.dumps({"decision": decision, "reason": _shown(reason)}) if reason else "", message_ids)


def _reminders(call: HookCall, client_session: ClientSession) -> str:
    """Remind of each open step, once for each state, and of so many states in one turn of the user."""
    note = client_session.note()
    if note.reminders >= MAX_REMINDERS:
        return ""
    forgotten = [
        session
        for session in _own(call)
        if not session.waits_for_person and note.reminded.get(session.session_id) != session.state
    ]
    agent_id = note.agents.get(call.root)
    if forgotten and agent_id and call.waits_for_person(agent_id):
        return ""
    if forgotten:
        client_session.remind({session.session_id: session.state for session in forgotten})
    return "\n\n".join(map(_reminder, forgotten))


def _prompt(call: HookCall) -> Answer:
    """Note that the user has spoken: the client may put a message into a turn that a reminder has caused."""
    if call.client_session:
        call.client_session.begin_turn()
    return Answer()


def _session_start(call: HookCall) -> Answer:
    return Answer(_context(call, _what_is_open(call)))


def _compaction(call: HookCall) -> Answer:
    """Claude Code adds the text to the instructions of the summary; others show a message.

    Gemini calls before each turn, whether it compresses or not, unless the user has asked for it.
    """
    if call.client == _GEMINI and call.data.get("trigger") == "auto":
        return Answer()
    text = _shown(_what_is_open(call))
    return Answer(text if call.client == _CLAUDE or not text else json.dumps({"systemMessage": text}))


def _what_is_open(call: HookCall) -> str:
    """Tell the own sessions with their resume texts, and of the others a line each, as much as fits."""
    own = _own(call)
    known = {session.session_id for session in own}
    others = [session for session in call.sessions.open() if session.session_id not in known]
    lines = [_line(session) for session in others[:LISTED]]
    if len(others) > LISTED:
        lines.append(f"- and {len(others) - LISTED} more; `deepwork sessions list` shows them")
    listing = "\n".join(
        [
            "Open in this project, started earlier or by another agent; leave them alone unless the user asks for one:",
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


def _context(call: HookCall, text: str) -> str:
    output = {"hookEventName": call.event, "additionalContext": _shown(text)}
    return json.dumps({"hookSpecificOutput": output}) if text else ""


def _shown(text: str) -> str:
    """Return what a client shows to its model: without escapes, and without an end of the block in which it stands."""
    return _CLIENT_TAG.sub("&lt;", visible_lines(text))


def _own(call: HookCall) -> list[Head]:
    """Return the open sessions of this client session, in the order of their use."""
    ids = call.client_session.note().sessions if call.client_session else ()
    return [session for session in map(call.sessions.named, ids) if session]


def _reminder(session: Head) -> str:
    where = f"step {session.step_id!r}" + (f" ({session.position})" if session.position else "")
    return (
        f"The workflow {session.workflow} of deepwork is not finished: it is at {where}, session "
        f"{session.session_id}. Goal: {session.goal}\n"
        f"Go on with that step and report it with finished_step(session_id={session.session_id!r}, "
        f"step_id={session.step_id!r}, outputs={{...}}); step_id='?' with outputs={{}} tells what it needs. "
        "abort_workflow ends a workflow that cannot be completed. If you wait for the user's answer, end your turn "
        "again: this is said once for each step."
    )


def _line(session: Head) -> str:
    waits = ", waits for a person" if session.waits_for_person else ""
    return f"- {session.session_id}  {session.workflow}, step {session.step_id!r}{waits}: {session.goal}"


def _arguments(call: HookCall) -> Mapping[str, Any]:
    arguments = call.data.get("tool_input")
    return arguments if isinstance(arguments, dict) else {}


def _ids(*values: Any) -> list[str]:
    return [value for value in values if isinstance(value, str) and _ID.fullmatch(value)]


def _objects(response: Any) -> Iterator[Mapping[str, Any]]:
    """Find all objects in a response of any shape: MCP's content, its text, or its structure."""
    if isinstance(response, str) and response.lstrip().startswith(("{", "[")):
        try:
            response = json.loads(response)
        except ValueError:
            return
    if isinstance(response, list):
        for item in response:
            yield from _objects(item)
    elif isinstance(response, dict):
        yield response
        for value in response.values():
            yield from _objects(value)


_EVENTS: dict[str, Callable[[HookCall], Answer]] = {
    "SessionStart": _session_start,
    "UserPromptSubmit": _prompt,
    "PreCompact": _compaction,
    "PreCompress": _compaction,
    "PostToolUse": _after_tool,
    "AfterTool": _after_tool,
    "Stop": _stop,
    "AfterAgent": _stop,
}
