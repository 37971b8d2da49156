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
@click.argument("error")
def interrupted(error):
    """Be interrupted where others make another error of it."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as interruption:
        if error == "class":
            raise RuntimeError("Error calling __set_name__ on 'Name' instance") from interruption
    raise ValueError('Error building "literal" validator:\n  KeyboardInterrupt: ')


@click.command()
def wait():
    """Wait until interrupted."""
    click.echo("waiting")
    time.sleep(60)


@hookimpl
def deepwork_commands():
    return [refuse, crash, interrupted, wait]
