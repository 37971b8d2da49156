"""What OpenTelemetry is told: the step that a call is about, and a span for each review.

Only its API is used. Without an SDK, which an operator configures in the ways of OpenTelemetry, nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.context import Context

from deepwork.models.sessions import Session

TRACER = trace.get_tracer("deepwork")


def describe_call(session: Session, step_id: str) -> None:
    """Tell the span of the call, which FastMCP has opened, which step it is about."""
    trace.get_current_span().set_attributes(_attributes(session, step_id))


def span_of_call() -> Context:
    """Return where spans belong that are parts of this call, for a task that outlives it."""
    return context.get_current()


@contextmanager
def review_span(parent: Context, session: Session, step_id: str) -> Iterator[trace.Span]:
    """Open the span of a review."""
    with TRACER.start_as_current_span("deepwork.review", parent, attributes=_attributes(session, step_id)) as span:
        yield span


def _attributes(session: Session, step_id: str) -> dict[str, str | int]:
    progress = session.step_progress.get(step_id)
    return {
        "deepwork.session_id": session.session_id,
        "deepwork.workflow": session.workflow,
        "deepwork.step_id": step_id,
        "deepwork.attempt": progress.quality_attempts if progress else 0,
    }
