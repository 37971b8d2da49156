"""`deepwork serve`."""

from __future__ import annotations

import gc
import logging
import os
import sys
from pathlib import Path

import click
from click.core import ParameterSource

from deepwork.cli.logs import LEVELS, set_up_logging
from deepwork.cli.options import path_option, probable_root

log = logging.getLogger("deepwork")

# Often enough that memory does not grow with the calls, seldom enough that a thousand jobs are read fast.
GC_THRESHOLDS = 1000, 50


@click.command(
    epilog="Agents start this command themselves. For Claude Code, put into .mcp.json: "
    '{"mcpServers": {"deepwork": {"command": "deepwork", "args": ["serve", "--path", "."]}}}'
)
@path_option
@click.option("--no-quality-gate", is_flag=True, help="Disable quality gate evaluation.")
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http", "sse"]),
    default="stdio",
    show_default=True,
    help="How agents connect; sse is for old clients.",
)
@click.option(
    "--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address for http and sse to listen on."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port for http and sse.")
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Name by which clients may address this server, besides localhost; can be given more than once.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Lines NAME TOKEN: who may call over http and sse, each seeing only sessions of their own.",
)
@click.option("--stateless", is_flag=True, help="For http: keep nothing between requests, for many replicas.")
@click.option(
    "--external-runner",
    metavar="NAME",
    help="Review runner for the quality gate (default: none, self-review).",
)
@click.option(
    "--quality-gate-timeout", type=click.IntRange(1), metavar="SECONDS", help="For one review (default: 120)."
)
@click.option("--quality-gate-max-attempts", type=click.IntRange(1), metavar="N", help="Failed reviews (default: 3).")
@click.option("--platform", metavar="NAME", help="The agent's platform, e.g. claude; plugins word answers by it.")
@click.option("--tools", metavar="SET[,SET…]", help="Tool sets to serve (default: every installed one).")
@click.option(
    "--no-plugin", "no_plugins", multiple=True, metavar="NAME", help="Load no plugin of this name or distribution."
)
@click.option("--state-store", metavar="NAME", help="Where sessions are kept (default: json).")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="How much goes to stderr.",
)
@click.option("--log-json", type=click.Path(dir_okay=False, path_type=Path), help="Write the log there as JSON lines.")
def serve(
    root: str,
    no_quality_gate: bool,
    transport: str,
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    token_file: Path | None,
    stateless: bool,
    external_runner: str | None,
    quality_gate_timeout: int | None,
    quality_gate_max_attempts: int | None,
    platform: str | None,
    tools: str | None,
    no_plugins: tuple[str, ...],
    state_store: str | None,
    log_level: str,
    log_json: Path | None,
) -> None:
    """Serve the workflows of a project to an agent over MCP.

    Every option can be given in the environment: DEEPWORK_PORT for --port, and so on; for --path it is
    DEEPWORK_PROJECT. Options win over the environment, the environment over .deepwork/config.yml, that over your
    own config.yml. The log goes to stderr.
    """
    _check_transport(transport)
    gc.disable()  # until everything is imported: to search among what stays takes a tenth of the start
    wire = _take_stdout()
    try:
        set_up_logging(log_level, log_json)
    except OSError as error:
        raise click.BadParameter(f"cannot be written: {error.strerror}", param_hint="--log-json") from None
    from deepwork.project.project import Project
    from deepwork.server.build import build_server
    from deepwork.server.http.listen import doors

    entrance = doors(host, port, allowed_hosts, token_file) if transport != "stdio" else None

    project = Project(root, platform=platform, blocked=no_plugins)
    parent = probable_root(project.workspace.root)
    if parent:
        log.warning("%s has no .deepwork; perhaps --path %s was meant", project.workspace.root, parent)
    project.plugins.demand()
    gate = None
    if project.config.quality_gate.enabled and not no_quality_gate:
        gate = project.gate(external_runner, timeout=quality_gate_timeout, max_attempts=quality_gate_max_attempts)
    sets = [name.strip() for name in tools.split(",") if name.strip()] if tools is not None else None
    server = build_server(project, project.engine(gate, store=state_store), tools=sets)
    # What is there now stays, and need not be searched again; what calls leave behind is to go soon.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    if entrance is None:
        from deepwork.server.stdio.wire import run_stdio

        run_stdio(server, sys.stdin.fileno(), wire)
    else:
        from deepwork.server.http.app import run_http

        run_http(server, "sse" if transport == "sse" else "http", entrance, stateless=stateless)


def _check_transport(transport: str) -> None:
    """Refuse options that would have no effect; the environment may hold them for other servers."""
    context = click.get_current_context()
    useless = {"stdio": ("allowed_hosts", "token_file", "stateless"), "sse": ("stateless",)}
    for parameter in serve.params:
        given = parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        if given and parameter.name in useless.get(transport, ()):
            raise click.UsageError(f"{parameter.opts[0]} has no effect with --transport {transport}.")


def _take_stdout() -> int:
    """Keep stdout for the protocol: whatever anybody prints from now on goes to stderr."""
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    return wire


for _parameter in serve.params:
    # DEEPWORK_NO_PLUGINS is read with the configuration, by every command.
    if isinstance(_parameter, click.Option) and _parameter.name not in ("root", "no_plugins"):
        _parameter.envvar = "DEEPWORK_" + _parameter.opts[0].removeprefix("--").replace("-", "_").upper()
        _parameter.show_envvar = True
