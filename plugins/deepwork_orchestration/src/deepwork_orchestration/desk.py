"""Runs the functions of the tools in transactions of the shared database."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from deepwork.api import Git, PluginContext, ToolCall
from deepwork_orchestration import claims
from deepwork_orchestration.act import Act
from deepwork_orchestration.bindings import Bindings
from deepwork_orchestration.errors import OrchestrationError, invalid_input
from deepwork_orchestration.settings import OrchestrationSettings

if TYPE_CHECKING:
    from deepwork_sql import Transaction

ResultT = TypeVar("ResultT")

# One writer at a time. SQLite has no more anyway; on PostgreSQL it spares every rule a proof that it also holds when
# two transactions change different rows of one plan at once.
LOCK = "orchestration"


class _Overdue(Exception):
    """A lease has run out, and a call that only reads cannot end its claim."""


class _Unrecorded(Exception):
    """A request has not been answered yet."""


@dataclass(frozen=True)
class Request:
    """What makes a call repeatable: the same id with the same arguments gets the recorded reply."""

    tool: str
    request_id: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Desk:
    """The tools of one server. Made by `open_desk`.

    Attributes:
        lease: How long a lease lasts, in milliseconds.
    """

    context: PluginContext
    lease: int
    bindings: Bindings = field(default_factory=Bindings)

    async def write(self, call: ToolCall, work: Callable[[Act], ResultT], request: Request | None = None) -> ResultT:
        """Run a function in a transaction, and carry out its effects on this connection's bindings after it.

        Raises:
            OrchestrationError: The function refuses; nothing was changed.
        """
        act, result = await self._run(call, lambda act: _once(act, work, request), is_reading=False)
        bindings = self.bindings.of(call)
        for task_id in act.ended_task_ids:
            bindings.end(task_id)
        return result

    async def read(self, call: ToolCall, query: Callable[[Act], ResultT]) -> ResultT:
        """Run a function that only reads, and renew leases of the caller after it.

        Raises:
            OrchestrationError: The function refuses.
        """
        act, result = await self._run(call, query, is_reading=True)
        if act.beating_agent_ids:
            await self.write(call, lambda later: _renew(later, act.beating_agent_ids))
        return result

    async def _run(self, call: ToolCall, work: Callable[[Act], ResultT], *, is_reading: bool) -> tuple[Act, ResultT]:
        """Run a function in a transaction that sees no claim whose lease has run out.

        Such claims are ended in a transaction of their own: they have ended even if the function refuses.
        """
        import deepwork_sql

        database = await deepwork_sql.database(self.context)

        def attempt(transaction: Transaction) -> tuple[Act, ResultT]:
            act = self._act(call, transaction)
            if claims.overdue(act):
                raise _Overdue
            return act, work(act)

        def reap(transaction: Transaction) -> None:
            claims.reap(self._act(call, transaction))

        while True:
            try:
                return await (database.read(attempt) if is_reading else database.write(attempt, lock=LOCK))
            except _Overdue:
                await database.write(reap, lock=LOCK)

    async def recorded(self, call: ToolCall, request: Request | None) -> Any:
        """Give the recorded reply of a request; None if there is none."""

        def unrecorded(_: Act) -> None:
            raise _Unrecorded

        try:
            return await self.write(call, unrecorded, request) if request else None
        except _Unrecorded:
            return None

    def has_repository(self, path: str | None) -> bool:
        """Say whether the repository at a path, perhaps of another machine, is this server's project."""
        return path is not None and os.path.realpath(path) == str(self.context.project_root)

    async def git(self) -> Git | None:
        """Give git for the project; None if it is in no repository."""
        return await self.context.git(Git)

    def _act(self, call: ToolCall, transaction: Transaction) -> Act:
        from deepwork_orchestration.records import Records

        return Act(
            transaction,
            Records(transaction),
            principal=call.principal,
            bindings=self.bindings.of(call),
            lease=self.lease,
            project_root=str(self.context.project_root),
        )


def open_desk(context: PluginContext) -> Desk:
    """Make the desk of a server or a command.

    Raises:
        ConfigError: The settings of the plugin cannot be used.
    """
    return Desk(context, context.settings(OrchestrationSettings).lease_seconds * 1000)


def check_storable(arguments: Mapping[str, Any]) -> None:
    """Refuse texts that no database can hold.

    Raises:
        OrchestrationError: INVALID_INPUT.
    """
    from deepwork_sql import UnstorableText, check_json

    for name, value in arguments.items():
        try:
            check_json(name, value)
        except UnstorableText as error:
            raise invalid_input(name, error.message) from None


def _once(act: Act, work: Callable[[Act], ResultT], request: Request | None) -> ResultT:
    from deepwork_sql import RequestConflict

    if request is None:
        return work(act)
    try:
        result: ResultT = act.transaction.once(
            principal=act.principal,
            tool=request.tool,
            request_id=request.request_id,
            arguments=request.arguments,
            work=lambda: work(act),
        )
    except RequestConflict as error:
        suggestion = "Use a new request_id for a new call."
        raise OrchestrationError("REQUEST_CONFLICT", error.message, suggestion) from None
    return result


def _renew(act: Act, agent_ids: list[str]) -> None:
    for agent_id in agent_ids:
        claims.beat(act, act.records.agent(agent_id))
