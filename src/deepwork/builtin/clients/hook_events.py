"""What we answer to the events of a client: nothing, what waits for its agent, a reminder, or what is open."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any

from deepwork.builtin.clients.collisions import CHANGING, changed_paths, note_changes
from deepwork.builtin.clients.deliveries import Deliveries
from deepwork.builtin.clients.open_sessions import reminder, what_is_open
from deepwork.models.standing import Head
from deepwork.ports.agent_call import AgentCall
from deepwork.text import one_line, visible_lines

# Of so many states an agent is reminded before its user's next turn: however often it stops, it comes to an end.
MAX_REMINDERS = 20
CLAUDE, GEMINI = "claude", "gemini"

# Only these calls make a session the caller's own; what get_workflows lists belongs to anybody.
# A configuration may have put a prefix before their names.
_STEP_TOOL = re.compile(r"mcp_.*deepwork_+[\w-]*(start_workflow|finished_step)")
_OUR_TOOL = re.compile(r"mcp_.*deepwork_+[\w-]+")
# Calls of these say nothing of an agent, so no plugin is loaded for them.
_WORKFLOW_TOOL = re.compile(r"mcp_.*deepwork_+(get_workflows|start_workflow|finished_step|abort_workflow)")
# What would end the block in which a client shows our text to its model, or begin another.
_CLIENT_TAG = re.compile(r"<(?=[\s/]*system)", re.IGNORECASE)
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


@dataclass(frozen=True)
class HookEvent:
    """An event of a client.

    Attributes:
        name: The client's own word for it.
        client: The client's name.
        session: The id of the client's session.
        agent: The id of the sub-agent that it is about; empty for the main agent.
        tool: The client's name of the tool that was called.
        arguments: With what it was called.
        response: What it has answered, in any shape.
        paths: The files that the client names.
        is_continued: Whether an answer of ours has caused the turn that ends now.
        trigger: What has caused a compaction.
        failure: What has ended the turn, such as a limit, or why a tool has failed.
    """

    name: str
    client: str
    session: str
    agent: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    response: Any = None
    paths: tuple[str, ...] = ()
    is_continued: bool = False
    trigger: str = ""
    failure: str = ""


def event_of(name: str, client: str, data: Mapping[str, Any]) -> HookEvent:
    """Read what a client hands over, by its own words for it; what is missing, or is of another kind, is empty."""

    def text(key: str) -> str:
        value = data.get(key)
        return value if isinstance(value, str) and not value.startswith("${") else ""

    arguments, paths = data.get("tool_input"), data.get("paths")
    return HookEvent(
        name=name,
        client=client,
        session=text("session_id"),
        agent=text("agent_id"),
        tool=text("tool_name"),
        arguments=arguments if isinstance(arguments, dict) else {},
        response=data.get("tool_response"),
        paths=tuple(path for path in paths if isinstance(path, str)) if isinstance(paths, list) else (),
        is_continued=data.get("stop_hook_active") in (True, "true"),
        trigger=text("trigger"),
        failure=text("error"),
    )


async def answer(event: HookEvent, to: Deliveries) -> str:
    """Return the answer to an event, for the listener that it is about; nothing if there is nothing to say."""
    act = _EVENTS.get(event.name)
    if act is None or not event.session:
        return ""
    await to.confirm()
    return await act(event, to)


async def _after_tool(event: HookEvent, to: Deliveries) -> str:
    """Note whose call of ours it was and which files it has changed, and hand over what waits for that agent."""
    told = await _note_own_call(event, to) if _OUR_TOOL.fullmatch(event.tool) else ()
    if CHANGING.fullmatch(event.tool) and event.name != "PostToolUseFailure" and not _has_failed(event.response):
        await _note_changes(event, to)
    return _context(event, await to.hand_over(told))


async def _note_own_call(event: HookEvent, to: Deliveries) -> Sequence[str]:
    """Note the session that a call has started or gone on with, and its agent; return the texts of its reply."""
    objects, strings = list[Mapping[str, Any]](), list[str]()
    for value in _values([event.response, event.failure]):
        objects.append(value) if isinstance(value, dict) else strings.append(value)
    if _STEP_TOOL.fullmatch(event.tool):
        begun = [reply["begin_step"] for reply in objects if isinstance(reply.get("begin_step"), dict)]
        ids = _ids(event.arguments.get("session_id"), *(step.get("session_id") for step in begun))
        await to.join(ids)
    if not _WORKFLOW_TOOL.fullmatch(event.tool):
        known = to.listener().agents.get(to.desk.root)
        agent_call = AgentCall(tool=event.tool, arguments=event.arguments, replies=objects, agent_id=known)
        named = (mail.agent_of(agent_call) for mail in to.desk.project.agent_mail() if mail.agent_of)
        agent_id = next(filter(None, named), None)
        if agent_id != known and _ids(agent_id):
            agents = {to.desk.root: str(agent_id)}
            await to.change(lambda listener: replace(listener, agents={**listener.agents, **agents}))
    return strings


async def _note_changes(event: HookEvent, to: Deliveries) -> None:
    root = to.desk.root
    if paths := changed_paths(event.paths, event.arguments, root):
        agent_id = to.listener().agents.get(root)
        who = f"agent {agent_id}" if agent_id else f"another session of {event.client}, {one_line(event.session, 13)}"
        await to.desk.blocking(partial(note_changes, to.client_session, event.agent, who, paths, root))


async def _stop(event: HookEvent, to: Deliveries) -> str:
    """Hand over what waits, and remind the agent of its open steps; in a turn that this has caused, of these alone."""
    if not event.is_continued:
        await _begin_turn(event, to)
    reminders = await _reminders(to)
    # It comes last: a text that is handed over counts as told, even if time runs out before the answer.
    text = "" if event.is_continued else await to.hand_over(with_ends=False)
    reason = _shown("\n\n".join(filter(None, [text, reminders])))
    return json.dumps({"decision": "deny" if event.client == GEMINI else "block", "reason": reason}) if reason else ""


async def _reminders(to: Deliveries) -> str:
    """Remind of each open step, once for each state, and of so many states in one turn of the user."""
    listener = to.listener()
    if listener.reminders >= MAX_REMINDERS:
        return ""
    forgotten = [
        head
        for head in await to.desk.heads(listener.sessions)
        if not head.waits_for_person and listener.reminded.get(head.session_id) != head.state
    ]
    if not forgotten or await _waits_for_person(to, listener.agents.get(to.desk.root)):
        return ""
    states = {head.session_id: head.state for head in forgotten}
    await to.change(lambda known: replace(known, reminded={**known.reminded, **states}, reminders=known.reminders + 1))
    return "\n\n".join(map(reminder, forgotten))


async def _waits_for_person(to: Deliveries, agent_id: str | None) -> bool:
    """True if a plugin knows that the agent can do nothing before a person acts."""
    for mail in to.desk.project.agent_mail() if agent_id else ():
        with suppress(Exception):  # code of a plugin
            if mail.waits_for_person:
                question: Callable[[], Awaitable[bool]] = partial(mail.waits_for_person, str(agent_id))
                if await to.desk.ask(question):
                    return True
    return False


async def _begin_turn(_event: HookEvent, to: Deliveries) -> str:
    """Note that the user has spoken: the client may put a message into a turn that a reminder has caused."""
    if to.listener().reminders:
        await to.change(lambda listener: replace(listener, reminders=0))
    return ""


async def _session_start(event: HookEvent, to: Deliveries) -> str:
    return _context(event, await _what_is_open(to))


async def _session_end(event: HookEvent, to: Deliveries) -> str:
    """Note that the agents of the client session are gone. Their claims stay: `claude -p` ends so after each turn."""
    listeners = to.client_session.note().listeners.values()
    heads = await to.desk.heads([*dict.fromkeys(chain.from_iterable(known.sessions for known in listeners))])

    async def note() -> None:
        changes = to.desk.project.interventions()
        for head in heads:
            await changes.agent_gone(await changes.named(head.session_id), event.client)

    if heads:
        await to.desk.ask(note)
    return ""


async def _compaction(event: HookEvent, to: Deliveries) -> str:
    """Claude Code adds the text to the instructions of the summary; others show a message.

    Gemini calls before each turn, whether it compresses or not, unless the user has asked for it.
    """
    if event.client == GEMINI and event.trigger == "auto":
        return ""
    text = _shown(await _what_is_open(to))
    return text if event.client == CLAUDE or not text else json.dumps({"systemMessage": text})


async def _what_is_open(to: Deliveries) -> str:
    listener = to.listener()
    if to.agent and not listener.has_joined:
        return ""
    own: list[Head] = await to.desk.heads(listener.sessions)
    resume = await to.desk.resume(own[-1].session_id) if own else ""
    known = {head.session_id for head in own}
    return what_is_open(own, [head for head in await to.desk.open() if head.session_id not in known], resume)


async def _failure(event: HookEvent, to: Deliveries) -> str:
    """Keep what has ended a turn, such as a limit, for whoever supervises the client."""
    failure = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "error": one_line(event.failure)}
    await to.desk.blocking(lambda: to.client_session.change(lambda note: replace(note, failure=failure)))
    return ""


def _context(event: HookEvent, text: str) -> str:
    output = {"hookEventName": event.name, "additionalContext": _shown(text)}
    return json.dumps({"hookSpecificOutput": output}) if text else ""


def _shown(text: str) -> str:
    """Return what a client shows to its model: without escapes, and without an end of the block in which it stands."""
    return _CLIENT_TAG.sub("&lt;", visible_lines(text))


def _ids(*values: Any) -> list[str]:
    return [value for value in values if isinstance(value, str) and _ID.fullmatch(value)]


def _has_failed(response: Any) -> bool:
    """True if a client that has no event of its own for it says that a tool has failed."""
    return isinstance(response, dict) and bool(response.get("error") or response.get("isError"))


def _values(response: Any) -> Iterator[Any]:
    """Find all objects and texts in a response of any shape: MCP's content, its text, or its structure."""
    if isinstance(response, str):
        if response.lstrip().startswith(("{", "[")):
            try:
                yield from _values(json.loads(response))
            except (ValueError, RecursionError):
                yield response
        else:
            yield response
    elif isinstance(response, list):
        for item in response:
            yield from _values(item)
    elif isinstance(response, dict):
        yield response
        for value in response.values():
            yield from _values(value)


_EVENTS: dict[str, Callable[[HookEvent, Deliveries], Awaitable[str]]] = {
    "SessionStart": _session_start,
    "SessionEnd": _session_end,
    "UserPromptSubmit": _begin_turn,
    "PreCompact": _compaction,
    "PreCompress": _compaction,
    "PostToolUse": _after_tool,
    "PostToolUseFailure": _after_tool,
    "AfterTool": _after_tool,
    "Stop": _stop,
    "StopFailure": _failure,
    "AfterAgent": _stop,
}
