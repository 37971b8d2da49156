"""Commands of the terminal."""

from __future__ import annotations

import click


@click.command("acme")
@click.argument("name", default="world")
def command(name: str) -> None:
    """Greet NAME."""
    click.echo(f"Hello, {name}!")
