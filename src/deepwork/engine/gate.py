"""The quality gate: whether a step may be completed."""

from __future__ import annotations

from collections.abc import Iterator

from deepwork.engine.payload import review_payload
from deepwork.engine.progress import outputs_by_step
from deepwork.models.jobs import Step, UserInput
from deepwork.models.replies import Outputs
from deepwork.models.reviews import HandedBack, ReviewRequest, ReviewTask
from deepwork.models.sessions import Session
from deepwork.ports.review_runner import ReviewRunner
from deepwork.workspace import Workspace


class QualityGate:
    """Hands what a step has made to a runner.

    Args:
        cli: The external reviewer; None in self-review mode.
        max_inline_files: Up to this many files stand in the payload with their contents.
        self_review: Hands reviews back to the agent.
        timeout: Seconds that an external review may take.
        max_attempts: Failed verdicts after which a step is stuck.
    """

    def __init__(
        self,
        cli: ReviewRunner | None,
        *,
        max_inline_files: int,
        self_review: ReviewRunner,
        workspace: Workspace,
        timeout: int,
        max_attempts: int,
    ) -> None:
        self.cli = cli
        self.max_inline_files = max_inline_files
        self.timeout = timeout
        self.max_attempts = max_attempts
        self._runner = cli or self_review
        self._workspace = workspace

    async def judge(self, session: Session, step: Step, outputs: Outputs, *, notes: str | None) -> HandedBack | None:
        """Have a step judged; None when there is nothing to judge."""
        tasks = tuple(_tasks(step, outputs))
        if not tasks:
            return None
        request = ReviewRequest(
            session_id=session.session_id,
            job_name=session.job_name,
            workflow_name=session.workflow_name,
            step_id=step.id,
            project_root=self._workspace.root,
            tasks=tasks,
            payload=review_payload(step, outputs, outputs_by_step(session)),
            notes=notes,
            parameters={given.name: given.description for given in step.inputs if isinstance(given, UserInput)},
        )
        return await self._runner.review(request)


def _tasks(step: Step, outputs: Outputs) -> Iterator[ReviewTask]:
    """Turn reviews into tasks; a review of an output that was not submitted is left out."""
    for review in step.reviews:
        value = outputs.get(review.run_each)
        if review.run_each != "step" and not value:
            continue
        yield ReviewTask(
            run_each=review.run_each,
            criteria=review.quality_criteria,
            guidance=review.additional_review_guidance,
            files=(value,) if isinstance(value, str) else tuple(value or ()),
            one_by_one=isinstance(value, list),
        )
