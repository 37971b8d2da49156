"""The options of `deepwork serve` that the transports of HTTP add."""

from __future__ import annotations

from pathlib import Path

import click

from deepwork.commands.options import in_environment

OPTIONS = (
    click.Option(
        ["--host"],
        metavar="ADDRESS",
        default="127.0.0.1",
        show_default=True,
        help="Address for http and sse to listen on.",
        **in_environment("--host"),
    ),
    click.Option(
        ["--port"],
        type=click.IntRange(0, 65535),
        default=8000,
        show_default=True,
        help="Port for http and sse.",
        **in_environment("--port"),
    ),
    click.Option(
        ["--allowed-host", "allowed_hosts"],
        multiple=True,
        metavar="NAME",
        help="Name by which clients may address this server, besides localhost; can be given more than once.",
        **in_environment("--allowed-host"),
    ),
    click.Option(
        ["--token-file"],
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Lines NAME TOKEN: who may call over http and sse, each seeing only sessions of their own; a line NAME "
        "TOKEN person is of a person, who may answer on pages.",
        **in_environment("--token-file"),
    ),
)
STATELESS = click.Option(
    ["--stateless"],
    is_flag=True,
    help="For http: keep nothing between requests, for many replicas.",
    **in_environment("--stateless"),
)
# What may be given although agents connect over stdio: it is often set for all servers of a machine.
NEEDLESS = ("host", "port")
