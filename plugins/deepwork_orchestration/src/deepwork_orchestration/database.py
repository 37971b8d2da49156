"""The database as the tools of one server use it: functions of plans, run in its transactions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import deepwork_sql
from deepwork.api import Git, PluginContext, ToolCall
from deepwork.ports.agent import SESSION_VARIABLE
from deepwork_orchestration.agents import renew_leases_of
from deepwork_orchestration.bindings import Bindings
from deepwork_orchestration.errors import OrchestrationError, invalid_input
from deepwork_orchestration.transaction import PlanTransaction
from deepwork_sql import Answer, RequestConflict, Transaction, UnstorableText, check_json, leases

ResultT = TypeVar("ResultT")

# The leases of claims begin so.
CLAIMED = "orchestration/task/"
# One writer at a time. SQLite has no more anyway; on PostgreSQL it spares every rule a proof that it also holds when
# two transactions change different rows of one plan at once.
LOCK = "orchestration"


@dataclass(frozen=True)
class Request:
    """What makes a call repeatable: the same id with the same arguments gets the recorded reply."""

    tool: str
    request_id: str
    arguments: Mapping[str, Any]


class _Ended(NamedTuple, Generic[ResultT]):
    """A function that was run to its end, in a transaction in which no claim was overdue."""

    transaction: PlanTransaction
    result: ResultT


@dataclass(frozen=True)
class PlanDatabase:
    """The plans of one project. Made by `open_database`."""

    context: PluginContext
    lease: int  # in milliseconds
    # Ends the claims whose lease has run out.
    end_overdue: Callable[[PlanTransaction], None]
    bindings: Bindings = field(default_factory=Bindings)

    async def write(
        self, call: ToolCall, change: Callable[[PlanTransaction], ResultT], request: Request | None = None
    ) -> ResultT:
        """Run a function in a transaction, and carry out its effects on this connection's bindings after it.

        Raises:
            OrchestrationError: The function refuses; nothing was changed.
        """
        ended = await self._run(call, lambda transaction: _once(transaction, change, request), is_reading=False)
        bindings = self.bindings.of(call)
        for task_id in ended.transaction.ended_task_ids:
            bindings.end(task_id)
        return ended.result

    async def read(self, call: ToolCall, query: Callable[[PlanTransaction], ResultT]) -> ResultT:
        """Run a function that only reads, and renew leases of the caller after it.

        Raises:
            OrchestrationError: The function refuses.
        """
        ended = await self._run(call, query, is_reading=True)
        heard = ended.transaction.heard_agent_ids
        if heard:
            await self.write(call, lambda transaction: renew_leases_of(transaction, heard))
        return ended.result

    async def recorded(self, call: ToolCall, request: Request | None) -> Answer | None:
        """Return the recorded reply of a request; None if it has not been answered yet.

        Raises:
            OrchestrationError: REQUEST_CONFLICT.
        """
        return await self.read(call, lambda transaction: _recorded(transaction, request)) if request else None

    async def _run(
        self, call: ToolCall, work: Callable[[PlanTransaction], ResultT], *, is_reading: bool
    ) -> _Ended[ResultT]:
        """Run a function in a transaction that sees no claim whose lease has run out.

        Such claims are ended in a transaction of their own: they have ended even if the function refuses.
        """
        database = await deepwork_sql.database(self.context)

        def attempt(stored: Transaction) -> _Ended[ResultT] | None:
            if leases.expired(stored, CLAIMED, 1):
                return None
            transaction = self._transaction(call, stored)
            return _Ended(transaction, work(transaction))

        def reap(stored: Transaction) -> None:
            self.end_overdue(self._transaction(call, stored))

        while True:
            ended = await (database.read(attempt) if is_reading else database.write(attempt, lock=LOCK))
            if ended is not None:
                return ended
            await database.write(reap, lock=LOCK)

    def _transaction(self, call: ToolCall, stored: Transaction) -> PlanTransaction:
        return PlanTransaction(
            stored,
            principal=call.principal,
            bindings=self.bindings.of(call),
            lease=self.lease,
            project_root=str(self.context.project_root),
            session_id=self.context.environment.get(SESSION_VARIABLE),
        )

    # The repository of the project.

    def has_repository(self, path: str | None) -> bool:
        """True if the repository at a path, perhaps of another machine, is this server's project."""
        return path is not None and os.path.realpath(path) == str(self.context.project_root)

    async def git(self) -> Git | None:
        """Return git for the project; None if it is in no repository."""
        return await self.context.git(Git)


def check_storable(arguments: Mapping[str, Any]) -> None:
    """Refuse texts that no database can hold.

    Raises:
        OrchestrationError: INVALID_INPUT.
    """
    for name, value in arguments.items():
        try:
            check_json(name, value)
        except UnstorableText as error:
            raise invalid_input(name, error.message) from None


def _once(
    transaction: PlanTransaction, change: Callable[[PlanTransaction], ResultT], request: Request | None
) -> ResultT:
    if request is None:
        return change(transaction)
    with _own_conflicts():
        result: ResultT = transaction.stored.once(**_key(transaction, request), work=lambda: change(transaction))
    return result


def _recorded(transaction: PlanTransaction, request: Request) -> Answer | None:
    with _own_conflicts():
        return transaction.stored.recorded(**_key(transaction, request))


def _key(transaction: PlanTransaction, request: Request) -> dict[str, Any]:
    asked = {"tool": request.tool, "request_id": request.request_id, "arguments": request.arguments}
    return {"principal": transaction.principal, **asked}


@contextmanager
def _own_conflicts() -> Iterator[None]:
    try:
        yield
    except RequestConflict as error:
        text = "Use a new request_id for a new call."
        raise OrchestrationError("REQUEST_CONFLICT", error.message, text) from None
