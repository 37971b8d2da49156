"""Prompts for people, who find them as commands of their client: start a job, and resume a session."""

from __future__ import annotations

from collections.abc import Mapping

from anyio import to_thread

from deepwork.api import Engine, Job, PromptSpec, ToolCall


def prompts(engine: Engine) -> list[PromptSpec]:
    """Bind the prompts to an engine."""

    def jobs() -> dict[str, Job]:
        return {job.name: job for _, job in engine.catalogue.list().jobs}

    async def job_names(_call: ToolCall, _typed: str, _others: Mapping[str, str]) -> list[str]:
        return sorted(await to_thread.run_sync(jobs))

    async def workflow_names(_call: ToolCall, _typed: str, others: Mapping[str, str]) -> list[str]:
        chosen = others.get("job")
        all_jobs = await to_thread.run_sync(jobs)
        flows = [
            flow.name for name, job in all_jobs.items() if chosen in (None, name) for flow in job.definition.workflows
        ]
        return sorted(set(flows))

    async def session_ids(call: ToolCall, _typed: str, _others: Mapping[str, str]) -> list[str]:
        return [session.session_id for session in await engine.active_sessions(call)]

    async def resume(call: ToolCall, session_id: str) -> str:
        return f"Go on with this workflow of deepwork.\n\n{await engine.resume_text(call, session_id)}"

    return [
        PromptSpec("start", _start, "Start a job by its name", complete={"job": job_names, "workflow": workflow_names}),
        PromptSpec("resume", resume, "Go on with a session that is open", complete={"session_id": session_ids}),
    ]


def _start(job: str, workflow: str = "", goal: str = "") -> str:
    """Return the words that have an agent start a job."""
    named = f"the workflow {workflow!r} of the job {job!r}" if workflow else f"the job {job!r}"
    which = (
        f"workflow_name={workflow!r}"
        if workflow
        else "the workflow of it that fits the goal (get_workflows lists them)"
    )
    purpose = f"The goal: {goal}" if goal else "Ask me for the goal first, if what we have said does not make it clear."
    return (
        f"Start {named} with deepwork: call start_workflow with job_name={job!r}, {which}, and the goal. "
        f"{purpose}\n"
        "Then do one step after the other as its instructions say, and report each with finished_step."
    )
