"""`deepwork completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from deepwork.commands.terminal import say_text


@click.command(epilog="For bash: deepwork completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    from deepwork.cli.main import main

    kind = get_completion_class(shell)
    if kind is not None:
        say_text(kind(main, {}, "deepwork", "_DEEPWORK_COMPLETE").source())
