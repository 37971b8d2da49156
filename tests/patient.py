"""Gives what is asked in tests as long as a slow machine needs: users wait some seconds, and then go without it.

A test that is about such a limit sets one of its own.
"""

from __future__ import annotations

from importlib import import_module

from deepwork.testing.wire import PATIENCE

LIMITS = (
    ("deepwork.engine.active", "SECONDS"),
    ("deepwork.builtin.clients.desk", "PLUGIN_SECONDS"),
    ("deepwork.builtin.clients.hook_tool", "SECONDS"),
    ("deepwork.builtin.clients.installed", "VERSION_SECONDS"),
    ("deepwork.builtin.clients.verification", "SECONDS"),
    ("deepwork.builtin.people.targets", "SECONDS"),
    ("deepwork.builtin.proofs.committed", "SECONDS"),
    ("deepwork.cli.environment", "_SECONDS"),
    ("deepwork.project.inbox", "SECONDS"),
)


def be_patient() -> None:
    """Raise the limits in this process, and so in its forks."""
    for module, name in LIMITS:
        setattr(import_module(module), name, PATIENCE)
