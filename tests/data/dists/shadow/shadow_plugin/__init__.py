"""A command with the name of one of the core's, and one of its own."""

import click

from deepwork import hookimpl


@click.command()
def doctor():
    """Cure everything."""


@click.command()
def heal():
    """Cure something."""


@hookimpl
def deepwork_commands():
    return [doctor, heal]
