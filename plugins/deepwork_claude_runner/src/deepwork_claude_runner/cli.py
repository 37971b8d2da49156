"""The runner: one Claude Code process for each review."""

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
from deepwork_claude_runner import command, reply
from deepwork_claude_runner.settings import ClaudeSettings

MAX_OUTPUT = 8 * 1024 * 1024


class ClaudeCLI(ReviewRunner):
    """Asks Claude Code in print mode, isolated from its user's own set-up."""

    def __init__(self, settings: ClaudeSettings, everything: Mapping[str, str]) -> None:
        self._settings = settings
        self._environment = everything

    async def review(self, request: ReviewRequest) -> Passed | NeedsWork:
        """Have one review judged.

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
            cure = "Install Claude Code, or name its program in plugins.settings.claude_runner.command."
            raise RunnerUnavailable(error.message, hint=cure) from error
        return reply.verdict(completed)
