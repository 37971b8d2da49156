"""One call of a tool as the functions of the tools see it: a transaction, the records in it, and who calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deepwork_orchestration.bindings import ConnectionBindings
from deepwork_orchestration.states import PERSON

if TYPE_CHECKING:
    from deepwork_orchestration.records import Records
    from deepwork_sql import Transaction


class Act:
    """One call in one transaction. A transaction that is run again gets a new one.

    Attributes:
        records: The rows, read and written in the transaction.
        principal: Who calls, as the server knows it.
        bindings: The claims of the call's connection.
        lease: How long a lease lasts, in milliseconds.
        project_root: The folder of this server's project.
        ended_task_ids: Tasks whose claims this call has ended as they should.
        beating_agent_ids: Agents whose leases are to be renewed after a call that only reads.
    """

    def __init__(
        self,
        transaction: Transaction,
        records: Records,
        *,
        principal: str,
        bindings: ConnectionBindings,
        lease: int,
        project_root: str,
    ) -> None:
        self.transaction = transaction
        self.records = records
        self.principal = principal
        self.bindings = bindings
        self.lease = lease
        self.project_root = project_root
        self.ended_task_ids: list[str] = []
        self.beating_agent_ids: list[str] = []

    @property
    def now(self) -> int:
        return self.transaction.now

    @property
    def is_person(self) -> bool:
        """Whether a person does this, in the inbox, on a page or in a terminal; no call of a tool is."""
        return self.principal.startswith(PERSON)

    def emit(self, event: str, workflow_id: str | None, data: Mapping[str, Any]) -> None:
        """Write an event into the feed, in the same transaction."""
        self.transaction.emit("orchestration", event, workflow_id=workflow_id, data=data, principal=self.principal)
