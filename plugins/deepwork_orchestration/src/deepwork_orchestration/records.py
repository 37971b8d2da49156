"""All SQL of the tools. Imported at the first call only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from deepwork_orchestration import tables as t
from deepwork_orchestration.errors import not_found
from deepwork_orchestration.models import (
    Agent,
    Checkpoint,
    Mapped,
    Message,
    Repository,
    Row,
    Task,
    Template,
    Workflow,
    Workspace,
)
from deepwork_orchestration.states import BEGUN, CLOSED, DONE, HUMAN
from deepwork_sql import Transaction, new_id

RowT = TypeVar("RowT", bound=Row)

PREFIXES = {
    "workflows": "wf",
    "tasks": "tk",
    "checkpoints": "cp",
    "workspaces": "ws",
    "repositories": "rp",
    "templates": "tmpl",
    "agents": "ag",
    "messages": "msg",
}
# Databases limit the parameters of one statement.
BATCH = 500


class Records:
    """The rows of one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    # Rows of any table.

    def add(self, table: sa.Table, **values: Any) -> str:
        """Insert a row with a new id, and give the id."""
        row = self._filled(table, values)
        self._transaction.execute(sa.insert(table), row)
        return str(row["id"])

    def add_all(self, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Insert many rows, and give their ids."""
        filled = [self._filled(table, row) for row in rows]
        if filled:
            self._transaction.execute(sa.insert(table), filled)
        return [row["id"] for row in filled]

    def change(self, table: sa.Table, row_id: str, **values: Any) -> None:
        """Update a row."""
        if "updated_at" in table.c:
            values.setdefault("updated_at", self._transaction.now)
        self._transaction.execute(sa.update(table).where(table.c.id == row_id).values(**values))

    def _filled(self, table: sa.Table, values: Mapping[str, Any]) -> Mapped:
        row = {"id": values.get("id") or new_id(PREFIXES[table.name.removeprefix("orchestration_")])}
        times = {name: self._transaction.now for name in ("created_at", "updated_at") if name in table.c}
        return times | dict(values) | row

    def _get(self, model: type[RowT], table: sa.Table, row_id: str, kind: str) -> RowT:
        row = self._transaction.execute(sa.select(table).where(table.c.id == row_id)).mappings().first()
        if row is None:
            raise not_found(kind, row_id)
        return model.of(row)

    def _all(self, model: type[RowT], query: sa.Select[Any]) -> list[RowT]:
        return [model.of(row) for row in self._transaction.execute(query).mappings()]

    def _lines(self, query: sa.Select[Any]) -> Sequence[Any]:
        return self._transaction.execute(query).all()

    def _count(self, query: sa.Select[Any]) -> int:
        statement = sa.select(sa.func.count()).select_from(query.subquery())
        return int(self._transaction.execute(statement).scalar_one())

    # Whole tables, for files.

    def exported(self, section: str, workflow_ids: Sequence[str]) -> Sequence[sa.RowMapping]:
        """Give the rows of a table that belong to workflows; all if none are named."""
        table = t.metadata.tables[f"orchestration_{section}"]
        query = sa.select(table).order_by(*(table.primary_key.columns if "number" not in table.c else [table.c.number]))
        if workflow_ids:
            query = query.where(_belongs(section, workflow_ids))
        return self._transaction.execute(query).mappings().all()

    def present(self, section: str, ids: Sequence[str]) -> set[str]:
        """Give those of the ids that a table has."""
        column = t.metadata.tables[f"orchestration_{section}"].c.id
        batches = (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))
        return {row[0] for batch in batches for row in self._lines(sa.select(column).where(column.in_(batch)))}

    def insert_all(self, section: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows as they are."""
        if rows:
            self._transaction.execute(sa.insert(t.metadata.tables[f"orchestration_{section}"]), rows)

    # One row by its id. An unknown id is an error.

    def workflow(self, workflow_id: str) -> Workflow:
        return self._get(Workflow, t.workflows, workflow_id, "workflow")

    def task(self, task_id: str) -> Task:
        return self._get(Task, t.tasks, task_id, "task")

    def workspace(self, workspace_id: str) -> Workspace:
        return self._get(Workspace, t.workspaces, workspace_id, "workspace")

    def template(self, template_id: str) -> Template:
        return self._get(Template, t.templates, template_id, "template")

    def agent(self, agent_id: str, kind: str = "agent") -> Agent:
        return self._get(Agent, t.agents, agent_id, kind)

    def message(self, message_id: str) -> Message:
        return self._get(Message, t.messages, message_id, "message")

    # Repositories.

    def repository_at(self, path: str) -> Repository | None:
        rows = self._all(Repository, sa.select(t.repositories).where(t.repositories.c.path == path))
        return rows[0] if rows else None

    def repository_path(self, workflow: Workflow) -> str | None:
        query = sa.select(t.repositories.c.path).where(t.repositories.c.id == workflow.repository_id)
        path: str | None = self._transaction.execute(query).scalar_one_or_none()
        return path

    def repositories(self, limit: int, offset: int) -> tuple[list[Repository], int]:
        query = sa.select(t.repositories)
        page = query.order_by(t.repositories.c.created_at.desc(), t.repositories.c.number.desc())
        return self._all(Repository, page.limit(limit).offset(offset)), self._count(query)

    # Workflows.

    def workflows(
        self, *, repository_path: str | None, statuses: Collection[str] | None, limit: int, offset: int
    ) -> tuple[Sequence[Any], int]:
        """Give of each workflow what lists show."""
        c = t.workflows.c
        query = sa.select(c.id, c.name, c.status, c.created_at, c.updated_at)
        if repository_path is not None:
            repository = sa.select(t.repositories.c.id).where(t.repositories.c.path == repository_path)
            query = query.where(t.workflows.c.repository_id.in_(repository))
        if statuses is not None:
            query = query.where(t.workflows.c.status.in_(statuses))
        page = query.order_by(c.created_at.desc(), c.number.desc())
        return self._lines(page.limit(limit).offset(offset)), self._count(query)

    # Tasks and their dependencies.

    def tasks(self, workflow_id: str) -> list[Task]:
        return self._all(Task, _in_order(sa.select(t.tasks).where(t.tasks.c.workflow_id == workflow_id)))

    def task_lines(self, workflow_id: str) -> Sequence[Any]:
        """Give of each task what overviews need."""
        c = t.tasks.c
        columns = c.id, c.name, c.status, c.sequence, c.parallel_group, c.open_dependencies
        return self._lines(_in_order(sa.select(*columns).where(c.workflow_id == workflow_id)))

    def tasks_before(self, task: Task) -> list[Task]:
        """Give the tasks of lower sequence."""
        c = t.tasks.c
        query = sa.select(t.tasks).where(c.workflow_id == task.workflow_id, c.sequence < task.sequence)
        return self._all(Task, _in_order(query))

    def tasks_beside(self, task: Task) -> list[Task]:
        """Give the other tasks of the same parallel group."""
        c = t.tasks.c
        query = sa.select(t.tasks).where(
            c.workflow_id == task.workflow_id, c.parallel_group == task.parallel_group, c.id != task.id
        )
        return self._all(Task, _in_order(query)) if task.parallel_group is not None else []

    def groups(self, workflow_id: str) -> dict[str, list[str]]:
        """Give the ids of the tasks of each parallel group."""
        c = t.tasks.c
        groups: dict[str, list[str]] = {}
        query = sa.select(c.parallel_group, c.id).where(c.workflow_id == workflow_id, c.parallel_group.is_not(None))
        for group, task_id in self._lines(_in_order(query)):
            groups.setdefault(group, []).append(task_id)
        return groups

    def dependencies(self, task_id: str) -> list[Task]:
        """Give the tasks that a task waits for, done or not."""
        needed = sa.select(t.dependencies.c.depends_on_id).where(t.dependencies.c.task_id == task_id, _blocks())
        return self._all(Task, _in_order(sa.select(t.tasks).where(t.tasks.c.id.in_(needed))))

    def dependency_names(self, workflow_id: str, *, is_done: bool) -> dict[str, list[str]]:
        """Give, for each task of a workflow, the names of those it depends on that are done, or that are still open."""
        task, needed = t.tasks.alias("task"), t.tasks.alias("needed")
        done = needed.c.status.in_(DONE)
        query = (
            sa.select(t.dependencies.c.task_id, needed.c.name)
            .join(task, task.c.id == t.dependencies.c.task_id)
            .join(needed, needed.c.id == t.dependencies.c.depends_on_id)
            .where(task.c.workflow_id == workflow_id, _blocks(), done if is_done else ~done)
            .order_by(needed.c.sequence, needed.c.name)
        )
        names: dict[str, list[str]] = {}
        for task_id, name in self._lines(query):
            names.setdefault(task_id, []).append(name)
        return names

    def edges(self, workflow_id: str) -> list[tuple[str, str]]:
        """Give each task of a workflow with each task that it waits for."""
        query = (
            sa.select(t.dependencies.c.task_id, t.dependencies.c.depends_on_id)
            .join(t.tasks, t.tasks.c.id == t.dependencies.c.task_id)
            .where(t.tasks.c.workflow_id == workflow_id, _blocks())
            .order_by(t.tasks.c.sequence, t.tasks.c.number)
        )
        return [(task_id, needed) for task_id, needed in self._lines(query)]

    def add_edges(self, edges: Iterable[tuple[str, str]]) -> None:
        """Store that tasks wait for others."""
        rows = [{"task_id": task, "depends_on_id": needed, "type": "blocks"} for task, needed in edges]
        if rows:
            self._transaction.execute(sa.insert(t.dependencies), rows)

    def release_dependents(self, task_id: str) -> None:
        """Count a task that is done as no longer open for those that wait for it."""
        waiting = sa.select(t.dependencies.c.task_id).where(t.dependencies.c.depends_on_id == task_id, _blocks())
        fewer = {"open_dependencies": t.tasks.c.open_dependencies - 1, "updated_at": self._transaction.now}
        self._transaction.execute(sa.update(t.tasks).where(t.tasks.c.id.in_(waiting)).values(fewer))

    def actionable(self, workflow_id: str, statuses: Collection[str]) -> list[Task]:
        query = _free(sa.select(t.tasks), *statuses).where(t.tasks.c.workflow_id == workflow_id)
        return self._all(Task, _in_order(query))

    def available(self, workflow_id: str | None, batch: int) -> Iterable[Task]:
        """Give the pending tasks that nobody holds, by sequence, then by age of the workflow; read in batches."""
        # Only ids are sorted, because thousands of whole rows may have the same sequence. Workflows are not joined, so
        # that no database begins with them and sorts all tasks of all workflows.
        w = t.workflows.c
        closed = sa.select(w.id).where(w.status.in_(CLOSED))
        age = sa.select(w.number).where(w.id == t.tasks.c.workflow_id).scalar_subquery()
        query = _free(sa.select(t.tasks.c.id), "pending").where(t.tasks.c.workflow_id.not_in(closed))
        if workflow_id is not None:
            query = query.where(t.tasks.c.workflow_id == workflow_id)
        ordered = query.order_by(t.tasks.c.sequence, age, t.tasks.c.name)
        offset = 0
        while lines := self._lines(ordered.limit(batch).offset(offset)):
            ids = [line.id for line in lines]
            tasks = {task.id: task for task in self._all(Task, sa.select(t.tasks).where(t.tasks.c.id.in_(ids)))}
            yield from (tasks[task_id] for task_id in ids)
            offset += batch

    def start_workflow(self, workflow_id: str) -> bool:
        """Make a workflow that is ready one that is in progress, and say whether it was ready."""
        where = t.workflows.c.id == workflow_id, t.workflows.c.status == "ready"
        values = {"status": "in_progress", "updated_at": self._transaction.now}
        return self._transaction.execute(sa.update(t.workflows).where(*where).values(values)).rowcount == 1

    def open_task_count(self, workflow_id: str) -> int:
        c = t.tasks.c
        return self._count(sa.select(c.id).where(c.workflow_id == workflow_id, c.status.not_in(DONE)))

    def running_count(self, workflow_id: str) -> int:
        """Count the tasks that take up a place: claimed or begun."""
        c = t.tasks.c
        runs = sa.or_(c.status.in_(("planning", "in_progress")), c.assigned_agent_id.is_not(None))
        return self._count(sa.select(c.id).where(c.workflow_id == workflow_id, runs))

    # Checkpoints.

    def add_checkpoint(self, task_id: str, kind: str, summary: str, **values: Any) -> tuple[str, int]:
        """Add the next checkpoint of a task, and give its id and number."""
        last = sa.select(sa.func.max(t.checkpoints.c.sequence)).where(t.checkpoints.c.task_id == task_id)
        sequence = (self._transaction.execute(last).scalar_one() or 0) + 1
        checkpoint_id = self.add(
            t.checkpoints, task_id=task_id, sequence=sequence, checkpoint_type=kind, summary=summary, **values
        )
        return checkpoint_id, sequence

    def checkpoints(
        self, task_id: str, *, kinds: Collection[str] | None = None, since: int = 0, limit: int | None = None
    ) -> list[Checkpoint]:
        """Give checkpoints in their order, the oldest if there are more than `limit`."""
        c = t.checkpoints.c
        query = sa.select(t.checkpoints).where(c.task_id == task_id, c.sequence > since).order_by(c.sequence)
        if kinds is not None:
            query = query.where(c.checkpoint_type.in_(kinds))
        return self._all(Checkpoint, query.limit(limit))

    def last_checkpoints(self, task_id: str, limit: int | None) -> list[Checkpoint]:
        """Give the newest checkpoints, in their order."""
        c = t.checkpoints.c
        query = sa.select(t.checkpoints).where(c.task_id == task_id).order_by(c.sequence.desc()).limit(limit)
        return self._all(Checkpoint, query)[::-1]

    def newest_summaries(self, task: Task) -> dict[str, str]:
        """Give what the newest checkpoint of each task of the same parallel group says."""
        c, k = t.checkpoints.c, t.tasks.c
        newest = (
            sa.select(c.task_id, sa.func.max(c.sequence).label("sequence"))
            .join(t.tasks, k.id == c.task_id)
            .where(k.workflow_id == task.workflow_id, k.parallel_group == task.parallel_group)
            .group_by(c.task_id)
            .subquery()
        )
        is_newest = sa.and_(c.task_id == newest.c.task_id, c.sequence == newest.c.sequence)
        return dict(self._lines(sa.select(c.task_id, c.summary).join(newest, is_newest)))

    # Agents and what they hold.

    def agents(
        self, *, statuses: Collection[str] | None = None, role: str | None = None, runtime: str | None = None
    ) -> list[Agent]:
        c = t.agents.c
        query = sa.select(t.agents).order_by(c.created_at, c.number)
        if statuses is not None:
            query = query.where(c.status.in_(statuses))
        if role is not None:
            query = query.where(c.role == role)
        if runtime is not None:
            query = query.where(c.runtime == runtime)
        return self._all(Agent, query)

    def held_by(self, agent_id: str) -> list[Task]:
        """Give the tasks that an agent holds, the newest claim last."""
        c = t.tasks.c
        query = sa.select(t.tasks).where(c.assigned_agent_id == agent_id).order_by(c.claimed_at, c.fence, c.number)
        return self._all(Task, query)

    def holders(self) -> set[str]:
        """Give the agents that hold a task."""
        c = t.tasks.c
        return {row[0] for row in self._lines(sa.select(c.assigned_agent_id).where(c.assigned_agent_id.is_not(None)))}

    # What is for people.

    def people(self) -> list[Agent]:
        """Give the agents that are registered with `metadata.human: true`."""
        query = sa.select(t.agents).where(_mentions(t.agents.c.metadata, HUMAN))
        return [agent for agent in self._all(Agent, query.order_by(t.agents.c.number)) if agent.is_human]

    def tasks_for_people(self) -> list[Task]:
        """Give the tasks that only a person can do, and that wait for no other task."""
        c, w = t.tasks.c, t.workflows.c
        query = sa.select(t.tasks).where(
            c.status.in_(("pending", *BEGUN)),
            c.open_dependencies == 0,
            c.workflow_id.not_in(sa.select(w.id).where(w.status.in_(CLOSED))),
            _mentions(c.required_capabilities, HUMAN),
        )
        return [task for task in self._all(Task, _in_order(query)) if HUMAN in (task.required_capabilities or ())]

    def unread_of(self, agent_ids: Sequence[str], limit: int) -> list[Message]:
        """Give the unread messages to any of these agents, the newest first."""
        c = t.messages.c
        query = sa.select(t.messages).where(c.recipient_id.in_(agent_ids), c.status == "unread", self.not_expired())
        return self._messages(query, limit) if agent_ids else []

    def has_unread_query(self, sender_id: str, recipient_ids: Collection[str]) -> bool:
        """Say whether one of these agents has not read a question of an agent."""
        c = t.messages.c
        query = sa.select(c.id).where(
            c.sender_id == sender_id,
            c.recipient_id.in_(recipient_ids),
            c.message_type == "query",
            c.status == "unread",
            self.not_expired(),
        )
        return bool(self._lines(query.limit(1)))

    # Workspaces and templates.

    def workspaces(self, workflow_id: str, statuses: Collection[str] | None = None) -> list[Workspace]:
        c = t.workspaces.c
        query = sa.select(t.workspaces).where(c.workflow_id == workflow_id).order_by(c.created_at, c.number)
        return self._all(Workspace, query if statuses is None else query.where(c.status.in_(statuses)))

    def active_workspaces_at(self, path: str) -> list[Workspace]:
        c = t.workspaces.c
        return self._all(Workspace, sa.select(t.workspaces).where(c.path == path, c.status == "active"))

    def templates(self) -> list[Template]:
        return self._all(Template, sa.select(t.templates).order_by(t.templates.c.name))

    def has_template(self, name: str) -> bool:
        return bool(self._count(sa.select(t.templates.c.id).where(t.templates.c.name == name)))

    # Messages.

    def inbox(
        self,
        agent_id: str,
        *,
        status: str | None,
        message_types: Collection[str] | None,
        priorities: Collection[str] | None,
        workflow_id: str | None,
        thread_id: str | None,
        since: int | None,
        limit: int,
    ) -> list[Message]:
        """Give the messages that an agent has received; of a thread also those that it has sent."""
        c = t.messages.c
        is_theirs = c.recipient_id == agent_id
        if thread_id is not None:
            is_theirs = sa.and_(c.thread_id == thread_id, sa.or_(is_theirs, c.sender_id == agent_id))
        conditions = [is_theirs, self.not_expired()]
        conditions += [
            column == value for column, value in ((c.status, status), (c.workflow_id, workflow_id)) if value is not None
        ]
        conditions += [
            column.in_(values)
            for column, values in ((c.message_type, message_types), (c.priority, priorities))
            if values is not None
        ]
        if since is not None:
            conditions.append(c.created_at > since)
        return self._messages(sa.select(t.messages).where(*conditions), limit)

    def all_messages(self, workflow_id: str | None, agent_id: str | None, limit: int) -> list[Message]:
        """Give the messages about a workflow, and those that an agent has sent or received."""
        c = t.messages.c
        query = sa.select(t.messages)
        if workflow_id is not None:
            query = query.where(c.workflow_id == workflow_id)
        if agent_id is not None:
            query = query.where(sa.or_(c.sender_id == agent_id, c.recipient_id == agent_id))
        return self._messages(query, limit)

    def _messages(self, query: sa.Select[Any], limit: int) -> list[Message]:
        ordered = query.order_by(t.messages.c.created_at.desc(), t.messages.c.number.desc())
        return self._all(Message, ordered.limit(limit))

    def unread_by_priority(self, agent_id: str, priorities: Collection[str] | None = None) -> dict[str, int]:
        """Count the unread messages of an agent."""
        c = t.messages.c
        query = sa.select(c.priority, sa.func.count()).where(
            c.recipient_id == agent_id, c.status == "unread", self.not_expired()
        )
        if priorities is not None:
            query = query.where(c.priority.in_(priorities))
        return dict(self._lines(query.group_by(c.priority)))

    def not_expired(self) -> sa.ColumnElement[bool]:
        expires_at = t.messages.c.expires_at
        return sa.or_(expires_at.is_(None), expires_at > self._transaction.now)

    def mark(self, message_ids: Sequence[str], statuses: Collection[str], **values: Any) -> None:
        """Change those of the messages that have one of these statuses; unknown ids are ignored."""
        c = t.messages.c
        for start in range(0, len(message_ids), BATCH):
            batch = message_ids[start : start + BATCH]
            where = c.id.in_(batch), c.status.in_(statuses)
            self._transaction.execute(sa.update(t.messages).where(*where).values(**values))


def _belongs(section: str, workflow_ids: Sequence[str]) -> sa.ColumnElement[bool]:
    """Say which rows of a table belong to workflows."""
    w, k = t.workflows.c, t.tasks.c
    tasks = sa.select(k.id).where(k.workflow_id.in_(workflow_ids))
    conditions: dict[str, sa.ColumnElement[bool]] = {
        "repositories": t.repositories.c.id.in_(sa.select(w.repository_id).where(w.id.in_(workflow_ids))),
        "workflows": w.id.in_(workflow_ids),
        "tasks": k.workflow_id.in_(workflow_ids),
        "dependencies": t.dependencies.c.task_id.in_(tasks),
        "checkpoints": t.checkpoints.c.task_id.in_(tasks),
        "workspaces": t.workspaces.c.workflow_id.in_(workflow_ids),
        "templates": t.templates.c.id.in_(
            sa.select(w.source_ref).where(w.id.in_(workflow_ids), w.source_type == "template")
        ),
    }
    return conditions[section]


def _mentions(column: sa.Column[Any], word: str) -> sa.ColumnElement[bool]:
    """Choose rows whose JSON may have a word; whoever reads them looks closer."""
    return sa.cast(column, sa.Text).like(f'%"{word}"%')


def _blocks() -> sa.ColumnElement[bool]:
    return t.dependencies.c.type == "blocks"


def _in_order(query: sa.Select[Any]) -> sa.Select[Any]:
    return query.order_by(t.tasks.c.sequence, t.tasks.c.name, t.tasks.c.number)


def _free(query: sa.Select[Any], *statuses: str) -> sa.Select[Any]:
    c = t.tasks.c
    has_status = c.status == statuses[0] if len(statuses) == 1 else c.status.in_(statuses)
    return query.where(has_status, c.assigned_agent_id.is_(None), c.open_dependencies == 0)
