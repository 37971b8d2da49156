"""What `deepwork doctor` says of Claude Code."""

from __future__ import annotations

from collections.abc import Iterator

import anyio

from deepwork.api import Completed, Finding, Level, PluginContext, ProgramError, run_program
from deepwork_claude_runner import command
from deepwork_claude_runner.settings import ClaudeSettings

SECONDS = 20

# `--max-turns` is accepted and not in the help.
FLAGS = (
    *("--print", "--output-format", "--system-prompt", "--json-schema"),
    *(word for word in command.ISOLATED if word.startswith("--")),
)


def examine(settings: ClaudeSettings, context: PluginContext) -> Iterator[Finding]:
    """Ask the program for its version and its help; it is not told to do anything."""

    async def ask(flag: str) -> Completed:
        environment = command.environment(settings, context.environment)
        return await run_program(
            [settings.command, flag], cwd=context.project_root, environment=environment, seconds=SECONDS
        )

    try:
        version, told = anyio.run(ask, "--version"), anyio.run(ask, "--help")
    except ProgramError as error:
        cure = "Install Claude Code, or set plugins.settings.claude_runner.command"
        yield Finding(Level.WARNING, f"the runner claude cannot work: {error.message}", cure)
        return
    if version.returncode or told.returncode:
        words = (version.stderr or told.stderr).decode("utf-8", "replace").strip()[:200]
        text = f"{settings.command!r} does not tell its version and help: {words}"
        yield Finding(Level.WARNING, text, "claude update")
        return
    known = told.stdout.decode("utf-8", "replace")
    missing = [flag for flag in (*FLAGS, *_set(settings)) if flag not in known]
    shown = version.stdout.decode("utf-8", "replace").strip()[:100]
    if missing:
        yield Finding(Level.WARNING, f"{shown} does not know {', '.join(missing)}", "claude update")
    else:
        yield Finding(Level.OK, f"{settings.command}: {shown}")


def _set(settings: ClaudeSettings) -> list[str]:
    wanted = {"--model": settings.model, "--max-budget-usd": settings.max_budget_usd}
    return [flag for flag, value in wanted.items() if value]
