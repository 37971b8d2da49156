"""What people write in `job.yml`, and a job as the server holds it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    Tag,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from deepwork.models.config import IGNORED
from deepwork.models.outputs import KINDS

# The file of a job, in the job's folder.
FILE_NAME = "job.yml"

_NAME = r"^[a-z][a-z0-9_]*$"
_VERSION = r"^\d+\.\d+\.\d+$"
# What the patterns allow, for the author of a job file.
PATTERNS = {
    _NAME: "lower-case letters, digits and '_', beginning with a letter",
    _VERSION: "three numbers such as 1.0.0",
}

MAX_INSTRUCTIONS = 1024 * 1024
# Of all steps of a group together: each step keeps its own text, also where they share a file.
MAX_GROUP_INSTRUCTIONS = 4 * 1024 * 1024

Text = Annotated[str, StringConstraints(min_length=1)]
Name = Annotated[str, StringConstraints(pattern=_NAME)]
Summary = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Version = Annotated[str, StringConstraints(pattern=_VERSION)]


class JobFilePart(BaseModel):
    """A mapping of the job file: no value is converted, and no unknown key is allowed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_serializer(mode="wrap")
    def _with_unknown(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Dump unknown keys too: a session may have stored those of a newer release. A job file is refused before."""
        return {**dump(self), **(self.__pydantic_extra__ or {})}


def _check_kind(name: str) -> str:
    if name not in KINDS:
        raise ValueError(f"should be {' or '.join(map(repr, KINDS))}")
    return name


OutputType = Annotated[str, AfterValidator(_check_kind), WithJsonSchema({"enum": [*KINDS], "type": "string"})]


class StepOutput(JobFilePart):
    """An output that a step promises."""

    type: OutputType = Field(description="file: one path; files: any number of paths.")
    description: Text = Field(description="What is expected; the agent reads it with the step.")
    required: bool = Field(description="Whether the step can be finished without it.")


class UserInput(JobFilePart):
    """A parameter that the agent asks its user for."""

    name: Text = Field(description="A parameter that the agent asks its user for.")
    description: Text = Field(description="What the parameter means.")


class FileInput(JobFilePart):
    """A file, or files, that an earlier step has made."""

    file: Text = Field(description="An output of that step; the agent is given its path.")
    from_step: Text = Field(description="The step that makes the file; it has to be among the dependencies.")


def _input_kind(value: Any) -> str:
    keys = value if isinstance(value, dict) else getattr(value, "__dict__", ())
    return "FileInput" if "file" in keys or "from_step" in keys else "UserInput"


StepInput = Annotated[
    Annotated[UserInput, Tag("UserInput")] | Annotated[FileInput, Tag("FileInput")],
    Discriminator(_input_kind),
]


class Review(JobFilePart):
    """Criteria that outputs have to meet, and whether all outputs are judged together or one by one."""

    run_each: Text = Field(
        description="step: all outputs are judged together. The name of an output: only that one, and of type files "
        "each file by itself."
    )
    quality_criteria: Annotated[dict[str, Text], Field(min_length=1)] = Field(
        description="Questions that have to be answered with yes, by the name of the criterion."
    )
    additional_review_guidance: str | None = Field(None, description="What the reviewer should know besides.")


class HookAction(JobFilePart):
    """One action of a hook. It is stored, but never run."""

    prompt: Text | None = Field(None, description=IGNORED)
    prompt_file: Text | None = Field(None, description=IGNORED)
    script: Text | None = Field(None, description=IGNORED)

    @model_validator(mode="after")
    def _exactly_one(self) -> HookAction:
        if sum(value is not None for value in (self.prompt, self.prompt_file, self.script)) != 1:
            raise ValueError("a hook has exactly one of prompt, prompt_file, script")
        return self


class Hooks(JobFilePart):
    """Hooks of a step, by event."""

    after_agent: list[HookAction] = Field(default_factory=list, description=IGNORED)
    before_tool: list[HookAction] = Field(default_factory=list, description=IGNORED)
    before_prompt: list[HookAction] = Field(default_factory=list, description=IGNORED)


class Step(JobFilePart):
    """One step of a job."""

    id: Name = Field(description="The name of the step in workflows, inputs and dependencies.")
    name: Text = Field(description="A name for people.")
    description: Text = Field(description="What the step is for, in a sentence.")
    instructions_file: Text = Field(
        description="A Markdown file with the agent's instructions, relative to the job's folder."
    )
    outputs: dict[str, StepOutput] = Field(description="What the step has to deliver, by name; {} if nothing.")
    reviews: list[Review] = Field(description="What is judged before the step is complete; [] if nothing is.")
    inputs: list[StepInput] = Field(
        default_factory=list,
        description="What the step is given: parameters from the user, and files of earlier steps.",
    )
    dependencies: list[str] = Field(default_factory=list, description="The steps whose files it uses.")
    hooks: Hooks = Field(Hooks(), description=IGNORED)
    stop_hooks: list[HookAction] = Field(default_factory=list, description=IGNORED)
    exposed: bool = Field(default=False, description=IGNORED)
    hidden: bool = Field(default=False, description=IGNORED)
    agent: Text | None = Field(None, description=IGNORED)


# One step, or a concurrent group. Without a discriminator pydantic would report an error once for each of the two.
Entry = Annotated[
    Annotated[Name, Tag("step")] | Annotated[list[Name], Tag("group")],
    Discriminator(lambda value: "group" if isinstance(value, list) else "step"),
]


class Workflow(JobFilePart):
    """An order in which steps are done; an entry with several ids is a concurrent group."""

    name: Name = Field(description="The name by which start_workflow names it.")
    summary: Summary = Field(description="What the workflow does, for the agent that chooses one.")
    steps: list[Entry] = Field(
        description="Step ids in their order; a list of ids is a group of steps that are done at the same time."
    )
    agent: Text | None = Field(None, description=IGNORED)

    @cached_property
    def entries(self) -> list[list[str]]:
        """The entries, each as a list of step ids; the first id of a group is its primary."""
        return [[entry] if isinstance(entry, str) else list(entry) for entry in self.steps]

    @cached_property
    def step_ids(self) -> list[str]:
        """All step ids in order, groups flattened."""
        return [step_id for entry in self.entries for step_id in entry]


class JobFile(JobFilePart):
    """The root of a `job.yml`."""

    name: Name = Field(description="The name by which start_workflow names the job; usually that of its folder.")
    version: Version = Field(description="The version of the job, as 1.0.0.")
    summary: Summary = Field(description="What the job is for, for the agent that chooses one.")
    common_job_info_provided_to_all_steps_at_runtime: Text = Field(
        description="What the agent reads with every step of the job."
    )
    steps: Annotated[list[Step], Field(min_length=1)] = Field(
        description="The steps, from which workflows are put together."
    )
    workflows: list[Workflow] = Field(
        default_factory=list, description="The orders in which steps are done; a job without any cannot be started."
    )


class Job(BaseModel):
    """A job file that was read and is valid.

    `description` is for sources that know more of a job than `job.yml` can hold. `errors` are what will make a step
    fail when it begins, `warnings` what is probably a mistake: lines `file:line: message` for the author.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    definition: JobFile
    job_dir: Path
    description: str | None = None
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """The name that the file gives the job."""
        return self.definition.name
