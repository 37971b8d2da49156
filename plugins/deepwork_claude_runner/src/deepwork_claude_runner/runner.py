"""The runner `claude`: one process of Claude Code for each review."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from anyio import to_thread

from deepwork.api import NeedsWork, Passed, PluginContext, ReviewRequest, ReviewRunner, run_program
from deepwork.errors import ProgramMissing, RunnerError, RunnerUnavailable
from deepwork.paths.private_folders import private_folder
from deepwork.programs.programs import find_program
from deepwork_claude_runner import command, output
from deepwork_claude_runner.settings import ClaudeSettings

MAX_OUTPUT = 8 * 1024 * 1024
CURE = "Install Claude Code, or name its program in plugins.settings.claude_runner.command."
UNTRUSTED = "plugins.settings.claude_runner names a file of this project, and the user has not trusted it as it is now"
TRUST = "Ask the user to run `deepwork trust`; it takes effect at once."


class ClaudeCLI(ReviewRunner):
    """Runs Claude Code in print mode, isolated from the settings of its user.

    Args:
        settings: The settings of the plugin.
        context: Its environment is the server's; the program sees only a part of it.
    """

    def __init__(self, settings: ClaudeSettings, context: PluginContext) -> None:
        self._settings = settings
        self._context = context
        self._trusted = command.trusted(settings)

    async def review(self, request: ReviewRequest) -> Passed | NeedsWork:
        """Have the work of one review judged.

        Raises:
            RunnerError: There is no verdict; the error says why.
            ProgramError: It took too long or printed too much.
        """
        try:
            async with self._context.prepared(self._trusted) as words:
                if words is None:
                    raise RunnerUnavailable(UNTRUSTED, hint=TRUST)
                with _private_file(command.system_prompt(request)) as system_prompt:
                    completed = await run_program(
                        command.arguments(self._settings, request, system_prompt, words[1:]),
                        cwd=request.files_root,
                        environment=command.environment(self._settings, self._context.environment),
                        seconds=request.seconds,
                        stdin=command.prompt(request).encode("utf-8", "replace"),
                        max_output=MAX_OUTPUT,
                        project=request.project_root,
                    )
        except ProgramMissing as error:
            raise RunnerUnavailable(error.message, hint=CURE) from error
        return _with_true_names(output.verdict(completed), request)

    async def unavailable(self, project_root: Path) -> RunnerUnavailable | None:
        """Return why the program cannot run: it is missing, or a file among its arguments waits for trust."""
        try:
            async with self._context.prepared(self._trusted) as words:
                if words is None:
                    return RunnerUnavailable(UNTRUSTED, hint=TRUST)
            await to_thread.run_sync(find_program, self._settings.command, self._context.environment, project_root)
        except ProgramMissing as error:
            return RunnerUnavailable(error.message, hint=CURE)
        return None


@contextmanager
def _private_file(text: str) -> Iterator[Path]:
    """Write a text to a file that only its owner can read, and remove it at the end.

    Raises:
        RunnerError: It cannot be written.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(private_folder()) / "criteria.md"
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="utf-8", errors="replace") as opened:
                opened.write(text)
        except OSError as error:
            raise RunnerError(f"the criteria could not be written for Claude: {error.strerror}") from error
        yield file


def _with_true_names(verdict: Passed | NeedsWork, request: ReviewRequest) -> Passed | NeedsWork:
    """Return a verdict with the original names of criteria, before mentions in them were broken up."""
    names = command.names_as_shown(request)
    results = [
        result.model_copy(update={"criterion": names.get(result.criterion, result.criterion)})
        for result in verdict.criteria
    ]
    files = {command.without_mentions(file): file for file in request.files}
    findings = [
        finding.model_copy(
            update={
                "criterion": names.get(finding.criterion or "", finding.criterion),
                "file": files.get(finding.file, finding.file),
            }
        )
        for finding in verdict.findings
    ]
    return replace(verdict, criteria=tuple(results), findings=tuple(findings))
