"""The claims of the agents that work on one session, one after the other: kept between them, or given away."""

from __future__ import annotations

from collections.abc import Iterator

import deepwork_sql
from deepwork.api import PluginContext, ToolCall
from deepwork.ports.records import ClaimKeeper
from deepwork_orchestration import claims
from deepwork_orchestration.agents import SESSION, renew_leases
from deepwork_orchestration.models import Agent
from deepwork_orchestration.opening import open_database
from deepwork_orchestration.transaction import PlanTransaction


def claim_keeper(context: PluginContext) -> ClaimKeeper:
    """Make the record for a project."""

    async def held(session_id: str) -> list[str]:
        if not deepwork_sql.has_database(context):
            return []
        return await open_database(context).read(ToolCall(), lambda transaction: [*_held(transaction, session_id)])

    async def renew(session_id: str) -> None:
        def change(transaction: PlanTransaction) -> None:
            for agent in _holders(transaction, session_id):
                renew_leases(transaction, agent)

        if deepwork_sql.has_database(context):
            await open_database(context).write(ToolCall(), change)

    async def release(session_id: str, reason: str) -> None:
        def change(transaction: PlanTransaction) -> None:
            for agent in _holders(transaction, session_id):
                for task in claims.held_by(transaction, agent.id):
                    claims.release(transaction, task, reason)

        if deepwork_sql.has_database(context):
            await open_database(context).write(ToolCall(), change)

    seconds = open_database(context).lease / 3000
    return ClaimKeeper(name="orchestration", seconds=seconds, held=held, renew=renew, release=release)


def _holders(transaction: PlanTransaction, session_id: str) -> Iterator[Agent]:
    """Yield the agents that were registered for a session, and hold a task."""
    for agent_id in sorted(claims.holders(transaction)):
        agent = transaction.get(Agent, agent_id)
        if (agent.metadata or {}).get(SESSION) == session_id:
            yield agent


def _held(transaction: PlanTransaction, session_id: str) -> Iterator[str]:
    for agent in _holders(transaction, session_id):
        for task in claims.held_by(transaction, agent.id):
            yield f"task {task.id} ({task.name!r}) of plan {task.workflow_id}, as agent {agent.id}, fence {task.fence}"
