"""Plans as a file: everything that was planned and done, without agents, claims and messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deepwork.errors import ConfigError
from deepwork_orchestration import repositories, templates, workflows
from deepwork_orchestration.arguments import Count, Parallel
from deepwork_orchestration.graph import check_graph, grouped
from deepwork_orchestration.limits import check_plan, check_values, size_of
from deepwork_orchestration.models import Mapped, Workflow
from deepwork_orchestration.sql import placeholders, sql
from deepwork_orchestration.states import DONE, WorkflowStatus, WorkspaceStatus
from deepwork_orchestration.transaction import PlanTransaction

# Milliseconds of the years that a date can have.
Moment = Annotated[int, Field(ge=0, le=253_402_300_799_999)]
EntryId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Stored = Literal["pending", "planning", "in_progress", "paused", "completed", "failed", "skipped"]


class Entry(BaseModel):
    """A row in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Identified(Entry):
    """A row with an id and its times."""

    id: EntryId
    created_at: Moment
    updated_at: Moment


class RepositoryEntry(Identified):
    """A repository of a workflow."""

    path: str
    name: str | None


class WorkflowEntry(Identified):
    """A workflow."""

    repository_id: str | None
    name: str
    source_type: str
    source_ref: str | None
    source_content: str
    status: WorkflowStatus
    initial_plan: Mapped | None
    plan_summary: str | None
    max_parallel_tasks: Parallel
    auto_create_workspaces: bool
    config: Mapped | None


class TaskEntry(Identified):
    """A task, without its claim."""

    workflow_id: str
    name: str
    description: str | None
    status: Stored
    sequence: Count
    parallel_group: str | None
    plan: Mapped | None
    plan_summary: str | None
    context: Mapped | None
    outcome: str | None
    outcome_detail: Mapped | None
    error: str | None
    required_capabilities: list[str] | None
    workspace_id: str | None


class DependencyEntry(Entry):
    """That a task waits for another."""

    task_id: str
    depends_on_id: str
    type: Literal["blocks", "informs"]


class CheckpointEntry(Entry):
    """A checkpoint of a task."""

    id: EntryId
    task_id: str
    sequence: Count
    checkpoint_type: str
    summary: str
    detail: Mapped | None
    files_changed: list[str] | None
    created_at: Moment


class WorkspaceEntry(Identified):
    """A workspace of a workflow."""

    workflow_id: str
    path: str
    branch: str
    base_branch: str | None
    status: WorkspaceStatus
    merge_commit: str | None


class TemplateEntry(Identified):
    """A template."""

    name: str
    description: str | None
    template: Mapped
    version: Count


class PlanFile(Entry):
    """The whole file: its sections in the order in which rows may refer to rows before them."""

    format: Literal["deepwork-plan"] = "deepwork-plan"
    version: Literal[1] = 1
    repositories: list[RepositoryEntry] = []
    workflows: list[WorkflowEntry] = []
    tasks: list[TaskEntry] = []
    dependencies: list[DependencyEntry] = []
    checkpoints: list[CheckpointEntry] = []
    workspaces: list[WorkspaceEntry] = []
    templates: list[TemplateEntry] = []


# Which rows of a table belong to workflows, whose ids are `{0}`.
_OF_TASKS = "task_id IN (SELECT id FROM orchestration_tasks WHERE workflow_id IN {0})"
_BELONGS = {
    "repositories": "id IN (SELECT repository_id FROM orchestration_workflows WHERE id IN {0})",
    "workflows": "id IN {0}",
    "tasks": "workflow_id IN {0}",
    "dependencies": _OF_TASKS,
    "checkpoints": _OF_TASKS,
    "workspaces": "workflow_id IN {0}",
    "templates": "id IN (SELECT source_ref FROM orchestration_workflows WHERE id IN {0} AND source_type = 'template')",
}
SECTIONS = tuple(_BELONGS)


def export_plans(transaction: PlanTransaction, workflow_ids: Collection[str]) -> Mapped:
    """Return the file of these workflows, with the templates they were made from; of everything if none are named.

    Raises:
        OrchestrationError: There is no such workflow.
    """
    for workflow_id in workflow_ids:
        transaction.get(Workflow, workflow_id)
    content: Mapped = {"format": "deepwork-plan", "version": 1}
    for section in SECTIONS:
        content[section] = _exported(transaction, section, workflow_ids)
    return content


def _exported(transaction: PlanTransaction, section: str, workflow_ids: Collection[str]) -> list[Mapped]:
    """Return the rows of a table that belong to workflows; all if none are named."""
    order = "task_id, depends_on_id" if section == "dependencies" else "number"
    listed, arguments = placeholders("id", workflow_ids)
    where = f"WHERE {_BELONGS[section].format(listed)}" if workflow_ids else ""
    (entry,) = get_args(PlanFile.model_fields[section].annotation)
    query = f"SELECT {', '.join(entry.model_fields)} FROM orchestration_{section} {where} ORDER BY {order}"
    return [row._asdict() for row in transaction.rows(sql(query), **arguments)]


def read_plans(content: bytes) -> PlanFile:
    """Read a file.

    Raises:
        ConfigError: It is not a file of plans; the error names the first mistakes.
    """
    try:
        return PlanFile.model_validate_json(content)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, item['loc'])) or 'the file'}: {item['msg']}" for item in error.errors()[:5]]
        raise ConfigError("this is not a file of plans:\n" + "\n".join(problems), hint="deepwork plan export") from None


def import_plans(transaction: PlanTransaction, plans: PlanFile) -> Mapped:
    """Store everything of a file under its ids, or nothing.

    Raises:
        ConfigError: An id is there already, or a row refers to an id outside of the file.
        OrchestrationError: The dependencies cannot be those of a plan.
    """
    _check_references(plans)
    for section in SECTIONS:
        if section not in ("dependencies", "repositories"):
            ids = [entry.id for entry in getattr(plans, section)]
            stored = f"SELECT id FROM orchestration_{section} WHERE id IN {{ids}}"
            present = [row.id for row in transaction.in_batches(stored, ids)]
            if present:
                raise ConfigError(f"{section} of this file are there already: {', '.join(sorted(present)[:5])}")
    names = templates.stored_names(transaction) & {entry.name for entry in plans.templates}
    if names:
        raise ConfigError(f"there is a template {min(names)!r} already, with another id")
    _store(transaction, plans)
    return {section: len(getattr(plans, section)) for section in SECTIONS}


def _store(transaction: PlanTransaction, plans: PlanFile) -> None:
    repository_ids = _repository_ids(transaction, plans.repositories)
    finished = {task.id for task in plans.tasks if task.status in DONE}
    open_counts = Counter(
        edge.task_id for edge in plans.dependencies if edge.type == "blocks" and edge.depends_on_id not in finished
    )
    numbers: dict[str, int] = {}
    for section in SECTIONS:
        rows = [entry.model_dump() for entry in getattr(plans, section)]
        for row in rows:
            if section == "workflows":
                row |= {"repository_id": repository_ids.get(row["repository_id"]), "principal": transaction.principal}
            elif section == "tasks":
                row["open_dependencies"] = open_counts[row["id"]]
                row["workflow_number"] = numbers[row["workflow_id"]]
        if section != "repositories":
            _insert(transaction, section, rows)
        if section == "workflows":
            numbers = {row["id"]: workflows.number_of(transaction, row["id"]) for row in rows}
    for workflow in plans.workflows:
        transaction.emit("workflow:created", workflow.id, transaction.get(Workflow, workflow.id).summary())


def _insert(transaction: PlanTransaction, section: str, rows: Sequence[Mapped]) -> None:
    for row in rows:
        check_values(row, where=f"{row['id']}: " if "id" in row else "")
    transaction.insert_all(f"orchestration_{section}", rows)


def _repository_ids(transaction: PlanTransaction, entries: Iterable[RepositoryEntry]) -> dict[str, str]:
    """Return the ids that the repositories of a file have here: those with the same path, else their own."""
    ids: dict[str, str] = {}
    for entry in entries:
        repository = repositories.repository_at(transaction, entry.path)
        if repository is None:
            _insert(transaction, "repositories", [entry.model_dump()])
        ids[entry.id] = repository.id if repository else entry.id
    return ids


def _check_references(plans: PlanFile) -> None:
    _check_unique(plans)
    ids = {
        section: {entry.id for entry in getattr(plans, section)} for section in SECTIONS if section != "dependencies"
    }
    references: list[tuple[str, Any, str]] = [
        *(("repositories", workflow.repository_id, workflow.id) for workflow in plans.workflows),
        *(("workflows", task.workflow_id, task.id) for task in plans.tasks),
        *(("workspaces", task.workspace_id, task.id) for task in plans.tasks),
        *(("tasks", edge.task_id, "a dependency") for edge in plans.dependencies),
        *(("tasks", edge.depends_on_id, "a dependency") for edge in plans.dependencies),
        *(("tasks", checkpoint.task_id, checkpoint.id) for checkpoint in plans.checkpoints),
        *(("workflows", workspace.workflow_id, workspace.id) for workspace in plans.workspaces),
    ]
    for section, target, source in references:
        if target is not None and target not in ids[section]:
            raise ConfigError(f"{source} refers to {target!r}, which is not in the {section} of the file")
    _check_sizes(plans)
    needed = grouped((edge.task_id, edge.depends_on_id) for edge in plans.dependencies)
    check_graph([task.id for task in plans.tasks], needed)


def _check_sizes(plans: PlanFile) -> None:
    workflow_of = {task.id: task.workflow_id for task in plans.tasks}
    tasks = Counter(workflow_of.values())
    dependencies = Counter(workflow_of[edge.task_id] for edge in plans.dependencies)
    sizes = Counter[str]()
    for task in plans.tasks:
        sizes[task.workflow_id] += size_of(task.name) + size_of(task.description) + size_of(task.context)
    for workflow_id in tasks:
        check_plan(tasks[workflow_id], dependencies[workflow_id], sizes[workflow_id])


def _check_unique(plans: PlanFile) -> None:
    keys = [
        *(
            (f"the id {entry.id!r} in {section}",)
            for section in SECTIONS
            if section != "dependencies"
            for entry in getattr(plans, section)
        ),
        *((f"the task {task.name!r} in", task.workflow_id) for task in plans.tasks),
        *((f"the template {template.name!r}",) for template in plans.templates),
        *((f"the repository {repository.path!r}",) for repository in plans.repositories),
        *((f"that {edge.task_id!r} waits for {edge.depends_on_id!r}",) for edge in plans.dependencies),
        *((f"checkpoint {checkpoint.sequence} of", checkpoint.task_id) for checkpoint in plans.checkpoints),
    ]
    values: set[tuple[str, ...]] = set()
    for key in keys:
        if key in values:
            raise ConfigError(f"the file says twice: {' '.join(key)}")
        values.add(key)
