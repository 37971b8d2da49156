"""Hypothesis strategies for what DeepWork reads and stores."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from deepwork.api import JobFile, Session, SessionStatus, Step, StepOutput, Workflow
from deepwork.models.history import HistoryEntry
from deepwork.models.jobs import Review
from deepwork.models.sessions import SCHEMA_VERSION, StepProgress

# What JSON, YAML and databases can all carry.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
names = st.from_regex(r"[a-z][a-z0-9_]{0,15}", fullmatch=True)
times = st.datetimes(
    datetime(2020, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone itself
    datetime(2040, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
).map(lambda moment: moment.isoformat(timespec="microseconds"))
outputs = st.dictionaries(names, texts | st.lists(texts, max_size=3), max_size=3)
details = st.dictionaries(names, st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts, max_size=3)


@st.composite
def sessions(draw: st.DrawFn, session_ids: st.SearchStrategy[str] = names) -> Session:
    """Make a session with progress and history; fields of a newer release may be among its own."""
    steps = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    session: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "session_id": draw(session_ids),
        "status": draw(st.sampled_from(SessionStatus)),
        "job_name": draw(names),
        "workflow_name": draw(names),
        "current_step_id": draw(st.sampled_from(steps)),
        "started_at": draw(times),
        "updated_at": draw(times),
        "completed_at": draw(st.none() | times),
        "principal": draw(texts),
        "goal": draw(texts),
        "instance_id": draw(st.none() | texts),
        "abort_reason": draw(st.none() | texts),
        "parents": draw(st.lists(names, max_size=2)),
        "step_progress": {step: draw(_progress(step)) for step in steps},
        "history": draw(st.lists(st.builds(HistoryEntry, at=times, kind=names, detail=details), max_size=4)),
    }
    newer = draw(st.dictionaries(names.map("newer_{}".format), texts, max_size=1))
    return Session(**newer, **session)


# What reviews and persons can do to a step, each as the kind and the detail of an entry.
_events = st.one_of(
    st.tuples(st.just("verdict"), st.fixed_dictionaries({"passed": st.booleans(), "feedback": st.text(max_size=300)})),
    st.tuples(st.just("verdict"), st.just({"passed": False, "changed": ["a.md"]})),
    st.tuples(
        st.just("infrastructure"),
        st.fixed_dictionaries({"kind": st.sampled_from(["RunnerUnavailable", "RunnerTimeout"]), "error": texts}),
    ),
    st.tuples(st.just("attempt"), st.sampled_from([{}, {"max_attempts": 1, "max_failures": 1}, {"max_attempts": 5}])),
    st.tuples(st.just("override_asked"), st.fixed_dictionaries({"reason": texts})),
    st.tuples(st.just("override"), st.sampled_from([{"by": "person", "reason": "fine"}, {"reason": "agent"}])),
    st.tuples(
        st.sampled_from(["reopened", "attempt_given_back", "review_handed_back", "step_begun", "note", "later"]),
        st.just({}),
    ),
)


@st.composite
def continuations(draw: st.DrawFn, session: Session) -> Session:
    """Continue a session with events of its steps in any order, as an edited file may have them."""
    steps = st.sampled_from(sorted(session.step_progress))
    counts = {"quality_attempts": draw(st.integers(0, 4)), "runner_failures": draw(st.integers(0, 4))}
    entries = [
        HistoryEntry(at=session.started_at, kind=kind, step_id=step_id, detail=detail)
        for step_id, (kind, detail) in draw(st.lists(st.tuples(steps, _events), max_size=10))
    ]
    progress = {name: progress.model_copy(update=counts) for name, progress in session.step_progress.items()}
    return session.model_copy(update={"history": [*session.history, *entries], "step_progress": progress})


def _progress(step_id: str) -> st.SearchStrategy[StepProgress]:
    return st.builds(
        StepProgress,
        step_id=st.just(step_id),
        started_at=st.none() | times,
        outputs=outputs,
        notes=st.none() | texts,
        quality_attempts=st.integers(0, 9),
    )


@st.composite
def jobs(draw: st.DrawFn) -> JobFile:
    """Make the content of a good `job.yml`: reviews name outputs, and workflows name steps."""
    ids = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    flows = draw(st.lists(names, min_size=1, max_size=2, unique=True))
    return JobFile(
        name=draw(names),
        version="1.0.0",
        summary=draw(_prose),
        common_job_info_provided_to_all_steps_at_runtime=draw(_prose),
        steps=[draw(_steps(step_id)) for step_id in ids],
        workflows=[Workflow(name=flow, summary=draw(_prose), steps=draw(_entries(ids))) for flow in flows],
    )


# YAML keeps such text as it is, and an empty one is unusual.
_prose = st.text(st.characters(categories=["L", "N", "P", "Zs"], exclude_characters="\xa0"), min_size=1, max_size=40)


@st.composite
def _steps(draw: st.DrawFn, step_id: str) -> Step:
    promised = draw(
        st.dictionaries(
            names,
            st.builds(StepOutput, type=st.sampled_from(["file", "files"]), description=_prose, required=st.booleans()),
            max_size=3,
        )
    )
    review = st.builds(
        Review,
        run_each=st.sampled_from(["step", *promised]),
        quality_criteria=st.dictionaries(names, _prose, min_size=1, max_size=2),
        additional_review_guidance=st.none() | _prose,
    )
    return Step(
        id=step_id,
        name=draw(_prose),
        description=draw(_prose),
        instructions_file=f"steps/{step_id}.md",
        outputs=promised,
        reviews=draw(st.lists(review, max_size=2)),
    )


@st.composite
def _entries(draw: st.DrawFn, ids: list[str]) -> list[str | list[str]]:
    """Put steps into an order; two that follow each other may be a concurrent group."""
    order: list[str] = draw(st.permutations(ids))
    if len(order) > 1 and draw(st.booleans()):
        return [order[:2], *order[2:]]
    return list(order)
