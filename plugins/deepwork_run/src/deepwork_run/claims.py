"""What the agents of a session hold of shared work: renewed while the run goes on, told to the next one, given away."""

from __future__ import annotations

import anyio

from deepwork.api import DeepWorkError
from deepwork.project.opened import OpenedProject
from deepwork_run.display import Display

LONGEST_PAUSE = 60.0


class Claims:
    """The claims of the agents of one session, whoever keeps them.

    Args:
        project: The project.
        session_id: The session.
        display: Where problems are told.
    """

    def __init__(self, project: OpenedProject, session_id: str, display: Display) -> None:
        self._keepers = project.claims
        self._session_id = session_id
        self._display = display

    async def keep(self) -> None:
        """Renew them until cancelled. An agent that waits for hours has not gone."""
        pause = min((keeper.seconds for keeper in self._keepers), default=LONGEST_PAUSE)
        while self._keepers:
            await anyio.sleep(min(pause, LONGEST_PAUSE))
            for keeper in self._keepers:
                try:
                    await keeper.renew(self._session_id)
                except DeepWorkError as error:
                    self._display.log(f"Claims of {keeper.name} are not renewed: {error.message}")

    async def held(self) -> list[str]:
        """Return what the next agent is told of them."""
        lines: list[str] = []
        for keeper in self._keepers:
            try:
                lines += await keeper.held(self._session_id)
            except DeepWorkError as error:
                self._display.log(f"Claims of {keeper.name} are not known: {error.message}")
        return lines

    async def release(self, reason: str) -> None:
        """Release the claims, so that others can go on at once."""
        for keeper in self._keepers:
            try:
                await keeper.release(self._session_id, reason)
            except DeepWorkError as error:
                self._display.log(f"Claims of {keeper.name} are not given away: {error.message}")
