"""The feature `clients`: our entry and hooks in the files of clients, and the answers to their hooks."""

from __future__ import annotations

from deepwork.commands.spec import CommandSpec

# What the hook answers as a tool if it has nothing to say.
NOTHING = "{}"

COMMANDS = {
    "connect": CommandSpec(
        "deepwork.builtin.clients.connect:connect",
        30,
        "Write the entry that starts deepwork into the file of a client, with hooks, and check that it does.",
    ),
    "status": CommandSpec(
        "deepwork.builtin.clients.status:status",
        40,
        "Show what is open in this project, where it stands, and what waits for a person.",
    ),
    "hook": CommandSpec(
        "deepwork.builtin.clients.hook:hook",
        140,
        "Answer a hook of a client: note its sessions and its agent, remind of an open step, hand over what waits.",
        is_answer=True,
    ),
    "uninstall": CommandSpec(
        "deepwork.builtin.clients.uninstall:uninstall",
        160,
        "Take deepwork out of every file that connect has written, in all projects, and bring back what stood there.",
    ),
}
