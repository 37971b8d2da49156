"""`deepwork gate prove`: whether the gates of a step can refuse work, by hand and in CI."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import anyio
import click

from deepwork.api import Project, Session, SessionStatus, project_at
from deepwork.builtin.proofs.interval import exact_interval
from deepwork.builtin.proofs.prover import Budget, GateProver, Proof, ProofResult, Tried, budget_of, prover_of
from deepwork.commands.options import json_option, path_option
from deepwork.commands.terminal import Styled, say, say_json, say_notices, say_text
from deepwork.errors import OutputError, StateError, UnknownJob
from deepwork.ports.proofs import Trial
from deepwork.programs.stdout import stdout_on_stderr

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


@click.group()
def gate() -> None:
    """The core's group, to which this command is added."""


@gate.command()
@click.argument("job_name", metavar="JOB")
@click.argument("step_id", metavar="STEP")
@click.option("--file", "files", multiple=True, metavar="[OUTPUT=]PATH", help="A file of the work; can be repeated.")
@click.option(
    "--mutants", type=click.IntRange(0, 1000), default=0, help="Count how many of so many mutants are refused."
)
@click.option("--runner", metavar="NAME", help="Review runner (default: quality_gate.runner, else self).")
@path_option
@json_option
def prove(
    job_name: str, step_id: str, files: tuple[str, ...], mutants: int, runner: str | None, root: str, as_json: bool
) -> int:
    """Try whether the gates of a step refuse work that is broken; the project stays as it is.

    Without files, the outputs and inputs of the newest completed session. Exits with 0 if every gate is proved, 1 if
    one cannot fail, 4 if one is not provable here, 5 if the work itself is refused or there is none.
    """
    project = project_at(root)
    with stdout_on_stderr():
        try:
            step_gate = project.step_gate(job_name, step_id)
            outputs = step_gate.named(files)
        except (UnknownJob, StateError, OutputError) as error:
            raise click.UsageError(str(error)) from None
        try:
            session = None if files else anyio.run(_newest, project, step_gate.job.name, step_id)
            outputs = session.outputs_by_step[step_id] if session else step_gate.on_disk(outputs)
            judged = step_gate.judged(outputs, "prove", runner=runner, session=session)
            gates, refused = anyio.run(_proved, prover_of(project.root), judged, mutants)
        except OutputError as error:
            return _nothing_told(error.message, as_json=as_json)
    say_notices(step_gate.notices())
    return _told(gates, refused, as_json=as_json)


async def _newest(project: Project, job_name: str, step_id: str) -> Session:
    """Return the newest completed session of a job that has reported a step.

    Raises:
        OutputError: There is none.
    """
    try:
        store = await project.sessions().store()
        for summary in await store.find(status=SessionStatus.COMPLETED, limit=_SESSIONS):
            session = await store.load(summary.session_id) if summary.job_name == job_name else None
            if session and session.outputs_by_step.get(step_id):
                return session
    finally:
        await project.close()
    raise OutputError(
        f"no completed session of job {job_name!r} has outputs of step {step_id!r}; name files with --file"
    )


async def _proved(
    prover: GateProver, judged: AbstractAsyncContextManager[tuple[object, Sequence[Trial]]], mutants: int
) -> tuple[list[ProvedGate], list[str]]:
    """Have the gates judge the work broken; return the names of the gates that refuse the honest work."""
    async with judged as (_, trials):
        refused = [trial.reviewer for trial in trials if not trial.passed]
        proved: dict[tuple[str, str], ProvedGate] = {}
        for trial in trials if not refused else ():
            key = (trial.reviewer, trial.run_each)
            if key in proved:
                continue
            if not trial.repeatable:
                reason = (
                    "it is not repeatable: quality_gate.commands.NAME.repeatable says whether it may be asked again"
                )
                proved[key] = ProvedGate(*key, Proof(ProofResult.NOT_PROVABLE, reason=reason))
                continue
            proof = await prover.proof_of(trial, budget_of([trial.seconds]), anew=True)
            budget = Budget(_SECONDS_PER_MUTANT * mutants)
            tried = [one async for one in prover.mutants_of(trial, mutants, budget)] if mutants else ()
            proved[key] = ProvedGate(*key, proof, tuple(tried))
        return [*proved.values()], refused


def _told(gates: Sequence[ProvedGate], refused: Sequence[str], *, as_json: bool) -> int:
    """Print what came of it, and return the exit code."""
    if refused:
        return _nothing_told(f"{', '.join(dict.fromkeys(refused))} did not pass the work as it is", as_json=as_json)
    if not gates:
        return _nothing_told("no review of this step gives a verdict", as_json=as_json)
    facts = [one.facts() for one in gates]
    worst = min(gates, key=lambda one: _WORST.index(one.proof.result))
    if as_json:
        say_json({**worst.facts(), "gates": facts})
        return _CODES[worst.proof.result]
    for one, shown in zip(gates, facts, strict=True):
        _say(one, shown)
    return _CODES[worst.proof.result]


def _nothing_told(reason: str, *, as_json: bool) -> int:
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
