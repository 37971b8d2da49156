"""Which reviews a file needs, and for each whether it has passed or what has changed since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepwork.api import PluginContext
from deepwork.errors import ArgumentError, PathRefused
from deepwork_review.changed import relative_path
from deepwork_review.identity import difference
from deepwork_review.names import printable
from deepwork_review.plan import Plan, PlannedReview, make_plan
from deepwork_review.review_folder import PassRecord


async def explain(context: PluginContext, file: str, *, base_ref: str | None = None) -> dict[str, Any]:
    """Explain the reviews of one file: as part of the whole change, or by itself if it has not changed.

    Raises:
        ToolError: The file or the base cannot be used, or git gives no answer.
    """
    try:
        path = relative_path(context.project_root, file)
    except PathRefused as error:
        raise ArgumentError(f"{printable(file)} {error.message}") from None
    plan, note = await _plan(context, path, base_ref)
    records = plan.folder.records()
    reviews = [review for review in plan.reviews if path in review.material.paths]
    if not reviews and not note:
        note = f"No rule applies to {printable(path)}."
    return {
        "file": printable(path),
        "note": note,
        "reviews": [
            {
                "name": review.material.name,
                "rule": printable(review.material.rule.place),
                "review_id": review.identity.review_id,
                "passed": review.record is not None,
                "state": _state(review, path, records),
            }
            for review in reviews
        ],
        "warnings": plan.warnings,
    }


async def _plan(context: PluginContext, path: str, base_ref: str | None) -> tuple[Plan, str | None]:
    plan = await make_plan(context, base_ref=base_ref)
    if path in plan.changes.files or path in plan.changes.deleted:
        return plan, None
    file_plan = await make_plan(context, files=[path])
    if not file_plan.reviews:
        return file_plan, f"{printable(path)} has not changed, and no rule applies to it."
    return file_plan, f"{printable(path)} has not changed, compared with {plan.changes.compared}. If it did:"


def _state(review: PlannedReview, path: str, records: Sequence[PassRecord]) -> str:
    if review.record:
        summary = f": {review.record.summary}" if review.record.summary else ""
        return f"passed {review.record.at[:19]} by {review.record.by}, and nothing has changed since{summary}"
    earlier = _latest(review, path, records)
    if earlier is None:
        return "to be reviewed: it has never passed"
    changed = ", ".join(map(printable, difference(earlier.components, review.identity.components)))
    return f"to be reviewed: since it passed {earlier.at[:19]}, this has changed: {changed}"


def _latest(review: PlannedReview, path: str, records: Sequence[PassRecord]) -> PassRecord | None:
    """Find the newest pass of the same rule that was about this file; the records come newest first."""
    rule = review.material.rule
    for record in records:
        components = record.components
        try:
            same_rule = (components["rule"]["name"], components["folder"]) == (rule.name, rule.folder)
            if same_rule and path in components["files"]:
                return record
        except (KeyError, TypeError):
            continue
    return None
