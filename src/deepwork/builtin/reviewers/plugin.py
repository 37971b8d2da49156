"""The hooks of the feature `reviewers`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from deepwork import hookimpl
from deepwork.api import PluginContext, ReviewRunnerSpec
from deepwork.builtin.reviewers.command_runner import MAX_INLINE_FILES, CommandRunner
from deepwork.builtin.reviewers.self_review import SelfReview


@hookimpl
def deepwork_review_runners(context: PluginContext) -> Iterator[ReviewRunnerSpec]:
    """`self`, which the gate uses when no external runner is chosen, and a runner for each configured program."""
    yield ReviewRunnerSpec(name="self", create=lambda: SelfReview(context), max_inline_files=0, gives_verdicts=False)
    for command in context.review_commands:
        yield ReviewRunnerSpec(
            name=command.name,
            create=partial(CommandRunner, command, context),
            max_inline_files=MAX_INLINE_FILES,
            judges_project=command.folder == "project",
            repeatable=command.repeatable,
            must_fail=command.must_fail,
        )
