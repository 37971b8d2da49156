"""The four workflow tools: parameters in, one method of the engine, its reply out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from deepwork.api import Engine, Report, ResourceSpec, ToolCall, ToolSet, ToolSpec
from deepwork.builtin.workflow_tools.prompts import prompts
from deepwork.models.replies import AbortedWorkflow, FinishedStep, StartedWorkflow, WorkflowList

INSTRUCTIONS = """\
DeepWork leads you through multi-step workflows. get_workflows lists them, start_workflow begins one, and after each \
step finished_step checks your outputs and gives the next step. Never claim a step done in any other way. If you have \
lost track: finished_step with outputs {} and step_id "?".

1. Discover: get_workflows lists jobs and their workflows.
2. Start: start_workflow gives a session_id and the first step (begin_step).
3. Execute: follow step_instructions and write the files in step_expected_outputs.
4. Checkpoint: finished_step with session_id, step_id and outputs (output name to path).
5. Iterate: on needs_work do what feedback says, then call finished_step again.
6. Continue: on next_step go on with the begin_step it brings.
7. Complete: on workflow_complete report all_outputs; if another workflow is on the stack, go on with that one.

Workflows nest: starting one during another puts it on top of the stack; abort_workflow ends one that cannot be \
completed. With the session_id, if you know it, step_id "?" answers where that session is. Errors say what to do next; \
notices in replies are for you.
"""

SessionId = Annotated[str | None, Field(description="From begin_step. Default: top of the stack.")]


def tool_set(engine: Engine) -> ToolSet:
    """Bind the tools to an engine."""

    def get_workflows(call: ToolCall) -> WorkflowList:
        """List jobs, available workflows to run or start, job files with errors, active sessions. Call this first."""
        return engine.list_workflows(call)

    async def start_workflow(
        call: ToolCall,
        goal: Annotated[str, Field(description="What the user wants")],
        job_name: Annotated[str, Field(description="Job, from get_workflows")],
        workflow_name: Annotated[str, Field(description="Workflow of that job")],
        instance_id: Annotated[str | None, Field(description="Name for this session, e.g. 'acme'")] = None,
        parent_session_id: Annotated[
            str | None, Field(description="Nest under this session. Default: top of the stack.")
        ] = None,
    ) -> StartedWorkflow:
        """Start a workflow. Returns its first step; started during another workflow, it nests on top of that."""
        return await engine.start(
            call,
            goal=goal,
            job_name=job_name,
            workflow_name=workflow_name,
            instance_id=instance_id,
            parent_session_id=parent_session_id,
        )

    async def finished_step(
        call: ToolCall,
        outputs: Annotated[
            dict[str, str | list[str]],
            Field(description="Output name to path; a list of paths for type 'files'. Optional ones may be missing"),
        ],
        notes: Annotated[str | None, Field(description="About the work done")] = None,
        quality_review_override_reason: Annotated[
            str | None, Field(description="Skips quality review: say why")
        ] = None,
        session_id: SessionId = None,
        step_id: Annotated[
            str | None,
            Field(
                description="From begin_step or concurrent_steps: makes repeated calls safe. '?' asks where you are."
            ),
        ] = None,
    ) -> FinishedStep:
        """Report a finished step: its outputs are checked and reviewed.

        Answers needs_work (fix, then call again), next_step or workflow_complete.
        """
        return await engine.finish_step(
            call, Report(outputs, notes, quality_review_override_reason, session_id, step_id)
        )

    async def abort_workflow(
        call: ToolCall,
        explanation: Annotated[str, Field(description="Why it cannot go on")],
        session_id: SessionId = None,
    ) -> AbortedWorkflow:
        """Abort (give up, cancel) a workflow that cannot be completed, and return to the one below it."""
        return await engine.abort(call, explanation=explanation, session_id=session_id)

    async def session_text(call: ToolCall, session_id: str) -> str:
        return await engine.resume_text(call, session_id)

    async def open_session_ids(call: ToolCall, _typed: str, _others: Mapping[str, str]) -> list[str]:
        return [session.session_id for session in await engine.active_sessions(call)]

    return ToolSet(
        name="core",
        resources=[
            ResourceSpec(
                "deepwork://sessions/{session_id}",
                session_text,
                name="session",
                description="What is needed to go on with a session: goal, step, instructions, outputs",
                mime_type="text/markdown",
                complete={"session_id": open_session_ids},
            )
        ],
        prompts=prompts(engine),
        instructions=INSTRUCTIONS,
        tools=[
            ToolSpec(
                "get_workflows",
                get_workflows,
                title="List workflows",
                read_only=True,
                idempotent=True,
                output=WorkflowList,
                always_load=True,
            ),
            ToolSpec(
                "start_workflow",
                start_workflow,
                title="Start a workflow",
                output=StartedWorkflow,
                always_load=True,
            ),
            ToolSpec(
                "finished_step",
                finished_step,
                title="Report a finished step",
                output=FinishedStep,
                always_load=True,
            ),
            ToolSpec(
                "abort_workflow",
                abort_workflow,
                title="Abort a workflow",
                destructive=True,
                output=AbortedWorkflow,
                always_load=True,
            ),
        ],
    )
