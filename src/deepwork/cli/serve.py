"""`deepwork serve`."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click
from click.core import ParameterSource

from deepwork.cli.logs import LEVELS, set_up_logging
from deepwork.cli.options import CommandT, exact_path_option, plugins_dir_option, probable_root
from deepwork.cli.terminal import say
from deepwork.files.private_folders import remove_left_folders

if TYPE_CHECKING:
    from deepwork.engine.engine import Engine
    from deepwork.project.project import Project
    from deepwork.server.http.listen import ListenOptions

log = logging.getLogger("deepwork")

# Often enough that memory does not grow with the calls, seldom enough that a thousand jobs are read fast.
GC_THRESHOLDS = 1000, 50


class ServeOptions(NamedTuple):
    """The options of `deepwork serve`; None leaves the decision to the configuration."""

    root: str
    no_quality_gate: bool
    transport: str
    host: str
    port: int
    allowed_hosts: tuple[str, ...]
    token_file: Path | None
    stateless: bool
    external_runner: str | None
    quality_gate_timeout: int | None
    quality_gate_max_attempts: int | None
    platform: str | None
    tools: str | None
    no_plugins: tuple[str, ...]
    plugins_dir: str | None
    state_store: str | None
    log_level: str
    log_json: Path | None

    @property
    def tool_sets(self) -> list[str] | None:
        """The names in `--tools`."""
        return None if self.tools is None else [name.strip() for name in self.tools.split(",") if name.strip()]


def option(name: str, *names: str, **attributes: Any) -> Callable[[CommandT], CommandT]:
    """Add an option that can be given in the environment too: `DEEPWORK_PORT` for `--port`."""
    variable = "DEEPWORK_" + name.removeprefix("--").replace("-", "_").upper()
    return click.option(name, *names, envvar=variable, show_envvar=True, **attributes)


@click.command(
    epilog="Agents start this command themselves. For Claude Code, put into .mcp.json:\n\n\b\n"
    '{"mcpServers": {"deepwork": {\n  "command": "deepwork", "args": ["serve", "--path", "."]\n}}}'
)
@exact_path_option
@option("--no-quality-gate", is_flag=True, help="Disable quality gate evaluation.")
@option(
    "--transport",
    type=click.Choice(["stdio", "http", "sse"]),
    default="stdio",
    show_default=True,
    help="How agents connect; sse is for old clients.",
)
@option(
    "--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address for http and sse to listen on."
)
@option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port for http and sse.")
@option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Name by which clients may address this server, besides localhost; can be given more than once.",
)
@option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Lines NAME TOKEN: who may call over http and sse, each seeing only sessions of their own; a line NAME TOKEN "
    "person is of a person, who may answer on pages.",
)
@option("--stateless", is_flag=True, help="For http: keep nothing between requests, for many replicas.")
@option("--external-runner", metavar="NAME", help="Review runner for the quality gate (default: none, self-review).")
@option("--quality-gate-timeout", type=click.IntRange(1), metavar="SECONDS", help="For one review (default: 120).")
@option(
    "--quality-gate-max-attempts",
    type=click.IntRange(1),
    metavar="N",
    help="Failed reviews before a step is stuck (default: 3).",
)
@option("--platform", metavar="NAME", help="The agent's platform, e.g. claude; plugins adapt their answers to it.")
@option("--tools", metavar="SET[:SUBSET][,…]", help="Tool sets to serve (default: every installed one).")
# DEEPWORK_NO_PLUGINS is read with the configuration, by every command.
@click.option(
    "--no-plugin", "no_plugins", multiple=True, metavar="NAME", help="Load no plugin of this name or distribution."
)
@plugins_dir_option
@option("--state-store", metavar="NAME", help="Where sessions are kept (default: json).")
@option(
    "--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="How much is logged to stderr."
)
@option(
    "--log-json", type=click.Path(dir_okay=False, path_type=Path), help="Also write the log to a file as JSON lines."
)
def serve(**values: Any) -> None:
    """Serve the workflows of a project to an agent over MCP.

    Every option can be given in the environment: DEEPWORK_PORT for --port, and so on; for --path it is
    DEEPWORK_PROJECT. Options win over the environment, the environment over .deepwork/config.yml, that over your
    own config.yml. The log goes to stderr.
    """
    options = ServeOptions(**values)
    _check_transport(options.transport)
    gc.disable()  # until everything is imported: searching the new objects for garbage takes a tenth of the start
    protocol_stdout = _redirect_stdout()
    _set_up_logging(options)
    remove_left_folders()
    from deepwork.server.build import build_server

    listen = _listen_options(options)
    project = _open_project(options)
    engine = _engine(project, options)
    server = build_server(project, engine, tools=options.tool_sets)
    # The objects of the start stay for good and need not be searched again; those of calls must be freed soon.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    if listen is None:
        from deepwork.server.stdio.wire import run_stdio

        run_stdio(server, sys.stdin.fileno(), protocol_stdout, when_ready=_say_that_it_waits)
    else:
        from deepwork.server.http.app import run_http

        apps = project.http_apps(engine).demand()
        transport: Literal["http", "sse"] = "sse" if options.transport == "sse" else "http"
        run_http(server, transport, listen, apps, stateless=options.stateless)


def _say_that_it_waits() -> None:
    if sys.stdin.isatty():
        say("Waiting for an agent on stdin. Agents start this command themselves; Ctrl-C ends it.", err=True)


def _check_transport(transport: str) -> None:
    """Refuse options that have no effect with this transport, unless they come from the environment."""
    context = click.get_current_context()
    ineffective = {"stdio": ("allowed_hosts", "token_file", "stateless"), "sse": ("stateless",)}.get(transport, ())
    for parameter in context.command.params:
        if parameter.name in ineffective and _is_on_command_line(context, parameter.name):
            raise click.UsageError(f"{parameter.opts[0]} has no effect with --transport {transport}.")


def _is_on_command_line(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _redirect_stdout() -> int:
    """Keep stdout for the protocol, and return its descriptor: what anybody prints from now on goes to stderr."""
    sys.stdout.flush()
    protocol_stdout = os.dup(1)
    os.dup2(2, 1)
    return protocol_stdout


def _set_up_logging(options: ServeOptions) -> None:
    try:
        set_up_logging(options.log_level, options.log_json)
    except OSError as error:
        raise click.BadParameter(f"cannot be written: {error.strerror}", param_hint="--log-json") from None


def _listen_options(options: ServeOptions) -> ListenOptions | None:
    """Check the options of HTTP; None for stdio."""
    if options.transport == "stdio":
        return None
    from deepwork.server.http.listen import listen_options

    return listen_options(options.host, options.port, options.allowed_hosts, options.token_file)


def _open_project(options: ServeOptions) -> Project:
    from deepwork.project.project import Project

    project = Project(
        options.root, platform=options.platform, blocked=options.no_plugins, plugins_dir=options.plugins_dir
    )
    parent = probable_root(project.workspace.root)
    if parent:
        log.warning("%s has no .deepwork; perhaps --path %s was meant", project.workspace.root, parent)
    project.plugins.demand()
    return project


def _engine(project: Project, options: ServeOptions) -> Engine:
    from deepwork.server.build import GATE_OFF

    gate = None
    if project.config.quality_gate.enabled and not options.no_quality_gate:
        timeout, max_attempts = options.quality_gate_timeout, options.quality_gate_max_attempts
        gate = project.gate(options.external_runner, timeout=timeout, max_attempts=max_attempts)
    else:
        log.warning(GATE_OFF)
    return project.engine(gate, store=options.state_store)
