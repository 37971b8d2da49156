"""What a strict quality gate refuses: nothing passes it that was not judged, except by a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from deepwork.engine.item_pages import ItemPages
from deepwork.errors import RunnerUnavailable, StrictRefusal
from deepwork.gate.gate import QualityGate
from deepwork.models.jobs import Step
from deepwork.models.sessions import Session
from deepwork.models.standing import Passage
from deepwork.ports.call import ToolCall
from deepwork.ports.inbox import Answerer
from deepwork.sessions.standing import CLIENT, passage, permitted_override
from deepwork.sessions.transitions import Completion
from deepwork.text import one_line

_ONLY_NOTED = "Over HTTP your answer is only noted, for the reader of `deepwork inbox`."
GATE_OFF = "it is switched off: by --no-quality-gate, quality_gate.enabled or enable_quality_gate"


class OverrideWaits(StrictRefusal):
    """An override that only a person can allow, when none could be asked.

    Attributes:
        answer: Who has said yes to it that is not seen to be a person; it is kept with the request.
        address: The page on which the person answers, if one is served.
        question: What they are asked.
    """

    answer: Mapping[str, Any] = MappingProxyType({})
    address: str | None = None
    question: str = ""


class StrictRules:
    """The rules of `quality_gate.strict`. A session that was started under them keeps them wherever it goes on."""

    def __init__(self, gate: QualityGate | None, pages: ItemPages, *, is_strict: bool) -> None:
        self._gate = gate
        self._pages = pages
        self._is_strict = is_strict

    async def check_start(self) -> None:
        """Refuse to start a workflow whose reviews could not be held.

        Raises:
            StrictRefusal: No verdicts can be had; the hint says how to change that.
        """
        if self._is_strict:
            await self._check_reviewers("no workflow can be started")

    async def problem(self) -> StrictRefusal | None:
        """Return the error that would refuse a workflow now; None if it can be started."""
        try:
            await self.check_start()
        except StrictRefusal as error:
            return error
        return None

    async def obstacle(self) -> RunnerUnavailable | None:
        """Return why no verdicts can be had, and what the user can do about it; None if nothing is wrong."""
        if self._gate is None:
            return RunnerUnavailable(GATE_OFF, hint="Serve without that, and with an external reviewer.")
        return await self._gate.unavailable()

    async def admitted(self, call: ToolCall, session: Session, completion: Completion) -> Completion:
        """Check a report, and ask a person about an override that an agent asks for.

        Raises:
            OverrideWaits: It asks for an override, and no person can be asked.
            StrictRefusal: The report is not accepted; nothing was changed.
        """
        step = session.pinned.steps[completion.step_id]
        self._check_group(session, completion.step_id)
        if not step.reviews or permitted_override(session, step.id) is not None:
            return completion
        if completion.override:
            return await self._permitted(call, session, completion)
        await self._check_reviewers(f"step {step.id!r} cannot be judged")
        return completion

    async def _check_reviewers(self, consequence: str) -> None:
        if error := await self.obstacle():
            raise StrictRefusal(
                f"The quality gate is strict, and {error.message}; {consequence}",
                hint=" ".join(filter(None, ["Ask the user to fix this.", error.hint])),
            )

    def _check_group(self, session: Session, step_id: str) -> None:
        """Refuse the report that would end a group while one of its gates is still open."""
        entry = next(entry for entry in session.pinned.workflow.entries if step_id in entry)
        if step_id != entry[0]:
            return
        passing = (Passage.JUDGED, Passage.PERMITTED, Passage.SKIPPED, Passage.WITHOUT_REVIEWS)
        members = [session.pinned.steps[member] for member in entry[1:]]
        still_open = [
            member.id for member in members if _has_gate(member) and passage(session, member.id) not in passing
        ]
        if still_open:
            raise StrictRefusal(
                f"The quality gate is strict: {step_id!r} ends its group, of which {', '.join(still_open)} must be "
                "reported and pass first; nothing was changed",
                hint=f"Report each with finished_step(session_id={session.session_id!r}, step_id=<its id>, "
                "outputs=<its own>).",
            )

    async def _permitted(self, call: ToolCall, session: Session, completion: Completion) -> Completion:
        step_id, by = completion.step_id, _answerer(call)
        question = _question(session, completion)
        waits = _override_waits(session, step_id, await self._pages.address(call, session, step_id), question)
        if not call.can_elicit or (call.show and waits.address):
            raise waits
        if not await call.elicit(question if by.is_person else f"{question} {_ONLY_NOTED}"):
            raise StrictRefusal(
                f"The quality gate is strict, and the person who was asked has not let step {step_id!r} pass without a "
                "review; nothing was changed",
                hint="Call finished_step without quality_review_override_reason to have the work reviewed.",
            )
        if not by.is_person:
            waits.message += "; the client's yes is noted, but over HTTP it shows no person"
            waits.answer = {"by": CLIENT, "client": _client(call), "principal": call.principal}
            raise waits
        return replace(completion, permission=by.recorded())


def _has_gate(step: Step) -> bool:
    return bool(step.reviews) or any(output.required for output in step.outputs.values())


def _override_waits(session: Session, step_id: str, address: str | None, question: str) -> OverrideWaits:
    in_terminal = f"deepwork sessions override {session.session_id} {step_id} --reason '...'"
    how = f"open {address} and answer there" if address else f"run `{in_terminal}` in a terminal"
    error = OverrideWaits(
        f"The quality gate is strict: only a person can let step {step_id!r} pass without a review; it waits in "
        "`deepwork inbox` for their answer",
        hint=f"Ask the user to {how}, then call finished_step again; or call it without "
        "quality_review_override_reason to have the work reviewed.",
    )
    error.address, error.question = address, question
    return error


def _question(session: Session, completion: Completion) -> str:
    return (
        f"An agent wants to complete step {completion.step_id!r} of {one_line(session.workflow)} without a review. "
        f"Its reason: {one_line(completion.override or '', 500)}. Do you allow that?"
    )


def _answerer(call: ToolCall) -> Answerer:
    """Return who answers a question that the client shows."""
    return Answerer(asked_by=_client(call) if call.asks_person else None)


def _client(call: ToolCall) -> str:
    return one_line(f"{call.client.name} {call.client.version}") if call.client else "an unnamed client"
