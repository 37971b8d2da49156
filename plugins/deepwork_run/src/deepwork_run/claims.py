"""What the agents of a session hold of shared work: renewed while the run goes on, told to the next one, given away."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import anyio

from deepwork.api import DeepWorkError
from deepwork.project.opened import OpenedProject
from deepwork_run.display import Display

LONGEST_PAUSE = 60.0

ResultT = TypeVar("ResultT")


class Claims:
    """The claims of the agents of one session in all plugins; problems are shown, and end nothing."""

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
                await self._told("renewed", keeper.name, keeper.renew(self._session_id))

    async def held(self) -> list[str]:
        """Return what the next agent is told of them."""
        lines: list[str] = []
        for keeper in self._keepers:
            lines += await self._told("known", keeper.name, keeper.held(self._session_id)) or ()
        return lines

    async def release(self, reason: str) -> None:
        """Release the claims, so that others can go on at once."""
        for keeper in self._keepers:
            await self._told("given away", keeper.name, keeper.release(self._session_id, reason))

    async def _told(self, word: str, name: str, act: Awaitable[ResultT]) -> ResultT | None:
        """Do something with the claims of a keeper, or tell why that is not possible."""
        try:
            return await act
        except DeepWorkError as error:
            self._display.log(f"Claims of {name} are not {word}: {error.message}")
            return None
