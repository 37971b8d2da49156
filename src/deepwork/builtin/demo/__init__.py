"""The feature `demo`: a scripted agent on a real server, to look at before anything is set up."""

from __future__ import annotations

from deepwork.commands.spec import CommandSpec

COMMANDS = {
    "demo": CommandSpec(
        "deepwork.builtin.demo.command:demo",
        45,
        "Watch a scripted agent on a real server: a step refused, a server killed, a review failed and passed.",
    ),
}
