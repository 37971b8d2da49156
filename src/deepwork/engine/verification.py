"""Whether the gates of a finished session were judged on the very files that are there now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from deepwork.engine.reports import work_of
from deepwork.gate.fingerprints import Fingerprints, take_fingerprints
from deepwork.gate.payload import printable
from deepwork.gate.work import Portion, Work, portions, verdict_keys
from deepwork.models.history import Override, SelfReview, Verdict
from deepwork.models.sessions import Session, SessionStatus
from deepwork.models.standing import GateRecord, Passage
from deepwork.sessions.standing import last_report, passage, review_words
from deepwork.text import one_line


def verify(session: Session, roots: Sequence[Path]) -> list[GateRecord]:
    """Compare what the history says of each gate with the files. Reads them whole."""
    if session.definition is None:
        reason = "the session is of release 0.9, which kept no verdicts"
        return [GateRecord("*", Passage.NOT_JUDGED, exceptions=(reason,))]
    records = [_record(session, step_id, roots) for step_id in session.definition.workflow.step_ids]
    if not session.is_unchanged:
        reason = "its stored workflow, steps or reviews are not those with which it was started"
        records.insert(0, GateRecord("*", Passage.NOT_JUDGED, exceptions=(reason,)))
    if session.status is not SessionStatus.COMPLETED:
        reason = f"the session is not finished, but {session.status}"
        records.append(GateRecord("*", Passage.OPEN, exceptions=(reason,)))
    return records


def _record(session: Session, step_id: str, roots: Sequence[Path]) -> GateRecord:
    step, how = session.pinned.steps[step_id], passage(session, step_id)
    has_required = any(output.required for output in step.outputs.values())
    if how in (Passage.WITHOUT_REVIEWS, Passage.SKIPPED) or (
        how is Passage.UNREPORTED and not step.reviews and not has_required
    ):
        return GateRecord(step_id, how)
    if how is not Passage.JUDGED:
        words = review_words(session, step_id) if how is Passage.OPEN else ""
        reason = f"{how}, {words}" if words else _with_reason(session, step_id, how)
        return GateRecord(step_id, how, exceptions=(reason,))
    progress = session.step_progress[step_id]
    work = work_of(session, step, progress.outputs, progress.notes)
    fingerprints = take_fingerprints([path for path, _ in work.files], roots)
    verdicts = [entry.detail for entry in last_report(session, step_id) if isinstance(entry.detail, Verdict)]
    return _judged_record(work, fingerprints, verdicts)


def _judged_record(work: Work, fingerprints: Fingerprints, verdicts: list[Verdict]) -> GateRecord:
    judges: dict[str, None] = {}
    exceptions: list[str] = []
    proofs: dict[str, Mapping[str, str | None]] = {}
    for portion in portions(work):
        passed = [verdict for verdict in verdicts if _is_pass(verdict, portion)]
        matching = [verdict for verdict in passed if verdict.key == _key(work, fingerprints, portion, verdict)]
        judges.update(dict.fromkeys(map(_judge, matching)))
        proofs.update({_judge(verdict): _proof(verdict) for verdict in reversed(matching)})
        if not matching:
            exceptions += _differences(fingerprints, portion, passed)
    return GateRecord(
        work.step.id, Passage.JUDGED, tuple(judges), tuple(proofs.values()), tuple(dict.fromkeys(exceptions))
    )


def _key(work: Work, fingerprints: Fingerprints, portion: Portion, verdict: Verdict) -> str:
    """Return the key that a verdict of the same reviewer would have on the present files."""
    key, _ = verdict_keys(work, fingerprints, portion, str(verdict.runner))
    return key


def _is_pass(verdict: Verdict, portion: Portion) -> bool:
    is_pass = verdict.runner is not None and verdict.key is not None and verdict.passed and not verdict.changed
    is_of_portion = (verdict.run_each, verdict.file) == (portion.review.run_each, portion.target_file)
    return is_pass and is_of_portion and verdict.asked == [*portion.review.quality_criteria]


def _differences(fingerprints: Fingerprints, portion: Portion, passed: list[Verdict]) -> list[str]:
    """Return the reasons why no verdict holds for the present state of a portion."""
    name = printable(portion.target_file or portion.review.run_each)
    if not passed:
        return [f"{name}: no verdict says that it passed"]
    digests = passed[0].digests
    changed = [path for path, _ in portion.files if path in digests and digests[path] != fingerprints[path].digest]
    if changed:
        return [f"{printable(path)}: {_what_is(fingerprints[path].digest)}" for path in changed]
    return [f"{name}: its files, inputs, criteria or notes are not those that {_judge(passed[0])} judged"]


def _what_is(digest: str) -> str:
    return "has changed since it was judged" if digest.startswith("sha256:") else f"cannot be compared: {digest}"


def _judge(verdict: Verdict) -> str:
    return f"{verdict.runner} ({verdict.model})" if verdict.model else str(verdict.runner)


def _proof(verdict: Verdict) -> Mapping[str, str | None]:
    proof = verdict.proof
    return {
        "judge": _judge(verdict),
        "result": proof.result if proof else None,
        "grade": proof.grade if proof else None,
    }


def _with_reason(session: Session, step_id: str, how: Passage) -> str:
    entries = last_report(session, step_id)
    details = [entry.detail for entry in entries if isinstance(entry.detail, Override | SelfReview)]
    if not details:
        return str(how)
    asked_by = getattr(details[0], "asked_by", None)
    asker = f", asked by {one_line(asked_by)}" if asked_by else ""
    return f"{how}{asker}: {one_line(str(details[0].reason))}"
