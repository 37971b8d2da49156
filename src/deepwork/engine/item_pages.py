"""The pages on which people answer what a step waits for, and clients that open them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from anyio import to_thread

from deepwork.gate.decision import Decision
from deepwork.models.sessions import Session
from deepwork.paths.served_pages import ServedPages
from deepwork.ports.call import ToolCall, is_loopback
from deepwork.text import one_line


def item_of(session: Session, step_id: str) -> str:
    """Return the id of the item of the inbox that a step is while it waits for a person."""
    return f"sessions:{session.session_id}.{step_id}"


@dataclass(frozen=True)
class ItemPages:
    """Finds the page of an item of the inbox.

    Attributes:
        served: The pages that are served now; None if none are looked for.
    """

    served: ServedPages | None

    async def address(self, call: ToolCall, session: Session, step_id: str) -> str | None:
        """Return the page on which a person answers, if one is served that they and the client can reach."""
        if self.served is None:
            return None
        addresses = await to_thread.run_sync(self.served.addresses, item_of(session, step_id), session.principal)
        reachable = (page for page in addresses if call.is_here or not is_loopback(urlsplit(page).hostname or ""))
        return next(reachable, None)

    async def placed(
        self, call: ToolCall, session: Session, step_id: str, decision: Decision, *, is_new: bool
    ) -> Decision:
        """Return a decision with the page where a person answers for the step.

        The client that has just brought it about opens the page; one that asks again is only told where it is.
        """
        waits_for = decision.waits_for
        if waits_for is None or waits_for.where != item_of(session, step_id):
            return decision
        address = await self.address(call, session, step_id)
        if address is None:
            return decision
        if is_new and call.show:
            await call.show(f"Step {step_id!r} of {one_line(session.workflow)} waits for your review.", address)
        return replace(decision, waits_for=waits_for.model_copy(update={"where": address}))
