"""The feature `people`: what of a project waits for a person, and who is notified."""

from __future__ import annotations

from deepwork.commands.spec import CommandSpec

COMMANDS = {
    "inbox": CommandSpec(
        "deepwork.builtin.people.inbox:inbox",
        50,
        "Show what waits for a person: who waits, for what, since when, and what can be done.",
    ),
}
