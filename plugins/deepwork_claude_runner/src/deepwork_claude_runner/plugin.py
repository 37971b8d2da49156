"""The hooks: a review runner and a check."""

from __future__ import annotations

from collections.abc import Iterator

from deepwork import hookimpl
from deepwork.api import Check, PluginContext, ReviewRunnerSpec


@hookimpl
def deepwork_review_runners(context: PluginContext) -> Iterator[ReviewRunnerSpec]:
    """The runner `claude`."""
    from deepwork_claude_runner.runner import ClaudeCLI
    from deepwork_claude_runner.settings import ClaudeSettings

    settings = context.settings(ClaudeSettings)
    yield ReviewRunnerSpec(
        name="claude",
        create=lambda: ClaudeCLI(settings, context),
        max_inline_files=5,
        concurrency=settings.concurrency,
    )


@hookimpl
def deepwork_checks(context: PluginContext) -> Iterator[Check]:
    """Whether the program is installed and knows our flags."""
    from deepwork_claude_runner.check import examine
    from deepwork_claude_runner.command import trusted
    from deepwork_claude_runner.settings import ClaudeSettings

    settings = context.settings(ClaudeSettings)
    # Words that name no file need no trust; that the program is missing is for the check itself to say.
    commands = [trusted(settings)] if settings.extra_arguments or "/" in settings.command else []
    yield Check("claude", lambda: examine(settings, context), lambda: commands)
