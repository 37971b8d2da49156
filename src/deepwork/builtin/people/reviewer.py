"""The reviewer `person`: a person looks at the work in their own time, and the step waits for them."""

from __future__ import annotations

from deepwork.api import ReviewRequest, ReviewRunner
from deepwork.models.reviews import Waiting

NAME = "person"
WAITS = (
    "A person reviews this step; it waits in `deepwork inbox`, and this counts as no attempt. Tell your user, and do "
    "other work, or end your turn. When they have answered, call finished_step again with the same outputs."
)


class PersonReviewer(ReviewRunner):
    """Never judges: it names the item of the inbox where the person does."""

    async def review(self, request: ReviewRequest) -> Waiting:
        """Return where the step waits."""
        return Waiting(f"sessions:{request.session_id}.{request.step_id}", WAITS)
