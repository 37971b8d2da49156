"""Everything that plugins add, their commands included, and everything that is wrong with it."""

from __future__ import annotations

import click

from deepwork.cli.main import COMMANDS
from deepwork.cli.plugin_commands import hidden_commands
from deepwork.errors import DeepWorkError
from deepwork.programs.stdout import stdout_on_stderr
from deepwork.project.offers import Offer, Offers, list_offers
from deepwork.project.project import Project


def examine_plugins(project: Project) -> Offers:
    """Ask every plugin for everything, and build what a server would serve. What plugins print goes to stderr."""
    with stdout_on_stderr():
        return _with_faults(project, _with_commands(project, list_offers(project)))


def _with_commands(project: Project, offers: Offers) -> Offers:
    answers = project.plugins.ask("deepwork_commands", click.Command)
    hidden = hidden_commands([provided for provided in answers.items if not provided.by.builtin], COMMANDS)
    commands = [Offer(provided.by, "command", provided.item.name or "") for provided in answers.items]
    return offers.joined(commands, hidden.values(), answers.failures)


def _with_faults(project: Project, offers: Offers) -> Offers:
    if offers.engine is None:
        return offers
    from deepwork.server.build import find_faults

    try:
        return offers.joined([], [], find_faults(project, offers.engine))
    except DeepWorkError as error:
        return offers.joined([], [error], [])
