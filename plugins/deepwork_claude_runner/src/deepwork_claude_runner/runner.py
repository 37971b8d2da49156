"""The runner `claude`: one process of Claude Code for each review."""

from __future__ import annotations

from collections.abc import Mapping

from deepwork.api import (
    NeedsWork,
    Passed,
    ProgramMissing,
    ReviewRequest,
    ReviewRunner,
    RunnerUnavailable,
    run_program,
)
from deepwork_claude_runner import command, output
from deepwork_claude_runner.settings import ClaudeSettings

MAX_OUTPUT = 8 * 1024 * 1024


class ClaudeCLI(ReviewRunner):
    """Runs Claude Code in print mode, isolated from the settings of its user.

    Args:
        settings: The settings of the plugin.
        environment: The environment of the server, of which the program sees only a part.
    """

    def __init__(self, settings: ClaudeSettings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._environment = environment

    async def review(self, request: ReviewRequest) -> Passed | NeedsWork:
        """Have the work of one review judged.

        Raises:
            RunnerError: There is no verdict; the error says why.
            ProgramError: It took too long or printed too much.
        """
        try:
            completed = await run_program(
                command.arguments(self._settings, request),
                cwd=request.project_root,
                environment=command.environment(self._settings, self._environment),
                seconds=request.seconds,
                stdin=command.prompt(request).encode("utf-8", "replace"),
                max_output=MAX_OUTPUT,
            )
        except ProgramMissing as error:
            hint = "Install Claude Code, or name its program in plugins.settings.claude_runner.command."
            raise RunnerUnavailable(error.message, hint=hint) from error
        return output.verdict(completed)
