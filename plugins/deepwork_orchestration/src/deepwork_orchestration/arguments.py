"""The shapes of arguments: strict in their types, with bounds that are errors of our own, and short in the schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationInfo,
    model_validator,
)

from deepwork_orchestration.errors import OrchestrationError, invalid_input
from deepwork_orchestration.names import is_name_of_the_system

MAX_NAME = 200
MAX_BYTES = 1024 * 1024
MAX_LIMIT = 1000
MAX_PARALLEL = 1000
MAX_TASKS = 5000
MAX_DEPENDENCIES = 50_000
MAX_EXPIRY = 365 * 24 * 3600
# JSON numbers are exact up to here, and every database holds them.
MAX_NUMBER = 2**53 - 1


# The default of a parameter that null clears: there null does not mean left out.
KEEP: Any = object()


def compact(value: Any) -> str:
    """Write JSON as it is counted: UTF-8 without escapes, and without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _field(info: ValidationInfo) -> str:
    return info.field_name or "the value"


def _check_name(value: str, info: ValidationInfo) -> str:
    if not 1 <= len(value) <= MAX_NAME:
        raise invalid_input(_field(info), f"must have 1 to {MAX_NAME} characters, not {len(value)}")
    return value


def _check_agent_name(value: str, info: ValidationInfo) -> str:
    if is_name_of_the_system(value):
        raise invalid_input(_field(info), f"{value!r} is a name of the system", "Choose a name that tells what you do.")
    return value


def _check_text(value: str, info: ValidationInfo) -> str:
    size = len(value.encode(errors="surrogatepass"))
    if size > MAX_BYTES:
        raise invalid_input(_field(info), f"may have {MAX_BYTES:,} bytes, not {size:,}", "Keep it in a file.")
    return value


def _check_json(value: Any, info: ValidationInfo) -> Any:
    try:
        size = len(compact(value).encode(errors="surrogatepass"))
    except (ValueError, RecursionError):
        raise invalid_input(_field(info), "cannot be written as JSON") from None
    if size > MAX_BYTES:
        raise invalid_input(_field(info), f"may have {MAX_BYTES:,} bytes of JSON, not {size:,}", "Keep it in a file.")
    return value


def _check_size(value: list[Any], info: ValidationInfo) -> list[Any]:
    if len(value) > MAX_TASKS:
        raise invalid_input(_field(info), f"may be {MAX_TASKS:,}, not {len(value):,}", "Make several workflows.")
    return value


def _check_dependencies(value: Any) -> Any:
    """Count dependencies before anything looks at each of them: a request has room for half a million."""
    count = 0
    for task in value if isinstance(value, list) else ():
        needed = task.get("depends_on") if isinstance(task, dict) else getattr(task, "depends_on", None)
        count += len(needed) if isinstance(needed, list) else 0
    if count > MAX_DEPENDENCIES:
        raise too_many_dependencies(count)
    return value


def too_many_dependencies(count: int) -> OrchestrationError:
    """Return the error for a plan in which tasks wait for too many others."""
    return invalid_input(
        "depends_on",
        f"may name {MAX_DEPENDENCIES:,} dependencies in a whole plan, not {count:,}",
        "A task waits for all that its dependencies wait for, too: name the last ones only.",
    )


def _between(least: int, most: int) -> Callable[[Any, ValidationInfo], Any]:
    def check(value: Any, info: ValidationInfo) -> Any:
        if not least <= value <= most:
            raise invalid_input(_field(info), f"must be {least} to {most:,}, not {value}")
        return value

    return check


def _one_word(value: Any) -> Any:
    return "notification" if value == "broadcast" else value


Name = Annotated[str, AfterValidator(_check_name)]
AgentName = Annotated[Name, AfterValidator(_check_agent_name)]
Text = Annotated[str, AfterValidator(_check_text)]
Id = Text
Fence = Annotated[int, Strict(), Field(description="From task_claim; not needed on the connection that claimed")]
Caller = Annotated[Text, Field(description="Yours")]
Flag = Annotated[bool, Strict()]
Texts = Annotated[list[str], AfterValidator(_check_json)]
Object = Annotated[dict[str, Any], AfterValidator(_check_json)]
Body = Annotated[str | dict[str, Any], AfterValidator(_check_json)]
Limit = Annotated[int, Strict(), AfterValidator(_between(1, MAX_LIMIT))]
Count = Annotated[int, Strict(), AfterValidator(_between(0, MAX_NUMBER))]
Ordinal = Annotated[int, Strict(), AfterValidator(_between(1, MAX_NUMBER))]
Parallel = Annotated[int, Strict(), AfterValidator(_between(1, MAX_PARALLEL))]
Seconds = Annotated[int, Strict(), AfterValidator(_between(1, MAX_EXPIRY)), Field(description="Seconds")]
Timestamp = Annotated[float, Strict(), AfterValidator(_between(0, MAX_NUMBER)), Field(description="Unix time, ms or s")]

SourceType = Literal["prompt", "github_issue", "linear", "jira", "custom"]
Complexity = Literal["low", "medium", "high"]
CheckpointType = Literal["plan", "progress", "decision", "error", "recovery", "complete"]
StoredCheckpointType = Literal[CheckpointType, "replan"]
Runtime = Literal["claude_code", "codex", "opencode", "custom"]
Role = Literal["coordinator", "worker"]
Priority = Literal["low", "normal", "high", "urgent"]
# `broadcast` is what others call a notification to many. It is taken, but agents are not told of a second word.
MessageType = Annotated[
    Literal["task_assignment", "status_update", "query", "response", "notification"], BeforeValidator(_one_word)
]
BroadcastType = Annotated[Literal["notification", "status_update"], BeforeValidator(_one_word)]


def _lean(schema: dict[str, Any]) -> None:
    """Leave out of a schema that null means left out: an agent pays for each word."""
    schema.pop("additionalProperties", None)
    for field in schema.get("properties", {}).values():
        choices = [choice for choice in field.pop("anyOf", ()) if choice != {"type": "null"}]
        if len(choices) == 1:
            field.update(choices[0])
        elif choices:
            field["anyOf"] = choices
        if "default" in field and field["default"] in (None, []):
            del field["default"]


class Shape(BaseModel):
    """An object in the arguments. Unknown keys are refused, and null means left out."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, json_schema_extra=_lean)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, value: Any) -> Any:
        return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value


class PlanTask(Shape):
    """A task of a plan or a template. It names the tasks that it depends on, because none of them has an id yet."""

    name: Name
    description: Text
    sequence: Ordinal
    parallel_group: Name | None = None
    depends_on: Texts = []
    estimated_complexity: Complexity | None = None
    files_likely_affected: Texts | None = None
    required_capabilities: Annotated[Texts | None, Field(description='"human": only for a person')] = None


PlanTasks = Annotated[list[PlanTask], BeforeValidator(_check_dependencies), AfterValidator(_check_size)]


class Plan(Shape):
    """The plan of a workflow."""

    summary: Text
    approach: Text
    tasks: PlanTasks
    risks: Texts | None = None
    assumptions: Texts | None = None


class NewTaskPlan(Shape):
    """The plan of a task that replaces another one."""

    approach: Text
    steps: Texts
    files_to_modify: Texts | None = None
    files_to_create: Texts | None = None


class TaskPlan(NewTaskPlan):
    """The plan of one task."""

    context_needed: Texts | None = None


class Include(Shape):
    """What task_load_context gives."""

    workflow_plan: bool = True
    workflow_summary: bool = True
    prior_task_outcomes: bool = True
    prior_task_full: bool = False
    sibling_status: bool = True
    dependency_outcomes: bool = True
    all_checkpoints: bool = False
    recent_checkpoints: Count = 5


class Variable(Shape):
    """A variable of a template, which stands in its texts as `{{name}}`."""

    name: Name
    description: Text
    required: bool
    default: Text | None = None


class TemplateDefinition(Shape):
    """The tasks of a template and its variables."""

    tasks: PlanTasks
    variables: list[Variable] = []


class RecipientFilter(Shape):
    """Which agents a broadcast is for; all conditions have to fit."""

    role: Role | None = None
    status: Literal["online", "busy"] | None = None
    runtime: str | None = None
