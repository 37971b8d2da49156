"""The rows of a plan, read and written by prepared statements. Imported at the first call only."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import sqlalchemy as sa

from deepwork_orchestration import statements as st
from deepwork_orchestration import tables as t
from deepwork_orchestration.arguments import MAX_NUMBER
from deepwork_orchestration.errors import not_found
from deepwork_orchestration.limits import MAX_ANSWER, check_values, fitting
from deepwork_orchestration.models import (
    Agent,
    Checkpoint,
    Mapped,
    Message,
    Repository,
    Row,
    Task,
    Template,
    WholeWorkflow,
    Workflow,
    Workspace,
)
from deepwork_orchestration.states import PERSON
from deepwork_sql import Transaction, new_id

RowT = TypeVar("RowT", bound=Row)

PREFIXES: dict[type[Row], str] = {
    Agent: "ag",
    Checkpoint: "cp",
    Message: "msg",
    Repository: "rp",
    Task: "tk",
    Template: "tmpl",
    Workflow: "wf",
    Workspace: "ws",
}
# Databases limit the parameters of one statement.
BATCH = 500
# `\u001b` stands for one character in JSON.
LONGEST_ESCAPE = 6


def new_workspace_id() -> str:
    """Make the id of a workspace, for a worktree that is made before its workspace is stored."""
    return new_id(PREFIXES[Workspace])


class Records:
    """The rows of one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    # Rows of any table.

    def add(self, model: type[RowT], **values: Any) -> RowT:
        """Insert a row with a new id, and give it."""
        return model(*self._transaction.row(st.INSERTIONS[model], **self._filled(model, values)))

    def add_all(self, model: type[RowT], rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Insert many rows, and give their ids."""
        filled = [self._filled(model, row) for row in rows]
        if filled:
            self._transaction.execute(sa.insert(st.TABLES[model]), filled)
        return [row["id"] for row in filled]

    def change(self, model: type[RowT], row_id: str, **values: Any) -> RowT:
        """Update a row, and give it as it is then."""
        check_values(values)
        if "updated_at" in st.TABLES[model].c:
            values.setdefault("updated_at", self._transaction.now)
        statement = st.change(model, frozenset(values))  # type: ignore[arg-type]  # to mypy a class is not hashable
        return model(*self._transaction.row(statement, id_=row_id, **values))

    def _filled(self, model: type[Row], values: Mapping[str, Any]) -> Mapped:
        check_values(values)
        now = self._transaction.now
        times = {"id": new_id(PREFIXES[model]), "created_at": now, "updated_at": now}
        return {
            column.name: values.get(column.name, times.get(column.name))
            for column in st.TABLES[model].columns
            if column.name != "number"
        }

    def _get(self, model: type[RowT], row_id: str, kind: str) -> RowT:
        row = self._transaction.row(st.BY_ID[model], id_=row_id)
        if row is None:
            raise not_found(kind, row_id)
        return model(*row)

    def _all(self, model: type[RowT], statement: Any, **arguments: Any) -> list[RowT]:
        return [model(*row) for row in self._transaction.rows(statement, **arguments)]

    def _some(self, listed: st.Listed, *, limit: int | None = None, **arguments: Any) -> tuple[list[Any], int]:
        """Return the first rows of a list, as many as an answer has room for, and how many of it are left out."""
        sizes = [row.size for row in self._transaction.rows(listed.sizes, **arguments, limit=_or_all(limit))]
        count = fitting(sizes)
        rows = self._transaction.rows(listed.rows, **arguments, limit=count) if count else []
        return rows, len(sizes) - count

    def _some_of(self, model: type[RowT], listed: st.Listed, **arguments: Any) -> tuple[list[RowT], int]:
        rows, omitted = self._some(listed, **arguments)
        return [model(*row) for row in rows], omitted

    def _count(self, statement: Any, **arguments: Any) -> int:
        return int(self._transaction.row(statement, **arguments)[0])

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
        return {
            row[0] for batch in batches for row in self._transaction.execute(sa.select(column).where(column.in_(batch)))
        }

    def insert_all(self, section: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows as they are."""
        for row in rows:
            check_values(row, where=f"{row['id']}: " if "id" in row else "")
        if rows:
            self._transaction.execute(sa.insert(t.metadata.tables[f"orchestration_{section}"]), rows)

    # One row by its id. An unknown id is an error.

    def workflow(self, workflow_id: str) -> Workflow:
        return self._get(Workflow, workflow_id, "workflow")

    def whole_workflow(self, workflow_id: str) -> WholeWorkflow:
        return self._get(WholeWorkflow, workflow_id, "workflow")

    def task(self, task_id: str) -> Task:
        return self._get(Task, task_id, "task")

    def workspace(self, workspace_id: str) -> Workspace:
        return self._get(Workspace, workspace_id, "workspace")

    def template(self, template_id: str) -> Template:
        return self._get(Template, template_id, "template")

    def agent(self, agent_id: str, kind: str = "agent") -> Agent:
        return self._get(Agent, agent_id, kind)

    def message(self, message_id: str) -> Message:
        return self._get(Message, message_id, "message")

    # Repositories.

    def repository_at(self, path: str) -> Repository | None:
        row = self._transaction.row(st.REPOSITORY_AT, path=path)
        return None if row is None else Repository(*row)

    def repository_path(self, workflow: Workflow) -> str | None:
        row = self._transaction.row(st.REPOSITORY_PATH, id_=workflow.repository_id)
        return None if row is None else str(row.path)

    def repositories(self, limit: int, offset: int) -> tuple[list[Repository], int, int]:
        """Return a page of repositories, how many of the page are left out, and how many there are in all."""
        page, omitted = self._some_of(Repository, st.REPOSITORY_PAGE, limit=limit, offset=offset)
        return page, omitted, self._count(st.REPOSITORY_COUNT)

    # Workflows.

    def workflows(
        self, *, repository_path: str | None, statuses: Collection[str] | None, limit: int, offset: int
    ) -> tuple[Sequence[Any], int]:
        """Give of each workflow what lists show, and how many workflows there are."""
        page, count = st.workflow_page(st.words(statuses), has_path=repository_path is not None)
        path = {} if repository_path is None else {"path": repository_path}
        return self._transaction.rows(page, **path, limit=limit, offset=offset), self._count(count, **path)

    def start_workflow(self, workflow_id: str) -> Workflow | None:
        """Make a workflow that is ready one that is in progress; None if it was not ready."""
        row = self._transaction.row(st.START_WORKFLOW, id_=workflow_id, now=self._transaction.now)
        return None if row is None else Workflow(*row)

    def source_content(self, workflow_id: str) -> str:
        return str(self._transaction.row(st.SOURCE_CONTENT, id_=workflow_id).source_content)

    def workflow_number(self, workflow_id: str) -> int:
        """Give the number by which the tasks of older workflows come first."""
        return int(self._transaction.row(st.WORKFLOW_NUMBER, id_=workflow_id).number)

    # Tasks and their dependencies.

    def tasks(self, workflow_id: str) -> list[Task]:
        return self._all(Task, st.TASKS, workflow_id=workflow_id)

    def task_summaries(self, workflow_id: str) -> tuple[list[Any], int]:
        """Return of each task what summaries show, and how many tasks are left out."""
        return self._some(st.TASK_SUMMARIES, workflow_id=workflow_id)

    def task_lines(self, workflow_id: str) -> Sequence[Any]:
        """Give of each task what overviews need."""
        return self._transaction.rows(st.TASK_LINES, workflow_id=workflow_id)

    def results_before(self, task: Task, *, limit: int, characters: int, has_detail: bool) -> tuple[Sequence[Any], int]:
        """Give the results of the last of the tasks of lower sequence, and how many such tasks there are."""
        before = {"workflow_id": task.workflow_id, "sequence": task.sequence}
        statement = st.tasks_before(has_detail=has_detail)
        results, omitted = self._some(statement, **before, limit=limit, characters=characters)
        count = len(results) + omitted
        return results[::-1], count if count < limit else self._count(st.TASKS_BEFORE_COUNT, **before)

    def results_beside(self, task: Task, characters: int) -> Sequence[Any]:
        """Give the results of the other tasks of the same parallel group."""
        if task.parallel_group is None:
            return []
        same = {"workflow_id": task.workflow_id, "group": task.parallel_group, "characters": characters}
        return self._transaction.rows(st.TASKS_BESIDE, **same, id_=task.id)

    def dependency_results(self, task_id: str, length: int) -> tuple[Sequence[Any], int]:
        """Return the results of the tasks that a task has waited for, and the length to which they may have been cut.

        Outcomes have a character more than the length if they are longer. It is less than what was asked for if an
        answer has no room for all of them.
        """
        sizes = self._transaction.row(st.DEPENDENCY_SIZES, task_id=task_id, characters=length)
        if sizes.size > MAX_ANSWER:
            length = MAX_ANSWER // sizes.total
        return self._transaction.rows(st.DEPENDENCY_RESULTS, task_id=task_id, characters=length + 1), length

    def dependencies(self, task_id: str) -> Sequence[Any]:
        """Return of each task that a task waits for, done or not, what overviews need."""
        return self._transaction.rows(st.DEPENDENCIES, task_id=task_id)

    def dependency_names(self, workflow_id: str, *, is_done: bool) -> dict[str, list[str]]:
        """Give, for each task of a workflow, the names of those it depends on that are done, or that are still open."""
        return _grouped(self._transaction.rows(st.dependency_names(is_done=is_done), workflow_id=workflow_id))

    def edges(self, workflow_id: str) -> list[tuple[str, str]]:
        """Give each task of a workflow with each task that it waits for."""
        return [(task_id, needed) for task_id, needed in self._transaction.rows(st.EDGES, workflow_id=workflow_id)]

    def add_edges(self, edges: Iterable[tuple[str, str]]) -> None:
        """Store that tasks wait for others."""
        rows = ({"task_id": task, "depends_on_id": needed} for task, needed in edges)
        self._transaction.run_each(st.ADD_EDGE, rows)

    def release_dependents(self, task_id: str) -> None:
        """Count a task that is done as no longer open for those that wait for it."""
        self._transaction.run(st.RELEASE_DEPENDENTS, task_id=task_id, now=self._transaction.now)

    def actionable(self, workflow_id: str, statuses: Collection[str]) -> tuple[list[Any], int]:
        """Return what somebody chooses by among the tasks that can be started, and how many are left out."""
        return self._some(st.actionable(tuple(statuses)), workflow_id=workflow_id)

    def available(self, workflow_id: str | None, batch: int) -> Iterable[Any]:
        """Give the pending tasks that nobody holds, by sequence, then by age of the workflow; read in batches.

        Of each it gives the id, `required_capabilities` and the `size`.
        """
        statement = st.available(has_workflow=workflow_id is not None)
        chosen = {} if workflow_id is None else {"workflow_id": workflow_id}
        offset = 0
        while tasks := self._transaction.rows(statement, **chosen, limit=batch, offset=offset):
            yield from tasks
            offset += batch

    def open_task_count(self, workflow_id: str) -> int:
        return self._count(st.OPEN_TASK_COUNT, workflow_id=workflow_id)

    def held_by(self, agent_id: str) -> list[Task]:
        """Return the tasks that an agent holds without their long texts, the newest claim last."""
        return self._all(Task, st.HELD_BY, agent_id=agent_id)

    # Checkpoints.

    def add_checkpoint(self, task_id: str, kind: str, summary: str, **values: Any) -> Checkpoint:
        """Add the next checkpoint of a task."""
        sequence = (self._transaction.row(st.LAST_SEQUENCE, task_id=task_id).last or 0) + 1
        return self.add(Checkpoint, task_id=task_id, sequence=sequence, checkpoint_type=kind, summary=summary, **values)

    def checkpoints(
        self, task_id: str, *, kinds: Collection[str] | None = None, since: int = 0, limit: int | None = None
    ) -> tuple[list[Checkpoint], int]:
        """Return checkpoints in their order, the oldest if there are more than `limit`, and how many are left out."""
        return self._some_of(Checkpoint, st.checkpoints(st.words(kinds)), task_id=task_id, since=since, limit=limit)

    def last_checkpoints(
        self, task_id: str, limit: int | None, before: int = MAX_NUMBER
    ) -> tuple[list[Checkpoint], int]:
        """Return the newest checkpoints before a sequence number, in their order, and how many are left out."""
        newest, omitted = self._some_of(Checkpoint, st.LAST_CHECKPOINTS, task_id=task_id, before=before, limit=limit)
        return newest[::-1], omitted

    def checkpoint_lines(self, task_id: str, before: int, limit: int) -> list[Checkpoint]:
        """Give the newest checkpoints before a sequence number, without what they say in detail."""
        rows = self._transaction.rows(st.LAST_CHECKPOINT_LINES, task_id=task_id, before=before, limit=limit)
        return [Checkpoint(**row._asdict(), detail=None, files_changed=None) for row in reversed(rows)]

    def checkpoint_count(self, task_id: str) -> int:
        return self._count(st.CHECKPOINT_COUNT, task_id=task_id)

    def newest_summaries(self, task: Task, characters: int) -> dict[str, str]:
        """Give the beginning of what the newest checkpoint of each task of the same parallel group says."""
        same = {"workflow_id": task.workflow_id, "group": task.parallel_group, "characters": characters}
        return dict(self._transaction.rows(st.NEWEST_SUMMARIES, **same))

    # Agents.

    def agents(
        self, *, statuses: Collection[str] | None = None, role: str | None = None, runtime: str | None = None
    ) -> tuple[list[Agent], int]:
        """Return agents, the oldest first, and how many are left out."""
        listed, _ = st.agents(st.words(statuses), role, has_runtime=runtime is not None)
        return self._some_of(Agent, listed, **({} if runtime is None else {"runtime": runtime}))

    def agent_ids(
        self, *, statuses: Collection[str] | None = None, role: str | None = None, runtime: str | None = None
    ) -> list[str]:
        """Return the ids of all agents that fit."""
        _, ids = st.agents(st.words(statuses), role, has_runtime=runtime is not None)
        return [row.id for row in self._transaction.rows(ids, **({} if runtime is None else {"runtime": runtime}))]

    def agents_named(self, name: str) -> list[Agent]:
        """Return the agents whose id or name this is, but those that stand for people."""
        return [agent for agent in self._all(Agent, st.AGENTS_NAMED, name=name) if not agent.is_person]

    def holders(self) -> set[str]:
        """Give the agents that hold a task."""
        return {row[0] for row in self._transaction.rows(st.HOLDERS)}

    # What is for people.

    def people(self) -> list[Agent]:
        """Return the agents that stand for people."""
        return self._all(Agent, st.PEOPLE)

    def tasks_for_people(self, limit: int, characters: int = 0) -> tuple[Sequence[Any], int]:
        """Return tasks that only a person can do and that wait for no other task, and how many there are in all.

        Args:
            limit: At most so many: the oldest, with a share for each principal and each plan of it.
            characters: So much of a description and of a plan is read.
        """
        tasks = self._transaction.rows(st.TASKS_FOR_PEOPLE, limit=limit, characters=characters)
        return tasks, tasks[0].total if tasks else 0

    def stuck_plans(self, limit: int, characters: int, tasks: int) -> Sequence[Any]:
        """Return the failed tasks of plans in which nothing can go on, plan by plan, the longest stuck first.

        Args:
            limit: At most so many plans, with a share for each principal. `total` says how many there are.
            characters: So much of an error is read.
            tasks: At most so many tasks of a plan, the first of it. `failed` says how many of it have failed.
        """
        return self._transaction.rows(st.STUCK_PLANS, limit=limit, characters=characters, tasks=tasks)

    def is_stuck(self, workflow_id: str) -> bool:
        """True if nothing can go on in a plan before somebody decides what becomes of its failed tasks."""
        return self._transaction.row(st.IS_STUCK, workflow_id=workflow_id) is not None

    def waiting_messages(self, agent_ids: Collection[str], limit: int, characters: int) -> tuple[list[Message], int]:
        """Return unread messages to any of these agents, and how many there are in all.

        Args:
            agent_ids: The agents.
            limit: At most so many: the most urgent first, then the oldest, with a share for each principal and sender.
            characters: At least so much of a body is read.
        """
        arguments = {"limit": limit, "characters": LONGEST_ESCAPE * characters, "now": self._transaction.now}
        rows = self._transaction.execute(st.waiting_messages(agent_ids), arguments).all()
        messages = [Message.of(row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's own public name
        return [replace(message, body=_beginning(message.body)) for message in messages], rows[0].total if rows else 0

    def has_unread_query(self, sender_id: str, recipient_ids: Collection[str]) -> bool:
        """Say whether one of these agents has not read a question of an agent."""
        unread = self._transaction.rows(st.UNREAD_QUERIES, sender_id=sender_id, now=self._transaction.now)
        return any(row[0] in recipient_ids for row in unread)

    # Workspaces and templates.

    def workspaces(self, workflow_id: str, statuses: Collection[str] | None = None) -> list[Workspace]:
        return self._all(Workspace, st.workspaces(st.words(statuses)), workflow_id=workflow_id)

    def active_workspaces_at(self, path: str) -> list[Workspace]:
        return self._all(Workspace, st.ACTIVE_WORKSPACES_AT, path=path)

    def templates(self) -> tuple[list[Template], int]:
        """Return templates by name, and how many are left out."""
        return self._some_of(Template, st.TEMPLATES)

    def template_names(self) -> set[str]:
        return {row.name for row in self._transaction.rows(st.TEMPLATE_NAMES)}

    def has_template(self, name: str) -> bool:
        return self._transaction.row(st.TEMPLATE_NAMED, name=name) is not None

    # Messages.

    def inbox(
        self,
        agent_id: str,
        *,
        message_types: Collection[str] | None = None,
        priorities: Collection[str] | None = None,
        since: int | None = None,
        limit: int,
        **equal: str | None,
    ) -> tuple[list[Message], int]:
        """Return messages that an agent has received, of a thread also those that it has sent; how many are left out.

        Args:
            agent_id: The agent.
            message_types: Only these types.
            priorities: Only these priorities.
            since: Only those after this time.
            limit: At most so many, the newest.
            **equal: Columns with the value that they must have, such as `status`, `workflow_id` or `thread_id`.
        """
        values: Mapped = {name: value for name, value in equal.items() if value is not None}
        names = frozenset(values)
        statement = st.inbox(names, st.words(message_types), st.words(priorities), has_since=since is not None)
        if since is not None:
            values["since"] = since
        now = self._transaction.now
        return self._some_of(Message, statement, agent_id=agent_id, now=now, limit=limit, **values)

    def all_messages(self, workflow_id: str | None, agent_id: str | None, limit: int) -> tuple[list[Message], int]:
        """Return the messages about a workflow, and those that an agent has sent or received; how many are left out."""
        chosen = {"workflow_id": workflow_id, "agent_id": agent_id}
        statement = st.all_messages(has_workflow=workflow_id is not None, has_agent=agent_id is not None)
        return self._some_of(Message, statement, limit=limit, **{k: v for k, v in chosen.items() if v is not None})

    def unread_by_priority(self, agent_id: str, priorities: Collection[str] | None = None) -> dict[str, int]:
        """Count the unread messages of an agent."""
        statement = st.unread_by_priority(st.words(priorities))
        return dict(self._transaction.rows(statement, agent_id=agent_id, now=self._transaction.now))

    def of_people(self, message_ids: Sequence[str]) -> list[str]:
        """Return those of the messages that are to people."""
        c, a = t.messages.c, t.agents.c
        to_people = sa.select(c.id).join(t.agents, a.id == c.recipient_id).where(a.principal.startswith(PERSON))
        batches = (message_ids[start : start + BATCH] for start in range(0, len(message_ids), BATCH))
        return [row[0] for batch in batches for row in self._transaction.execute(to_people.where(c.id.in_(batch)))]

    def mark(self, message_ids: Sequence[str], statuses: Collection[str], **values: Any) -> None:
        """Change those of the messages that have one of these statuses; unknown ids are ignored."""
        c = t.messages.c
        for start in range(0, len(message_ids), BATCH):
            batch = message_ids[start : start + BATCH]
            where = c.id.in_(batch), c.status.in_(statuses)
            self._transaction.execute(sa.update(t.messages).where(*where).values(**values))


def _beginning(body: Any) -> Any:
    """Read the JSON of a body that is perhaps cut; of an object that is cut, the text is all that can be given."""
    with suppress(ValueError):
        return json.loads(body)
    if body.startswith('"'):
        for end in range(len(body), len(body) - LONGEST_ESCAPE, -1):  # it may be cut within an escape
            with suppress(ValueError):
                return json.loads(f'{body[:end]}"')
    return body


def _or_all(limit: int | None) -> int:
    return MAX_NUMBER if limit is None else limit


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for key, value in pairs:
        grouped.setdefault(key, []).append(value)
    return grouped


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
