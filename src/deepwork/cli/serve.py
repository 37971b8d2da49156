"""`deepwork serve`."""

from __future__ import annotations

import gc
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from deepwork.cli.extended import ExtendedCommand
from deepwork.cli.logs import LEVELS, set_up_logging
from deepwork.cli.transports import STDIO, opened_transport, with_transports
from deepwork.commands.options import env_option, exact_path_option, plugins_dir_option, probable_root
from deepwork.commands.terminal import say
from deepwork.paths.private_folders import remove_left_folders

if TYPE_CHECKING:
    from deepwork.engine.engine import Engine
    from deepwork.project.project import Project

log = logging.getLogger("deepwork")

# Often enough that memory does not grow with the calls, seldom enough that a thousand jobs are read fast.
GC_THRESHOLDS = 1000, 50


class ServeOptions(NamedTuple):
    """The options of `deepwork serve`; None leaves the decision to the configuration."""

    root: str
    no_quality_gate: bool
    transport: str
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


@click.command(
    cls=ExtendedCommand,
    extended=with_transports,
    epilog="Agents start this command themselves. For Claude Code, put into .mcp.json:\n\n\b\n"
    '{"mcpServers": {"deepwork": {\n  "command": "deepwork", "args": ["serve", "--path", "."]\n}}}',
)
@exact_path_option
@env_option("--no-quality-gate", is_flag=True, help="Disable quality gate evaluation.")
@env_option("--transport", default=STDIO, show_default=True, help="How agents connect.")
@env_option(
    "--external-runner", metavar="NAME", help="Review runner for the quality gate (default: none, self-review)."
)
@env_option("--quality-gate-timeout", type=click.IntRange(1), metavar="SECONDS", help="For one review (default: 120).")
@env_option(
    "--quality-gate-max-attempts",
    type=click.IntRange(1),
    metavar="N",
    help="Failed reviews before a step is stuck (default: 3).",
)
@env_option("--platform", metavar="NAME", help="The agent's platform, e.g. claude; plugins adapt their answers to it.")
@env_option("--tools", metavar="SET[:SUBSET][,…]", help="Tool sets to serve (default: every installed one).")
# DEEPWORK_NO_PLUGINS is read with the configuration, by every command.
@click.option(
    "--no-plugin", "no_plugins", multiple=True, metavar="NAME", help="Load no plugin of this name or distribution."
)
@plugins_dir_option
@env_option("--state-store", metavar="NAME", help="Where sessions are kept (default: json).")
@env_option(
    "--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="How much is logged to stderr."
)
@env_option(
    "--log-json", type=click.Path(dir_okay=False, path_type=Path), help="Also write the log to a file as JSON lines."
)
def serve(**values: Any) -> None:
    """Serve the workflows of a project to an agent over MCP.

    Every option can be given in the environment: DEEPWORK_PORT for --port, and so on; for --path it is
    DEEPWORK_PROJECT. Options win over the environment, the environment over .deepwork/config.yml, that over your
    own config.yml. The log goes to stderr.
    """
    options = ServeOptions(**values)
    gc.disable()  # until everything is imported: searching the new objects for garbage takes a tenth of the start
    protocol_stdout = _redirect_stdout()
    _set_up_logging(options)
    remove_left_folders()
    from deepwork.server.build import build_server

    project = _open_project(options)
    run_transport = opened_transport(click.get_current_context(), project.plugins, options.transport)
    engine = _engine(project, options)
    server = build_server(project, engine, tools=options.tool_sets)
    # The objects of the start stay for good and need not be searched again; those of calls must be freed soon.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    if run_transport is None:
        from deepwork.server.stdio.wire import run_stdio

        run_stdio(server, sys.stdin.fileno(), protocol_stdout, when_ready=_say_that_it_waits)
    else:
        from deepwork.ports.records import Serving
        from deepwork.server.apps import served_apps
        from deepwork.server.frames import refusal_of

        run_transport(Serving(server=server, apps=lambda: served_apps(project, engine), refusal=refusal_of))


def _say_that_it_waits() -> None:
    if sys.stdin.isatty():
        say("Waiting for an agent on stdin. Agents start this command themselves; Ctrl-C ends it.", err=True)


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
