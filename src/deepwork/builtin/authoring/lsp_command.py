"""`deepwork jobs lsp`: start the language server, if its library is installed."""

from __future__ import annotations

import click

from deepwork.errors import ConfigError


@click.command("lsp")
def lsp() -> None:
    """Serve editors over stdin and stdout: findings while you type, completion, hover, definition, rename."""
    try:
        from deepwork.builtin.authoring.lsp import serve
    except ImportError as error:
        library = (error.name or "").partition(".")[0]
        if library not in ("pygls", "lsprotocol"):
            raise
        text = f"the language server needs {library}, which is not installed"
        raise ConfigError(text, hint="Install it: pip install pygls, or deepwork with its extra `lsp`.") from None
    serve()
