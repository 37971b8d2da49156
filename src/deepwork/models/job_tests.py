"""What people write in `*.test.yml`: a conversation with a job, and what is expected of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from deepwork.models.jobs import JobFilePart, Name, Text

Status = Literal["needs_work", "next_step", "workflow_complete", "refused"]
# A test is a conversation for people to read; this bounds the cost of a hostile one.
MAX_REPORTS = 500
TestVerdict = Literal["pass", "fail", "none"]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Texts = Annotated[
    list[Text],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class ReplyExpectation(JobFilePart):
    """What is expected of the reply to a report. Texts are found anywhere in it."""

    status: Status | None = Field(None, description="The status of the reply; refused if the call is to be an error.")
    reads: Texts = Field([], description="Texts in what the agent is given with this reply.")
    refused: Texts = Field([], description="Texts in the error with which the call is refused.")
    feedback: Texts = Field([], description="Texts in the feedback.")
    notices: Texts = Field([], description="Texts in the notices.")


class StartExpectation(JobFilePart):
    """What is expected of the reply to start_workflow."""

    reads: Texts = Field([], description="Texts in what the agent is given with the first step.")
    notices: Texts = Field([], description="Texts in the notices.")


class StepReport(JobFilePart):
    """One report of a step."""

    step: Name = Field(description="The id of the step that is reported.")
    outputs: dict[str, dict[str, str | None]] = Field(
        {}, description="By output, the files with their texts; a file without a text is reported, but not written."
    )
    notes: str | None = Field(None, description="The agent's notes on its work.")
    verdicts: dict[str, dict[str, TestVerdict]] = Field(
        {}, description="By review (its run_each) and criterion: pass, fail or none. Criteria that are not named pass."
    )
    gates: Literal["scripted", "run"] = Field(
        "scripted", description="scripted: the verdicts above. run: the commands of the configuration, if trusted."
    )
    expect: ReplyExpectation = Field(ReplyExpectation(), description="What is expected of the reply.")


class EndExpectation(JobFilePart):
    """What is expected of the whole."""

    status: Status | None = Field(None, description="The status of the last reply.")
    steps: list[Name] | None = Field(
        None, description="The completed steps in their order; the first of a group comes after its other members."
    )
    outputs: dict[str, str | list[str]] | None = Field(None, description="All outputs, as the last reply has them.")


class JobTest(JobFilePart):
    """The root of a `*.test.yml`."""

    version: Literal[1] = Field(description="The version of this format: 1.")
    job: Name = Field(description="The name of the job.")
    workflow: Name | None = Field(None, description="The workflow; may be left out where the job has only one.")
    files: dict[str, str] = Field({}, description="Files that are there before the workflow is started.")
    start: StartExpectation = Field(StartExpectation(), description="What is expected of the first reply.")
    steps: list[StepReport] = Field(
        [], max_length=MAX_REPORTS, description="What the agent reports, one after the other."
    )
    expect: EndExpectation = Field(EndExpectation(), description="What is expected at the end.")
