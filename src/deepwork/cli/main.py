"""The command `deepwork`: its subcommands, imported when they are used, and its exit codes.

0 done, 1 expected error, 2 wrong usage, 3 a bug of ours, 130 interrupted.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import threading
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

import click

from deepwork import __version__
from deepwork.cli.features import feature_commands, feature_of, is_left_out, root_in, silent_command
from deepwork.cli.logs import set_up_warnings
from deepwork.commands.groups import CommandGroup
from deepwork.commands.spec import CommandSpec
from deepwork.commands.terminal import say, say_error, say_misuse, say_text
from deepwork.errors import DeepWorkError
from deepwork.paths.user_folders import user_state_dir

if TYPE_CHECKING:
    from deepwork.cli.plugin_commands import PluginCommands

KERNEL = {
    "serve": CommandSpec("deepwork.cli.serve:serve", 10, "Serve the workflows of a project to an agent over MCP."),
    "init": CommandSpec(
        "deepwork.cli.init:init",
        20,
        "Prepare a project: .deepwork/ with a commented configuration and a sample job, and clients connected.",
    ),
    "jobs": CommandSpec("deepwork.cli.jobs:jobs", 60, "List, write, check, try and test job files."),
    "sessions": CommandSpec(
        "deepwork.cli.sessions:sessions", 70, "Show, verify, abort, reopen or archive the sessions of this project."
    ),
    "gate": CommandSpec(
        "deepwork.cli.gate:gate", 80, "Show what was reviewed and why, and try a step's reviews on files."
    ),
    "plugins": CommandSpec(
        "deepwork.cli.plugins:plugins",
        90,
        "List the installed plugins: where each comes from, what it adds, and what is wrong with it.",
    ),
    "trust": CommandSpec(
        "deepwork.cli.trust:trust",
        100,
        "Approve this project's settings and commands that run programs or use folders outside it.",
    ),
    "doctor": CommandSpec("deepwork.cli.doctor:doctor", 110, "Check the installation and this project."),
    "schema": CommandSpec(
        "deepwork.cli.schema:schema",
        120,
        "Print the JSON Schema of job.yml, config.yml or *.test.yml, for completion and checks in editors.",
    ),
    "new-plugin": CommandSpec(
        "deepwork.cli.new_plugin:new_plugin",
        130,
        "Create the distribution deepwork-NAME: a plugin with tests that passes lint, type checks and tests at once.",
    ),
    "completion": CommandSpec("deepwork.cli.completion:completion", 150, "Print the completion script of a shell."),
}

# The commands of the kernel and of all features, left out or not.
COMMANDS = dict(sorted({**KERNEL, **feature_commands()}.items(), key=lambda item: item[1].place))

# The commands of our own plugins, for errors that name the plugin to install.
OF_PLUGINS = {
    "dashboard": "deepwork_dashboard",
    "events": "deepwork_sql",
    "plan": "deepwork_orchestration",
    "review": "deepwork_review",
    "reviews": "deepwork_review",
    "run": "deepwork_run",
    "runs": "deepwork_run",
    "store": "deepwork_sql",
    "track": "deepwork_tracking",
}

# How long threads may still run that are about to end, such as those of a closed event loop.
THREAD_SECONDS = 0.5

# Imports create tens of thousands of objects that stay; searching them for garbage would slow every start.
GC_THRESHOLD = 50_000


_ROOT = "deepwork.cli.root"


class LazyGroup(CommandGroup):
    """A group that imports a command when it is used, and plugins only for a command that the core does not have."""

    _extensions: PluginCommands | None = None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order in which a new user needs them, then those of plugins."""
        return [*self._specs(ctx), *self._of_plugins()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        spec = COMMANDS.get(cmd_name)
        if spec is None:
            of_plugins = self._plugin_commands()
            if cmd_name in of_plugins.clashing:
                ctx.fail(f"{cmd_name!r} is hidden: two plugins offer it.")
            return of_plugins.commands.get(cmd_name)
        feature = feature_of(spec)
        if feature is None or not self._is_left_out(ctx, feature):
            return spec.load()
        if not spec.is_answer:
            ctx.fail(f"No such command {cmd_name!r}: the feature {feature!r} has it, which is left out.")
        return silent_command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; the project that it is for, where it is named, can leave features out."""
        ctx.meta[_ROOT] = root_in(args)
        return super().resolve_command(ctx, args)

    def cure(self, ctx: click.Context, name: str) -> str:
        """Name the plugin that has the command, or the command that was meant."""
        if name in OF_PLUGINS:
            plugin = OF_PLUGINS[name]
            return f" The plugin {plugin} has it, which is not installed or not loaded: see `deepwork plugins --all`."
        return super().cure(ctx, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each command. Commands are imported only where their first sentence is not known."""
        from deepwork.cli.command_cache import plugin_summaries

        specs = {name: spec.summary for name, spec in self._specs(ctx).items()}
        summaries = {**specs, **plugin_summaries(self._of_plugins)}
        shorts = {name: click.Command(name, help=text).get_short_help_str(1000) for name, text in summaries.items()}
        with formatter.section("Commands"):
            formatter.write_dl([*shorts.items()])

    def _specs(self, ctx: click.Context) -> dict[str, CommandSpec]:
        """Return the commands of the kernel, and of the features that are not left out."""
        return {
            name: spec
            for name, spec in COMMANDS.items()
            if (feature := feature_of(spec)) is None or not self._is_left_out(ctx, feature)
        }

    def _is_left_out(self, ctx: click.Context, feature: str) -> bool:
        return is_left_out(feature, ctx.meta.get(_ROOT) or root_in([]))

    def _of_plugins(self) -> dict[str, click.Command]:
        return self._plugin_commands().commands

    def _plugin_commands(self) -> PluginCommands:
        if self._extensions is None:
            from deepwork.cli.plugin_commands import plugin_commands

            self._extensions = plugin_commands(COMMANDS)
        return self._extensions


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with `deepwork init --client claude`; `deepwork connect` lists the other clients.",
)
@click.version_option(__version__, prog_name="deepwork")
def main() -> None:
    """Lead AI coding agents through multi-step work: one step at a time, checked, reviewed and remembered."""


def run() -> NoReturn:
    """Run the command and end the process with its exit code."""
    if sys.platform == "win32":
        say_error(DeepWorkError("deepwork is untested on Windows and does not start there.", hint="Use WSL."))
        sys.exit(1)
    gc.set_threshold(GC_THRESHOLD)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for names that the terminal cannot show
    set_up_warnings()
    _leave(_run())


def _leave(code: int) -> NoReturn:
    """End the process, even if a thread of a plugin still runs, for which the interpreter would wait forever."""
    threads = [
        thread for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon
    ]
    for thread in threads:
        thread.join(THREAD_SECONDS)
    running = [thread.name for thread in threads if thread.is_alive()]
    if running:
        say(f"Ended without waiting for: {', '.join(running)}", err=True)
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _run() -> int:
    try:
        color = False if os.environ.get("NO_COLOR") else None
        result = main.main(prog_name="deepwork", standalone_mode=False, color=color)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        say_misuse(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("Interrupted.", err=True)
        return 130
    except DeepWorkError as error:
        say_error(error)
        return 1
    except BrokenPipeError:
        # Nobody reads stdout any more. The interpreter flushes it once more at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - a bug: the user gets one line that names the file with the details
        if _is_interruption(error):
            say("Interrupted.", err=True)
            return 130
        say_text(_keep_traceback(), "Error: this is a bug of deepwork. Details: ", err=True)
        return 3


def _is_interruption(error: BaseException | None) -> bool:
    """True for an error that Ctrl-C has caused, which is wrapped where classes are made, and by pydantic as a text."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or KeyboardInterrupt.__name__ in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _keep_traceback() -> str:
    text = f"deepwork {__version__}, Python {sys.version}\n{' '.join(sys.argv)}\n\n{traceback.format_exc()}"
    folder = user_state_dir(os.environ)
    file = folder / f"bug-{datetime.now(UTC):%Y%m%dT%H%M%S}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(file, flags, 0o600), "w", encoding="utf-8", errors="backslashreplace") as report:
            report.write(text)
    except OSError:
        return text
    return str(file)
