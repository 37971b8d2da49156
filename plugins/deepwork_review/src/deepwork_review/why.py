"""Which reviews a file needs, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepwork.api import ArgumentError, PathRefused, PluginContext
from deepwork_review.cache import Passed, ReviewFolder, difference
from deepwork_review.changed import inside
from deepwork_review.names import shown
from deepwork_review.plan import Plan, Review, make_plan


async def explain(context: PluginContext, file: str, *, base_ref: str | None = None) -> dict[str, Any]:
    """Explain the reviews of one file: as part of the whole change, or by itself if it has not changed.

    Raises:
        ToolError: The file or the base cannot be used, or git gives no answer.
    """
    try:
        path = inside(context.project_root, file)
    except PathRefused as error:
        raise ArgumentError(f"{shown(file)} {error.message}") from None
    plan, note = await _plan(context, path, base_ref)
    passes = ReviewFolder(context.workspace).passes()
    about = [review for review in plan.reviews if path in review.material.paths]
    if not about and not note:
        note = f"No rule applies to {shown(path)}."
    return {
        "file": shown(path),
        "note": note,
        "reviews": [
            {
                "name": review.material.name,
                "rule": shown(review.material.rule.place),
                "review_id": review.identity.review_id,
                "passed": review.passed is not None,
                "state": _state(review, path, passes),
            }
            for review in about
        ],
        "warnings": plan.warnings,
    }


async def _plan(context: PluginContext, path: str, base_ref: str | None) -> tuple[Plan, str | None]:
    plan = await make_plan(context, base_ref=base_ref)
    if path in plan.changes.files or path in plan.changes.deleted:
        return plan, None
    alone = await make_plan(context, files=[path])
    note = f"{shown(path)} has not changed, compared with {plan.changes.compared}. If it did:"
    return alone, note if alone.reviews else f"{shown(path)} has not changed, and no rule applies to it."


def _state(review: Review, path: str, passes: Sequence[Passed]) -> str:
    if review.passed:
        found = f": {review.passed.summary}" if review.passed.summary else ""
        return f"passed {review.passed.at[:19]} by {review.passed.by}, and nothing has changed since{found}"
    earlier = _latest(review, path, passes)
    if earlier is None:
        return "to be reviewed: it has never passed"
    changed = ", ".join(map(shown, difference(earlier.components, review.identity.components)))
    return f"to be reviewed: since it passed {earlier.at[:19]}, this has changed: {changed}"


def _latest(review: Review, path: str, passes: Sequence[Passed]) -> Passed | None:
    """Find the newest pass of the same rule that was about this file; passes come newest first."""
    rule = review.identity.components["rule"]["name"], review.identity.components["folder"]
    for one in passes:
        try:
            if (one.components["rule"]["name"], one.components["folder"]) == rule and path in one.components["files"]:
                return one
        except (KeyError, TypeError):
            continue
    return None
