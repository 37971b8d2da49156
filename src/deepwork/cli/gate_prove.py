"""`deepwork gate prove`: whether the gates of a step can refuse work, by hand and in CI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from deepwork.commands.terminal import Styled, say, say_json, say_text
from deepwork.errors import OutputError
from deepwork.gate.gate import Outcome, QualityGate
from deepwork.gate.interval import exact_interval
from deepwork.gate.progress import ReviewProgress
from deepwork.gate.proof import Budget, Proof, ProofResult, Prover, Subject, Tried, budget_of
from deepwork.gate.snapshot import Snapshot
from deepwork.gate.work import Work
from deepwork.models.outputs import Outputs
from deepwork.models.reviews import Passed
from deepwork.models.sessions import SessionStatus
from deepwork.paths.workspace import Workspace
from deepwork.ports.state_store import StateStore
from deepwork.project.project import Project
from deepwork.project.session_access import with_store
from deepwork.sessions.manager import load_session

PROVED, CANNOT_FAIL, NOT_PROVABLE, REFUSED = 0, 1, 4, 5
# The worst counts for the whole step.
_CODES = {
    ProofResult.PROVED: PROVED,
    ProofResult.NOT_PROVABLE: NOT_PROVABLE,
    ProofResult.CANNOT_FAIL: CANNOT_FAIL,
}
_WORST = (ProofResult.CANNOT_FAIL, ProofResult.NOT_PROVABLE, ProofResult.PROVED)
_WORDS = {
    ProofResult.PROVED: ("proved", "green"),
    ProofResult.CANNOT_FAIL: ("cannot fail", "red"),
    ProofResult.NOT_PROVABLE: ("not provable here", "yellow"),
}
_SECONDS_PER_MUTANT = 60.0
_SESSIONS = 200


@dataclass(frozen=True)
class ProvedGate:
    """What came of one gate."""

    name: str
    run_each: str
    proof: Proof
    mutants: tuple[Tried, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return it as JSON."""
        killed = sum(one.verdict == "red" for one in self.mutants)
        of = sum(one.verdict != "none" for one in self.mutants)
        interval = [round(bound, 4) for bound in exact_interval(killed, of)]
        return {
            "gate": self.name,
            "run_each": self.run_each,
            "result": str(self.proof.result),
            "grade": str(self.proof.grade) if self.proof.grade else None,
            "reason": self.proof.reason,
            "counterfactuals": [one.facts() for one in (*self.proof.tried, *self.mutants)],
            "score": {"killed": killed, "of": of, "interval": interval} if self.mutants else None,
        }


def newest_work(project: Project, job_name: str, step_id: str) -> tuple[str, Outputs, dict[str, Outputs]]:
    """Return what the newest completed session of a job has reported for a step.

    The session's id comes before these outputs, and the outputs of all its steps, among them its inputs, after them.

    Raises:
        OutputError: There is none.
    """

    async def find(store: StateStore) -> tuple[str, Outputs, dict[str, Outputs]] | None:
        for summary in await store.find(status=SessionStatus.COMPLETED, limit=_SESSIONS):
            session = await load_session(store, summary.session_id) if summary.job_name == job_name else None
            if session and (outputs := session.outputs_by_step.get(step_id)):
                return session.session_id, outputs, session.outputs_by_step
        return None

    if found := with_store(project, find):
        return found
    raise OutputError(
        f"no completed session of job {job_name!r} has outputs of step {step_id!r}; name files with --file"
    )


async def prove_work(
    gate: QualityGate, prover: Prover, work: Work, workspace: Workspace, mutants: int
) -> tuple[list[ProvedGate], list[Outcome]]:
    """Have the gates of a step judge the work, and then the work broken; return what they refuse of the honest work."""
    async with Snapshot() as copied:
        for path, _ in work.files if work.gives_verdicts else ():
            copied.add(path, workspace.output_roots)
        judgement = await gate.judge(work, copied)
        refused = [outcome for outcome in judgement.outcomes if not isinstance(outcome.verdict, Passed)]
        proved: dict[tuple[str, str], ProvedGate] = {}
        for outcome in judgement.outcomes if not refused else ():
            evaluation = outcome.evaluation
            key = (evaluation.reviewer.name, evaluation.task.run_each)
            if key in proved:
                continue
            if not evaluation.reviewer.repeatable:
                reason = (
                    "it is not repeatable: quality_gate.commands.NAME.repeatable says whether it may be asked again"
                )
                proved[key] = ProvedGate(*key, Proof(ProofResult.NOT_PROVABLE, reason=reason))
                continue
            subject = await gate.trials.subject(work, copied, evaluation, outcome.seconds, ReviewProgress())
            subject = replace(subject, key=None)  # it is looked at now, whatever was proved before
            proof = await prover.prove(subject, budget_of([outcome.seconds]))
            proved[key] = ProvedGate(*key, proof, await _scored(prover, subject, mutants))
        return [*proved.values()], refused


async def _scored(prover: Prover, subject: Subject, mutants: int) -> tuple[Tried, ...]:
    if not mutants:
        return ()
    budget = Budget(_SECONDS_PER_MUTANT * mutants)
    return tuple([one async for one in prover.mutants_of(subject, mutants, budget)])


def told(gates: Sequence[ProvedGate], refused: Sequence[Outcome], *, as_json: bool) -> int:
    """Print what came of it, and return the exit code."""
    if refused:
        names = ", ".join(dict.fromkeys(outcome.evaluation.reviewer.name for outcome in refused))
        return nothing_told(f"{names} did not pass the work as it is", as_json=as_json)
    if not gates:
        return nothing_told("no review of this step gives a verdict", as_json=as_json)
    facts = [one.facts() for one in gates]
    worst = min(gates, key=lambda one: _WORST.index(one.proof.result))
    if as_json:
        say_json({**worst.facts(), "gates": facts})
        return _CODES[worst.proof.result]
    for one, shown in zip(gates, facts, strict=True):
        _say(one, shown)
    return _CODES[worst.proof.result]


def nothing_told(reason: str, *, as_json: bool) -> int:
    """Print why there is no work that the gates have passed, and return the exit code."""
    if as_json:
        say_json({"result": None, "grade": None, "reason": reason, "counterfactuals": [], "score": None, "gates": []})
    else:
        say_text(f"Nothing can be proved: {reason}.")
    return REFUSED


def _say(one: ProvedGate, facts: dict[str, Any]) -> None:
    word, colour = _WORDS[one.proof.result]
    grade = f" by {one.proof.grade}" if one.proof.grade else ""
    say(Styled(f"{one.name}", bold=True), f" ({one.run_each}): ", Styled(f"{word}{grade}", colour))
    if one.proof.reason:
        say(f"  {one.proof.reason}")
    for tried in facts["counterfactuals"]:
        say(f"  {tried['verdict']:5}  {tried['seconds']:7.2f} s  {tried['kind']}  {tried['reason']}".rstrip())
    if score := facts["score"]:
        low, high = score["interval"]
        say(f"  {score['killed']} of {score['of']} mutants refused ({low:.0%} to {high:.0%} at 95 %)")
