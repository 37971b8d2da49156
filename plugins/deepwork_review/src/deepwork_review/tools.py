"""The three tools, as agents see them. Their parts are imported at the first call, so that servers start fast."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deepwork.api import PluginContext, PromptSpec, ToolCall, ToolSet, ToolSpec

INSTRUCTIONS = (
    "Reviews: before you call a change finished, get_review_instructions tells which reviews it needs. Have each done "
    "by a reviewer of its own, fix what they find, and ask again until nothing is left."
)
Files = Annotated[list[str] | None, Field(max_length=10_000)]


def tool_set(context: PluginContext) -> ToolSet:
    """Make the tools for a project."""

    async def get_review_instructions(
        files: Annotated[Files, Field(description="Only these. Default: all that has changed against the base")] = None,
    ) -> str:
        """List the reviews that changed files need by the rules in .deepreview files. Run all, in parallel."""
        from deepwork_review.replies import needed_reviews

        return await needed_reviews(context, files)

    async def get_configured_reviews(
        only_rules_matching_files: Annotated[Files, Field(description="Only rules that match one of these")] = None,
    ) -> list[dict[str, str]]:
        """List the review rules of .deepreview files: name, description and where each stands."""
        from deepwork_review.replies import configured_rules

        return await configured_rules(context, only_rules_matching_files)

    def mark_review_as_passed(
        call: ToolCall,
        review_id: Annotated[str, Field(description="From the end of the review's instructions")],
        summary: Annotated[str | None, Field(description="What the review found, in a sentence")] = None,
    ) -> str:
        """Record that a review found nothing to change. It is left out until something that matters to it changes."""
        from deepwork_review.review_folder import ReviewFolder

        by = f"{call.client.name} {call.client.version}" if call.client else "an unnamed client"
        ReviewFolder(context).mark(review_id, by[:200], summary)
        return f"Review {review_id!r} is recorded as passed."

    def review() -> str:
        return (
            "Review my change: call get_review_instructions, have each review that it lists done by a reviewer of its "
            "own, in parallel, and fix what they find. Then call it again, until nothing is left, and tell me what was "
            "found and what you have changed."
        )

    return ToolSet(
        name="review",
        instructions=INSTRUCTIONS,
        prompts=[PromptSpec("review", review, "Review what has changed, and fix what is found")],
        tools=[
            ToolSpec("get_review_instructions", get_review_instructions, title="List needed reviews", output="text"),
            ToolSpec(
                "get_configured_reviews",
                get_configured_reviews,
                title="List review rules",
                read_only=True,
                idempotent=True,
                output="json",
            ),
            ToolSpec(
                "mark_review_as_passed",
                mark_review_as_passed,
                title="Record a passed review",
                idempotent=True,
                output="text",
            ),
        ],
    )
