"""`deepwork jobs try`: play the agent of a job against the real engine, and read what it would read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import click

from deepwork.api import Job, Rehearsal, Report, Workflow
from deepwork.builtin.authoring.job_tests import criteria_of
from deepwork.builtin.authoring.places import load_job, project_folder
from deepwork.builtin.authoring.scripted import ScriptedReviewer, rehearsed, write_file
from deepwork.commands.options import path_option
from deepwork.commands.terminal import Styled, say, say_error, say_text
from deepwork.errors import PathRefused, ToolError, UnknownWorkflow
from deepwork.models.outputs import KINDS
from deepwork.models.replies import BeginStep, ExpectedOutput, FinishedStep, StartedWorkflow
from deepwork.paths.paths import resolve_inside
from deepwork.text import nearest

CHARACTERS_PER_TOKEN = 4
# A step that fails for ever would otherwise be reported for ever.
MAX_REPORTS = 1000


@click.command("try")
@click.argument("job_name", metavar="JOB")
@click.argument("workflow_name", metavar="[WORKFLOW]", required=False)
@path_option
@click.option("--yes", is_flag=True, help="Ask nothing: every review passes. So it is without a terminal.")
def try_job(job_name: str, workflow_name: str | None, root: str, yes: bool) -> int:
    """Play the agent of a job: read what it reads, step by step, and say how the reviews end.

    The job runs on the real engine in a folder that is thrown away, with placeholders as outputs. No model is asked,
    and no command of the project runs.
    """
    job = load_job(Path(job_name), project_folder(root))
    workflow = chosen_workflow(job, workflow_name)
    play = Play(job, workflow, is_asking=not yes and sys.stdin.isatty())
    return anyio.run(play.run)


def chosen_workflow(job: Job, name: str | None) -> Workflow:
    """Return the workflow of that name, or the first; with several it tells which.

    Raises:
        UnknownWorkflow: The job has no such workflow.
    """
    workflows = {workflow.name: workflow for workflow in job.definition.workflows}
    if name is None and workflows:
        first, *others = workflows
        if others:
            say(f"Job {job.name!r} has {len(workflows)} workflows: {', '.join(workflows)}. Taking {first!r}.")
        return workflows[first]
    if name not in workflows:
        raise UnknownWorkflow(f"job {job.name!r} has no workflow {name or ''!r}{nearest(name or '', [*workflows])}")
    return workflows[name]


class Play:
    """One walk through a workflow."""

    def __init__(self, job: Job, workflow: Workflow, *, is_asking: bool) -> None:
        self._job, self._workflow, self._is_asking = job, workflow, is_asking
        self._steps = {step.id: step for step in job.definition.steps}
        self._reviewer = ScriptedReviewer()
        self._tokens: list[int] = []

    async def run(self) -> int:
        """Walk to the end, or as far as the user or the job lets it go."""
        async with rehearsed(self._job, self._reviewer) as rehearsal:
            try:
                started = await rehearsal.start(self._workflow.name, f"try {self._job.name}")
                self._show(f"start_workflow {self._job.name}/{self._workflow.name}", started)
                return await self._walk(rehearsal, started.begin_step)
            except ToolError as error:
                say_error(error)
                return 1
            finally:
                total = f"{len(self._tokens)} replies, about {sum(self._tokens):,} tokens"
                say(f"{total}. Nothing is left behind.", err=True)

    async def _walk(self, rehearsal: Rehearsal, begin: BeginStep) -> int:
        reported: set[str] = set()
        for _ in range(MAX_REPORTS):
            members = [member for member in begin.concurrent_steps if member.step_id not in reported]
            step_id = members[0].step_id if members else begin.step_id
            expected = members[0].step_expected_outputs if members else begin.step_expected_outputs
            action = self._ask(step_id)
            if action == "quit":
                return 0
            if action == "reopen":
                begin = await self._reopen(rehearsal) or begin
                reported.clear()
                continue
            reply = await self._report(rehearsal, step_id, expected, is_override=action == "override")
            if reply is None:
                if not self._is_asking:
                    return 1
                continue
            if reply.status == "workflow_complete":
                return 0
            if reply.status == "next_step":
                reported.add(step_id)
                begin = reply.begin_step or begin
        return 1

    async def _report(
        self, rehearsal: Rehearsal, step_id: str, expected: Sequence[ExpectedOutput], *, is_override: bool
    ) -> FinishedStep | None:
        """Make the outputs and report the step; None if the call is refused."""
        override = str(click.prompt("Reason", default="tried by hand")) if is_override else None
        outputs = dict(_placeholders(rehearsal.workspace.root, expected))
        try:
            reply = await rehearsal.finish(Report(outputs=outputs, step_id=step_id, override=override))
        except ToolError as error:
            say_error(error)
            return None
        self._show(f"finished_step {step_id}", reply)
        return reply

    async def _reopen(self, rehearsal: Rehearsal) -> BeginStep | None:
        """Have a completed step begun again, and show what the agent is told then."""
        session = await rehearsal.session()
        completed = [step.step_id for step in session.step_progress.values() if step.completed_at]
        if not completed:
            say("No step is completed yet.")
            return None
        step_id = str(click.prompt("Step", type=click.Choice(completed), default=completed[-1]))
        try:
            await rehearsal.go_back(step_id, str(click.prompt("Reason", default="tried by hand")))
            reply = await rehearsal.finish(Report(outputs={}, step_id="?"))
        except ToolError as error:
            say_error(error)
            return None
        self._show('finished_step "?"', reply)
        return reply.begin_step

    def _ask(self, step_id: str) -> str:
        """Ask what happens to a step, and tell the reviewer."""
        self._reviewer.verdicts = {}
        if not self._is_asking:
            return "pass"
        criteria = [
            (run_each, name) for run_each, of_review in criteria_of(self._steps[step_id]).items() for name in of_review
        ]
        actions = ["pass", *(["fail", "override"] * bool(criteria)), "reopen", "quit"]
        action = str(click.prompt(f"Step {step_id}", type=click.Choice(actions), default="pass"))
        if action == "fail":
            for number, (run_each, name) in enumerate(criteria, 1):
                say(f"  {number}. {run_each}: {name}")
            chosen = click.prompt("Criterion", type=click.IntRange(1, len(criteria)), default=1)
            run_each, name = criteria[chosen - 1]
            self._reviewer.verdicts = {run_each: {name: "fail"}}
        return action

    def _show(self, call: str, reply: StartedWorkflow | FinishedStep) -> None:
        tokens = len(reply.model_dump_json()) // CHARACTERS_PER_TOKEN
        self._tokens.append(tokens)
        say(Styled(f"{call}  (about {tokens:,} tokens)", bold=True))
        say_text(reply.model_dump_json(indent=2), "  ")


def _placeholders(folder: Path, expected: Sequence[ExpectedOutput]) -> Iterator[tuple[str, str | list[str]]]:
    """Write a placeholder for each output, and yield the output with its path or paths."""
    for number, output in enumerate(expected):
        path = output.name if _is_plain_path(folder, output.name) else f"output-{number + 1}.md"
        write_file(folder, path, f"Placeholder: {output.description}\n")
        yield output.name, KINDS[output.type].with_files([path])


def _is_plain_path(folder: Path, name: str) -> bool:
    """True if a file of this name can lie in the folder itself."""
    try:
        resolve_inside(name, [folder])
    except PathRefused:
        return False
    return bool(re.fullmatch(r"[\w][\w .-]{0,99}", name)) and os.path.normpath(name) == name
