"""What a person does to a plan while agents work on it: pause it, and let it go on."""

from __future__ import annotations

from deepwork.api import Answerer, PluginContext, ToolCall
from deepwork_orchestration import pauses
from deepwork_orchestration.database import check_storable
from deepwork_orchestration.models import Workflow
from deepwork_orchestration.opening import open_database
from deepwork_orchestration.states import PERSON


async def pause(context: PluginContext, by: Answerer, workflow_id: str, reason: str) -> Workflow:
    """Hand out no task of a plan until it is unpaused.

    Raises:
        PersonNeeded: No person does it.
        OrchestrationError: The plan is unknown, over, or paused already.
    """
    call = call_of(by, "pause a plan", reason)
    return await open_database(context).write(
        call, lambda transaction: pauses.pause(transaction, workflow_id, reason.strip())
    )


async def unpause(context: PluginContext, by: Answerer, workflow_id: str, text: str | None) -> Workflow:
    """Hand out the tasks of a paused plan again, and send a text to agents that hold one.

    Raises:
        PersonNeeded: No person does it.
        OrchestrationError: The plan is unknown, or not paused.
    """
    call = call_of(by, "let a paused plan go on", text)
    said = text.strip() if text else None
    return await open_database(context).write(call, lambda transaction: pauses.unpause(transaction, workflow_id, said))


def call_of(by: Answerer, act: str, text: str | None) -> ToolCall:
    """Return the call of a person, whose text can be stored.

    Raises:
        PersonNeeded: No person does it.
        OrchestrationError: INVALID_INPUT.
    """
    check_storable({"text": text})
    by.check_person(act)
    return ToolCall(principal=f"{PERSON}{by.principal or ToolCall.principal}")
