"""Where a session stands, as it says itself at the head of its document, and the reader of that head.

Hooks and listings run often and show little, so this module imports no models. What it reads may be forged: it is
shown, bounded and in lines, and decides nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from deepwork.text import one_line

# A reader needs so many bytes of a document; where its goal is longer, the whole of it.
MAX_HEAD = 8 * 1024
MAX_WAITS = 8
MAX_TEXT = 200
MAX_NAME = 100
MAX_REASON = 500

# The head ends before this field. No text in JSON has a quote that is not escaped, so no text can end it earlier.
_HEAD_END = re.compile(rb',\s*"instance_id"\s*:')

# Who has written a note, or overridden a review, as far as this machine can tell.
PERSON = "person"

_POSITION = re.compile(r"step (\d{1,9}) of (\d{1,9})")


class Passage(StrEnum):
    """Why a step is completed."""

    JUDGED = "passed"
    SELF_JUDGED = "self-judged"
    OVERRIDDEN = "overridden by the agent"
    PERMITTED = "overridden by a person, as far as this machine can tell"
    SKIPPED = "skipped: there was nothing to judge"
    UNREPORTED = "never reported"
    GATE_OFF = "without a review: the quality gate was off"
    NOT_JUDGED = "not judged"
    WITHOUT_REVIEWS = "without reviews"
    OPEN = "open"


class WaitKind(StrEnum):
    """Why only a person can say how a step goes on."""

    FAILED_GATE = "failed-gate"
    NO_VERDICT = "no-verdict"
    RUNNER = "runner"
    OVERRIDE = "override"
    PERSON = "person"


@dataclass(frozen=True)
class GateRecord:
    """What was found of the gate of one step.

    Attributes:
        judges: The reviewers, with their models as far as they are known.
        proofs: On what the verdict of each judge rests: `judge`, `result` and `grade`, which are None if the judge was
            not tried on broken work.
        exceptions: Why it cannot be said that these files were judged; none if it can.
    """

    step_id: str
    standing: Passage
    judges: tuple[str, ...] = ()
    proofs: tuple[Mapping[str, str | None], ...] = ()
    exceptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class WaitingStep:
    """A step that waits, since when, what was said of it last, and the first files of its last report."""

    step_id: str
    kind: WaitKind
    since: str
    text: str
    files: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """A text that differs once something else waits."""
        return f"{self.kind} {self.since}"


@dataclass(frozen=True)
class Wait:
    """A step that waits for a person: why, since when, and the beginning of the last text about it."""

    step_id: str
    kind: str
    since: str
    text: str


@dataclass(frozen=True)
class Pause:
    """The time until which a session rests, because its agent or runner has to wait, and why."""

    until: str
    cause: str


@dataclass(frozen=True)
class Standing:
    """Where a session stands.

    Attributes:
        revision: The revision of the session that it describes. It is ignored for any other.
        position: How far the session is, as `step 2 of 3`; empty if unknown.
        state: A text that differs once the session has moved on.
        last_call_at: When an agent has last changed it; a person who lets a step pass is not an agent.
        gone_at: When the client of an agent has ended, if no agent has changed the session since; empty otherwise.
        waits: The open steps that wait for a person. The session waits if there is one.
        pause: What the last that happened to the session has to be waited for; it may be over.
        paused: Why a person has paused the session; empty if it is not paused.
        review: How the last review of the current step has ended: `passed`, `needs work` or `not judged`, with the end
            of a limit; empty if there was none, or one runs.
    """

    revision: int
    position: str
    state: str
    last_call_at: str
    waits: tuple[Wait, ...] = ()
    pause: Pause | None = None
    paused: str = ""
    review: str = ""
    gone_at: str = ""

    @property
    def place(self) -> tuple[int, int] | None:
        """The number of the current entry of the workflow, and of all entries; None if unknown."""
        match = _POSITION.fullmatch(self.position)
        return (int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True)
class Head:
    """What a listing shows of a session, in short lines; without a standing that counts, `standing` is None."""

    session_id: str
    job_name: str
    workflow_name: str
    step_id: str
    goal: str
    status: str
    started_at: str
    updated_at: str
    principal: str
    standing: Standing | None

    @property
    def position(self) -> str:
        """How far the session is; empty if unknown."""
        return self.standing.position if self.standing else ""

    @property
    def state(self) -> str:
        """What differs once the session has moved on."""
        return self.standing.state if self.standing else ""

    @property
    def waits_for_person(self) -> bool:
        """Whether only a person can say how one of its open steps goes on, or has paused it."""
        return bool(self.standing and (self.standing.waits or self.standing.paused))

    @property
    def workflow(self) -> str:
        """`job/workflow`, as stacks name it."""
        return one_line(f"{self.job_name}/{self.workflow_name}")


def paused_text(reason: str, what: str = "session") -> str:
    """Return what agents are told of a pause."""
    return f"A person has paused this {what}: {one_line(reason, MAX_REASON)}; finish no step, wait."


def resume_call(session_id: str) -> str:
    """Return the call that tells where a session is."""
    return f'finished_step(session_id="{session_id}", step_id="?", outputs={{}})'


def read_head(content: bytes) -> Head | None:
    """Return what the first `MAX_HEAD` bytes of a stored session say; None if it is not as this release writes it."""
    end = _HEAD_END.search(content[:MAX_HEAD])
    if end is None:
        return None
    try:
        return _head(json.loads(content[: end.start()] + b"}"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _head(data: Mapping[str, Any]) -> Head:
    started_at = _line(data["started_at"])
    return Head(
        session_id=_line(data["session_id"]),
        job_name=_line(data["job_name"]),
        workflow_name=_line(data["workflow_name"]),
        step_id=_line(data["current_step_id"]),
        goal=_line(data["goal"]),
        status=_line(data["status"]),
        started_at=started_at,
        updated_at=_line(data.get("updated_at") or data.get("completed_at") or started_at),
        principal=_line(data.get("principal", "local")),
        standing=_standing(data.get("standing"), data.get("revision", 0)),
    )


def _standing(data: Any, revision: object) -> Standing | None:
    """Return a standing of this revision; None if it is of another, or invalid."""
    try:
        if data["revision"] != revision:
            return None
        return Standing(
            revision=int(data["revision"]),
            position=_line(data["position"], MAX_NAME),
            state=_line(data["state"]),
            last_call_at=_line(data["last_call_at"], MAX_NAME),
            waits=tuple(_wait(wait) for wait in data["waits"][:MAX_WAITS]),
            pause=_pause(data.get("pause")),
            paused=_line(data.get("paused", "")),
            review=_line(data.get("review", ""), MAX_NAME),
            gone_at=_line(data.get("gone_at", ""), MAX_NAME),
        )
    except (TypeError, KeyError, ValueError):
        return None


def _wait(data: Mapping[str, Any]) -> Wait:
    step_id, kind, since = (_line(data[name], MAX_NAME) for name in ("step_id", "kind", "since"))
    return Wait(step_id, kind, since, _line(data["text"]))


def _pause(data: Any) -> Pause | None:
    return Pause(_line(data["until"], MAX_NAME), _line(data["cause"], MAX_NAME)) if data else None


def _line(text: object, limit: int = MAX_TEXT) -> str:
    """Return a text as a short line.

    Raises:
        TypeError: It is not a text.
    """
    if not isinstance(text, str):
        raise TypeError(text)
    return one_line(text, limit)
