"""One call of a tool as its function sees it: a transaction, the rows in it, and who calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from deepwork_orchestration.arguments import MAX_NUMBER
from deepwork_orchestration.bindings import ConnectionBindings
from deepwork_orchestration.errors import not_found
from deepwork_orchestration.limits import check_values, fitting
from deepwork_orchestration.models import Mapped, Row
from deepwork_orchestration.sql import Listing, bare_insertion, insertion, placeholders, selection, sql, update
from deepwork_orchestration.states import PERSON
from deepwork_sql import Transaction, new_id

if TYPE_CHECKING:
    from deepwork_sql.statement import Statement

RowT = TypeVar("RowT", bound=Row)

# Databases limit the arguments of one statement.
BATCH = 500


@dataclass(eq=False)
class PlanTransaction:
    """One call in one transaction of the database. A transaction that is run again gets a new one.

    Attributes:
        stored: The transaction of the database.
        principal: Who calls, as the server knows it.
        bindings: The claims of the call's connection.
        lease: How long a lease lasts, in milliseconds.
        project_root: The folder of this server's project.
        session_id: The session of a workflow for which the agent of this server was started; None if it is not known.
        ended_task_ids: Tasks whose claims this call has ended as they should.
        heard_agent_ids: Agents whose leases are to be renewed after a call that only reads.
    """

    stored: Transaction
    principal: str
    bindings: ConnectionBindings
    lease: int
    project_root: str
    session_id: str | None = None
    ended_task_ids: list[str] = field(default_factory=list, init=False)
    heard_agent_ids: list[str] = field(default_factory=list, init=False)

    @property
    def now(self) -> int:
        """Milliseconds since 1970 by the clock of the database."""
        return self.stored.now

    @property
    def is_person(self) -> bool:
        """Whether a person does this, in the inbox, on a page or in a terminal; no call of a tool is."""
        return self.principal.startswith(PERSON)

    def emit(self, event: str, workflow_id: str | None, data: Mapping[str, Any]) -> None:
        """Write an event into the feed, in the same transaction."""
        self.stored.emit("orchestration", event, workflow_id=workflow_id, data=data, principal=self.principal)

    # Rows of any table.

    def get(self, model: type[RowT], row_id: str, kind: str | None = None) -> RowT:
        """Return a row.

        Raises:
            OrchestrationError: The id is unknown.
        """
        found = self.find(model, row_id)
        if found is None:
            raise not_found(kind or model.KIND, row_id)
        return found

    def find(self, model: type[RowT], row_id: str) -> RowT | None:
        """Return a row; None if the id is unknown."""
        row = self.row(selection(model), id=row_id)  # type: ignore[arg-type]  # to mypy a class is not hashable
        return None if row is None else model(*row)

    def add(self, model: type[RowT], **values: Any) -> RowT:
        """Insert a row with a new id, and return it."""
        row = self._filled(model, values)
        statement = insertion(model, tuple(row))  # type: ignore[arg-type]  # as above
        return model(*self.row(statement, **row))

    def add_all(self, model: type[RowT], rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Insert many rows of the same columns, and return their ids."""
        filled = [self._filled(model, row) for row in rows]
        self.insert_all(model.TABLE, filled)
        return [row["id"] for row in filled]

    def insert_all(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert many rows of the same columns as they are."""
        if rows:
            self.stored.run_each(bare_insertion(table, tuple(rows[0])), rows)

    def change(self, model: type[RowT], row_id: str, **values: Any) -> RowT:
        """Update a row, and return it as it is then."""
        check_values(values)
        if "updated_at" in model.__dataclass_fields__:
            values.setdefault("updated_at", self.now)
        statement = update(model, tuple(sorted(values)))  # type: ignore[arg-type]  # as above
        return model(*self.row(statement, **values, id=row_id))

    def _filled(self, model: type[Row], values: Mapping[str, Any]) -> Mapped:
        check_values(values)
        automatic = {"id": new_id(model.PREFIX), "created_at": self.now, "updated_at": self.now}
        return {name: value for name, value in automatic.items() if name in model.__dataclass_fields__} | dict(values)

    # Statements.

    def rows(self, statement: Statement, **arguments: Any) -> list[Any]:
        """Run a statement, and return its rows."""
        return self.stored.rows(statement, **arguments)

    def row(self, statement: Statement, **arguments: Any) -> Any:
        """Run a statement that has one row at most, and return it; None if it has none."""
        return self.stored.row(statement, **arguments)

    def run(self, statement: Statement, **arguments: Any) -> int:
        """Run a statement, and return how many rows it has changed."""
        return self.stored.run(statement, **arguments)

    def all(self, model: type[RowT], statement: Statement, **arguments: Any) -> list[RowT]:
        """Run a statement, and return its rows as a model."""
        return [model(*row) for row in self.rows(statement, **arguments)]

    def count(self, statement: Statement, **arguments: Any) -> int:
        """Run a statement that counts."""
        return int(self.row(statement, **arguments)[0])

    def some(self, listed: Listing, *, limit: int | None = None, **arguments: Any) -> tuple[list[Any], int]:
        """Return the first rows of a list, as many as an answer has room for, and how many of it are left out."""
        most = MAX_NUMBER if limit is None else limit
        sizes = [row.size for row in self.rows(listed.sizes, **arguments, limit=most)]
        count = fitting(sizes)
        rows = self.rows(listed.rows, **arguments, limit=count) if count else []
        return rows, len(sizes) - count

    def some_of(self, model: type[RowT], listed: Listing, **arguments: Any) -> tuple[list[RowT], int]:
        """Return the same as a model."""
        rows, omitted = self.some(listed, **arguments)
        return [model(*row) for row in rows], omitted

    def in_batches(self, text: str, ids: Collection[str], **arguments: Any) -> list[Any]:
        """Run a statement, with `{ids}` for the list of ids, for some of them at a time, and return all its rows."""
        rows: list[Any] = []
        different = [*dict.fromkeys(ids)]
        for start in range(0, len(different), BATCH):
            listed, named = placeholders("id", different[start : start + BATCH])
            rows += self.rows(sql(text.format(ids=listed)), **named, **arguments)
        return rows
