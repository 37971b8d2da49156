"""Self-review: the criteria are written to a file, and the agent has a sub-agent judge by them."""

from __future__ import annotations

from contextlib import suppress

from anyio import to_thread

from deepwork.api import Folder, HandedBack, PluginContext, ReviewRequest, ReviewRunner
from deepwork.errors import StorageError
from deepwork.models.reviews import ReviewTask
from deepwork.text import visible

GUIDELINES = """\
## Guidelines

- Be strict, but fair: judge what the criteria ask, nothing else.
- A criterion that does not apply to this work counts as passed.
- Read the files themselves; do not rely on what the author says of them.
- The review as a whole passes only if every criterion passes.

## Your task

1. Read every file listed above.
2. Judge each criterion of each review by itself.
3. For each criterion write PASSED or FAILED, and one sentence why.
4. For each FAILED one say what has to change.
5. End with a single line: overall PASSED or overall FAILED.
"""


class SelfReview(ReviewRunner):
    """Never gives a verdict: it writes down what has to be judged, and hands that back."""

    def __init__(self, context: PluginContext) -> None:
        self._workspace = context.workspace

    async def review(self, request: ReviewRequest) -> HandedBack:
        """Write the review file, replacing an earlier one of this step."""
        name = f"quality_review_{request.session_id}_{request.step_id}.md"
        try:
            previous = await to_thread.run_sync(self._write, name, render(request).encode())
        except OSError as error:
            raise StorageError(
                f"The review file could not be written: {error.strerror}; nothing was changed"
            ) from error

        async def undo() -> None:
            await to_thread.run_sync(self._put_back, name, previous)

        path = self._workspace.shown(self._workspace.state_dir / name)
        return HandedBack(
            f"Quality review required. Spawn a subagent to do what {path} says. On FAILED "
            "fix the work, and repeat until all criteria pass. Then call finished_step again with the same outputs and "
            "quality_review_override_reason: what the review found.",
            undo,
        )

    def _open(self) -> Folder:
        return Folder.open(self._workspace.state_dir, inside=self._workspace.root)

    def _write(self, name: str, content: bytes) -> bytes | None:
        self._workspace.prepare_state_dir()
        with self._open() as folder:
            previous = folder.read(name)
            folder.replace(name, content)
        return previous

    def _put_back(self, name: str, previous: bytes | None) -> None:
        with suppress(OSError), self._open() as folder:
            if previous is None:
                folder.remove(name)
            else:
                folder.replace(name, previous)


def render(request: ReviewRequest) -> str:
    """Write the review file's text."""
    parts = [
        f"# Quality Review: {request.job_name}/{request.workflow_name}, step {request.step_id}",
        "You are a reviewer. Judge the outputs of this step by the criteria below. You did not make them, and you "
        f"change nothing. Paths are relative to {request.project_root}.",
        request.payload,
    ]
    if len(request.tasks) == 1:
        parts.append(_section("Criteria to Evaluate", request.tasks[0]))
    else:
        for number, task in enumerate(request.tasks, 1):
            scope = "all outputs" if task.run_each == "step" else f"output {task.run_each!r}"
            parts.append(_section(f"Review {number} ({scope})", task))
    if request.parameters:
        lines = [f"- **{name}**: {description}" for name, description in request.parameters.items()]
        parts.append("\n".join(["## What the step asked of the user", "", *lines]))
    if request.notes:
        parts.append(f"## Author Notes\n\n{request.notes}")
    parts.append(GUIDELINES)
    return "\n\n".join(parts)


def _section(title: str, task: ReviewTask) -> str:
    lines = [f"## {title}", "", *(f"- **{name}**: {question}" for name, question in task.criteria.items())]
    if task.one_by_one:
        lines += ["", "Judge each of these files by itself:", *(f"- {visible(path)}" for path in task.files)]
    elif task.files:
        lines += ["", f"Judge this file: {visible(task.files[0])}"]
    if task.guidance:
        lines += ["", "### Additional Context", "", task.guidance]
    return "\n".join(lines)
