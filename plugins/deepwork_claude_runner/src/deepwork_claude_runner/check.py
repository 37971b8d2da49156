"""The check of `deepwork doctor`: whether Claude Code is installed, and new enough."""

from __future__ import annotations

from collections.abc import Iterator

import anyio

from deepwork.api import Finding, Level, PluginContext, run_program
from deepwork.errors import ProgramError
from deepwork.programs.processes import Completed
from deepwork_claude_runner import command
from deepwork_claude_runner.settings import ClaudeSettings

SECONDS = 20

# `--max-turns` and `--system-prompt-file` are missing here, because Claude Code accepts them without listing them.
FLAGS = (
    *("--print", "--output-format", "--json-schema", "--add-dir"),
    *(word for word in command.ISOLATED if word.startswith("--")),
)


def examine(settings: ClaudeSettings, context: PluginContext) -> Iterator[Finding]:
    """Ask the program for its version and its help, which starts no review."""

    async def run(flag: str) -> Completed:
        environment = command.environment(settings, context.environment)
        return await run_program(
            [settings.command, flag], cwd=context.project_root, environment=environment, seconds=SECONDS
        )

    try:
        version, help_ = anyio.run(run, "--version"), anyio.run(run, "--help")
    except ProgramError as error:
        cure = "Install Claude Code, or set plugins.settings.claude_runner.command"
        # Who has chosen it is warned under `quality gate`.
        yield Finding(Level.INFO, f"the runner claude cannot work: {error.message}", cure)
        return
    if version.returncode or help_.returncode:
        complaint = (version.stderr or help_.stderr).decode("utf-8", "replace").strip()[:200]
        text = f"{settings.command!r} does not print its version and help: {complaint}"
        yield Finding(Level.WARNING, text, "claude update")
        return
    help_text = help_.stdout.decode("utf-8", "replace")
    missing = [flag for flag in (*FLAGS, *_flags_of(settings)) if flag not in help_text]
    name = version.stdout.decode("utf-8", "replace").strip()[:100]
    if missing:
        yield Finding(Level.WARNING, f"{name} does not know {', '.join(missing)}", "claude update")
    else:
        yield Finding(Level.OK, f"{settings.command}: {name}")


def _flags_of(settings: ClaudeSettings) -> list[str]:
    values = {"--model": settings.model, "--max-budget-usd": settings.max_budget_usd}
    return [flag for flag, value in values.items() if value]
