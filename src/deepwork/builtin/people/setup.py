"""What of a project's setup only its user can put right: reviewers that cannot work, and what waits for trust."""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import sha256

from anyio import to_thread

from deepwork.api import Project
from deepwork.errors import RunnerUnavailable
from deepwork.ports.call import LOCAL
from deepwork.ports.inbox import Answerer, InboxItem, InboxSource

# Looking reads the files of commands, and an inbox is read every second.
SECONDS = 10.0


class SetupInbox(InboxSource):
    """The reviewers and the untrusted settings of a project. These items go by themselves when their cause does."""

    name = "setup"

    def __init__(self, project: Project) -> None:
        self._project = project
        self._items: list[InboxItem] = []
        self._looked_at: float | None = None

    async def items(self) -> list[InboxItem]:
        """Look again after some seconds."""
        if self._looked_at is None or time.monotonic() - self._looked_at >= SECONDS:
            broken = await self._project.broken_reviewers()
            labels = await to_thread.run_sync(self._project.untrusted)
            weak = await to_thread.run_sync(self._project.weak_gates)
            self._items = [
                *map(_reviewer, broken, broken.values()),
                *map(_gate, weak, weak.values()),
                *([_trust(labels)] if labels else []),
            ]
            self._looked_at = time.monotonic()
        return self._items

    async def answer(self, item_id: str, action: str, text: str | None, by: Answerer) -> str:
        """Never called: the items have no actions."""
        raise NotImplementedError


def _reviewer(name: str, error: RunnerUnavailable) -> InboxItem:
    return InboxItem(
        id=f"reviewer.{name}",
        kind="reviewer",
        what=f"Reviews get no verdicts: {error.message}",
        detail="\n".join(filter(None, [error.message, error.hint, "`deepwork doctor` shows more."])),
        since="",
        state=error.message,
        reference={"kind": "reviewer", "id": name},
    )


def _gate(name: str, reason: str) -> InboxItem:
    return InboxItem(
        id=f"gate.{name}",
        kind="gate",
        what=f"The gate {name!r} cannot fail: only you can fix it",
        detail=f"Its pass says nothing: {reason}. `deepwork gate prove JOB STEP` shows what it was asked.",
        since="",
        state=sha256(reason.encode()).hexdigest()[:16],
        reference={"kind": "reviewer", "id": name},
        principal=LOCAL,
    )


def _trust(labels: Sequence[str]) -> InboxItem:
    listed = "\n".join(f"- {label}" for label in labels)
    return InboxItem(
        id="trust",
        kind="trust",
        what="Settings of this project have no effect until you run `deepwork trust`",
        detail=f"`deepwork trust` shows what they would do:\n{listed}",
        since="",
        state=sha256(listed.encode()).hexdigest()[:16],
        reference={"kind": "file", "id": ".deepwork/config.yml"},
        principal=LOCAL,
    )
