"""The feature `people`: what of a project waits for a person, who is notified, and what people say to agents."""

from __future__ import annotations

from deepwork.commands.spec import CommandSpec

COMMANDS = {
    "inbox": CommandSpec(
        "deepwork.builtin.people.inbox:inbox",
        50,
        "Show what waits for a person: who waits, for what, since when, and what can be done.",
    ),
    "say": CommandSpec(
        "deepwork.builtin.people.say:say",
        55,
        "Tell the agent of a session something, at its next call of any tool.",
    ),
}
