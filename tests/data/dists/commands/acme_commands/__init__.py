"""Commands that end in every way in which a command can end."""

import time

import click

from deepwork import hookimpl
from deepwork.errors import ToolError


@click.command()
def refuse():
    """Raise an expected error."""
    raise ToolError("not today", hint="Come back tomorrow.")


@click.command()
def crash():
    """Raise an unexpected error."""
    raise ZeroDivisionError("nobody expects this")


@click.command()
def wait():
    """Wait until interrupted."""
    click.echo("waiting")
    time.sleep(60)


@hookimpl
def deepwork_commands():
    return [refuse, crash, wait]
