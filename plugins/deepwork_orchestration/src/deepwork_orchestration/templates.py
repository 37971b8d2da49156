"""Templates: plans with variables, which stand in their texts as `{{name}}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from deepwork.text import visible
from deepwork_orchestration import dependencies, tasks, workflows
from deepwork_orchestration.arguments import (
    MAX_BYTES,
    MAX_NAME,
    Id,
    Name,
    Parallel,
    PlanTask,
    TemplateDefinition,
    Text,
    compact,
)
from deepwork_orchestration.errors import OrchestrationError, invalid_input, some
from deepwork_orchestration.graph import check_graph, grouped
from deepwork_orchestration.limits import check_plan, omitted, size_of
from deepwork_orchestration.models import Mapped, Task, Template, Workflow
from deepwork_orchestration.sql import listing, sql
from deepwork_orchestration.transaction import PlanTransaction

VARIABLE = re.compile(r"\{\{(\w+)\}\}")
Variables = dict[str, Text]

_ALL = "FROM orchestration_templates"
_LISTED = listing(Template, f"{_ALL} ORDER BY name LIMIT :limit")
_NAMES = sql(f"SELECT name {_ALL}")
_NAMED = sql(f"SELECT id {_ALL} WHERE name = :name")


def template_create(
    transaction: PlanTransaction,
    /,
    name: Name,
    description: Text | None = None,
    from_workflow_id: Id | None = None,
    template: TemplateDefinition | None = None,
) -> Mapped:
    """Store a plan as a template, either from a workflow or from a definition. {{word}} in its texts is a variable."""
    if (from_workflow_id is None) == (template is None):
        raise OrchestrationError(
            "INVALID_INPUT",
            "a template is made from from_workflow_id or from template: exactly one of them",
            "Leave one of them out." if template else "Give one of them.",
        )
    definition = _of_workflow(transaction, from_workflow_id) if template is None else template
    _check_graph(definition.tasks)
    if transaction.row(_NAMED, name=name) is not None:
        raise OrchestrationError("DUPLICATE_TEMPLATE", f"there is a template {name!r}", "Choose another name.")
    content = definition.model_dump(mode="json", exclude_unset=True)
    stored = transaction.add(Template, name=name, description=description, template=content, version=1)
    transaction.emit("template:created", None, {"id": stored.id, "name": name, "description": description})
    return {"id": stored.id}


def template_list(transaction: PlanTransaction, /) -> Mapped:
    """List templates by name."""
    templates, left_out = transaction.some_of(Template, _LISTED)
    return {"templates": [template.reply() for template in templates], **omitted("templates", left_out)}


def template_apply(
    transaction: PlanTransaction,
    /,
    template_id: Id,
    workflow_name: Name,
    variables: Variables | None = None,
    repository_path: Text | None = None,
    max_parallel_tasks: Parallel = 1,
) -> Mapped:
    """Create a workflow that is ready from a template."""
    template = transaction.get(Template, template_id)
    definition = TemplateDefinition.model_validate(template.template)
    values = _values(definition, variables or {})
    filled = _filled_tasks(definition.tasks, values)
    workflow = workflows.add_workflow(
        transaction,
        repository_path,
        name=workflow_name,
        source_type="template",
        source_ref=template_id,
        source_content=template.description or template.name,
        max_parallel_tasks=max_parallel_tasks,
        auto_create_workspaces=False,
    )
    plan = {"tasks": [task.model_dump(mode="json", exclude_unset=True) for task in filled]}
    summary = f"Applied template: {visible(template.name)}"
    initial_plan = {"summary": summary, **plan}
    workflows.set_tasks(transaction, workflow.id, filled, plan_summary=summary, initial_plan=initial_plan)
    return {"workflow_id": workflow.id}


def stored_names(transaction: PlanTransaction) -> set[str]:
    """Return the names of all templates."""
    return {row.name for row in transaction.rows(_NAMES)}


def _of_workflow(transaction: PlanTransaction, workflow_id: str | None) -> TemplateDefinition:
    """Make a definition of what a workflow was planned as."""
    workflow = transaction.get(Workflow, workflow_id or "")
    stored = tasks.of_workflow(transaction, workflow.id)
    if not stored:
        raise OrchestrationError(
            "INVALID_STATE", f"workflow {workflow.id} has no tasks to make a template of", "Set its plan first."
        )
    names = {task.id: task.name for task in stored}
    edges = dependencies.edges(transaction, workflow.id)
    needed = grouped((task_id, names[needed_id]) for task_id, needed_id in edges)
    planned = [_planned(task, needed.get(task.id, [])) for task in stored]
    return TemplateDefinition.model_validate({"tasks": planned})


def _planned(task: Task, depends_on: list[str]) -> Mapped:
    stored = {**(task.context or {}), **task.reply(), "depends_on": depends_on}
    planned = {name: stored.get(name) for name in PlanTask.model_fields}
    return {name: value for name, value in planned.items() if value not in (None, [])}


def _check_graph(planned: list[PlanTask]) -> None:
    check_plan(len(planned), sum(len(task.depends_on) for task in planned), 0)
    check_graph([task.name for task in planned], {task.name: task.depends_on for task in planned})


def _values(definition: TemplateDefinition, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the value of every variable, declared or not.

    Raises:
        OrchestrationError: MISSING_VARIABLES; it names the missing ones.
    """
    declared = {variable.name: variable for variable in definition.variables}
    texts = compact([(task.name, task.description, task.depends_on) for task in definition.tasks])
    values: dict[str, str] = {}
    missing: list[str] = []
    for name in dict.fromkeys([*declared, *VARIABLE.findall(texts)]):
        variable = declared.get(name)
        if name in variables:
            values[name] = variables[name]
        elif variable is not None and (variable.default is not None or not variable.required):
            values[name] = variable.default or ""
        else:
            missing.append(name)
    if missing:
        text = f"the template needs values for: {some(missing)}"
        raise OrchestrationError("MISSING_VARIABLES", text, "Give them in variables.")
    return values


def _filled_tasks(planned: Sequence[PlanTask], values: Mapping[str, str]) -> list[PlanTask]:
    """Put values into the texts of tasks; what stands in a value is not replaced again.

    Each length is counted before the text is made: a few variables of a megabyte could fill any memory.

    Raises:
        OrchestrationError: INVALID_INPUT.
    """
    sizes = {name: size_of(value) for name, value in values.items()}
    lengths = {name: len(value) for name, value in values.items()}
    count = sum(len(task.depends_on) for task in planned)
    filled = []
    size = 0
    for task in planned:
        for text in (task.name, *task.depends_on):
            length = _length(text, lengths, len)
            if not 1 <= length <= MAX_NAME:
                problem = f"make a task name of {length:,} characters; it may have 1 to {MAX_NAME}"
                raise invalid_input("variables", problem)
        description = _length(task.description, sizes, size_of)
        if description > MAX_BYTES:
            raise invalid_input(
                "variables",
                f"make a description of {description:,} bytes, of task {task.name!r}; it may have {MAX_BYTES:,}",
                "Keep long texts in files, and name these.",
            )
        size += description
        check_plan(len(planned), count, size)
        names = {"name": _fill(task.name, values), "depends_on": [_fill(name, values) for name in task.depends_on]}
        filled.append(task.model_copy(update={**names, "description": _fill(task.description, values)}))
    return filled


def _fill(text: str, values: Mapping[str, str]) -> str:
    return VARIABLE.sub(lambda match: values[match[1]], text)


def _length(text: str, lengths: Mapping[str, int], measure: Callable[[str], int]) -> int:
    """Return how long a text is once it has its values."""
    return measure(text) + sum(lengths[match[1]] - measure(match[0]) for match in VARIABLE.finditer(text))
