"""`deepwork dashboard`: the pages beside agents that use stdio."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import click

from deepwork.ports.records import PageAddress
from deepwork.programs.processes import open_browser

PORT = 8787


@click.command(epilog="Example: deepwork dashboard --open")
@click.option(
    "--path",
    "root",
    default=".",
    envvar="DEEPWORK_PROJECT",
    metavar="PATH",
    help="Project root directory (default: current directory).",
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help=f"Port to listen on; 0 takes a free one (default: {PORT}, or a free one if that is in use).",
)
@click.option("--open", "is_opened", is_flag=True, help="Open the pages in a browser.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Lines NAME TOKEN, of people NAME TOKEN person: who may log in, each seeing sessions of their own; people may "
    "answer (default: a random token for you).",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Name by which browsers may address this server, besides localhost; can be given more than once.",
)
@click.option(
    "--state-store",
    envvar="DEEPWORK_STATE_STORE",
    show_envvar=True,
    metavar="NAME",
    help="Where sessions are kept, if servers are started with this option (default: as the configuration says).",
)
def dashboard(
    root: str,
    host: str,
    port: int | None,
    token_file: Path | None,
    allowed_hosts: tuple[str, ...],
    state_store: str | None,
    *,
    is_opened: bool,
) -> None:
    """Show in a browser what agents do, what waits for a person, and why something is stuck.

    It reads what servers of the project store, and runs until it is interrupted. In a terminal it prints an address
    with your login token: keep it secret.
    """
    logging.getLogger("deepwork").setLevel(logging.WARNING)

    # FastMCP, which this imports, would otherwise be imported for every command of every plugin.
    from deepwork.server.apps import serve_apps

    serve_apps(
        root,
        host=host,
        port=PORT if port is None else port,
        allowed_hosts=allowed_hosts,
        token_file=token_file,
        state_store=state_store,
        alone="dashboard",
        or_free_port=port is None,
        listening=lambda address: _say_address(address, Path(root), token_file, is_opened=is_opened),
    )


def _say_address(address: PageAddress, project: Path, token_file: Path | None, *, is_opened: bool) -> None:
    """Print the address once it can be used, and open a browser if that is wanted."""
    # A stream to anything but a terminal may be kept as a log, or be read by an agent.
    is_terminal = sys.stdout.isatty()
    click.echo(f"Dashboard: {address.with_token() if is_terminal else address.url}")
    if token_file:
        click.echo(f"Log in with a token of {token_file}.", err=True)
    elif not is_terminal and not is_opened:
        click.echo("To log in, start it in a terminal, with --open, or with --token-file.", err=True)
    click.echo("Ctrl-C ends it.", err=True)
    if is_opened and not open_browser(address.for_browser(), project=project, environment=os.environ):
        click.echo("No browser could be started: open the address yourself, or name one in BROWSER.", err=True)
