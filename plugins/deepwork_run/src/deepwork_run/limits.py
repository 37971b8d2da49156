"""Until when agents have to wait, by the history of their session."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from deepwork.api import Limited, Session, history
from deepwork.sessions.standing import waits_of

FIRST_WAIT = timedelta(minutes=15)
LONGEST_WAIT = timedelta(hours=5)
# Limits of a week are the longest; a time beyond that was misread.
LATEST_RESET = timedelta(days=8)


def limits_of(session: Session) -> dict[str, datetime]:
    """Return until when agents have to wait, as the session knows it; what is over is left out."""
    limits: dict[str, datetime] = {}
    for entry in session.history:
        if isinstance(entry.detail, history.Waiting) and entry.detail.agent:
            with suppress(ValueError):
                limits[entry.detail.agent] = datetime.fromisoformat(entry.detail.until).astimezone(UTC)
    present = datetime.now(UTC)
    return {name: until for name, until in limits.items() if until > present}


def wait_to_show(session: Session, agent: str) -> history.Waiting | None:
    """Return the wait of an agent anew, unless it is the last of the session, which is the one that others show.

    Another agent may have worked or met its own limit since.
    """
    details = [entry.detail for entry in session.history]
    own = [detail for detail in details if isinstance(detail, history.Waiting) and detail.agent == agent][-1]
    is_shown = waits_of(session)[-1:] == [own]
    return None if is_shown else own.model_copy(update={"is_guess": False})


def waiting(session: Session, agent: str, limit: Limited) -> history.Waiting:
    """Return the entry of a limit; without a time each such wait is twice as long as the one before."""
    present = datetime.now(UTC)
    until = limit.until.astimezone(UTC) if limit.until else None
    is_guess = until is None or not present < until <= present + LATEST_RESET
    if until is None or is_guess:
        guesses = sum(wait.agent == agent and wait.is_guess for wait in waits_of(session))
        until = present + min(FIRST_WAIT * 2 ** min(guesses, 10), LONGEST_WAIT)
    text = until.isoformat(timespec="microseconds")
    return history.Waiting(until=text, cause=limit.cause.value, agent=agent, is_guess=is_guess)
