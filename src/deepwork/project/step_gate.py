"""The reviews of one step, held on files without a session, for commands."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from deepwork.engine.outputs import check_outputs
from deepwork.errors import OutputError, StateError, UnknownJob
from deepwork.gate.work import Work
from deepwork.jobs.lookup import choose_job
from deepwork.models.outputs import Outputs
from deepwork.models.sessions import Session

if TYPE_CHECKING:
    from deepwork.gate.judging import Judgement
    from deepwork.ports.proofs import Trial
    from deepwork.project.project import Project


class StepGate:
    """The gate of one step.

    Raises:
        UnknownJob: There is no such job.
        StateError: The job has no such step.
    """

    def __init__(self, project: Project, job_name: str, step_id: str) -> None:
        self._project = project
        try:
            self.job = choose_job(project.catalogue, job_name)
        except UnknownJob as error:  # here a person reads it, who has commands
            raise UnknownJob(
                error.message,
                hint="`deepwork jobs list` shows all jobs, `deepwork jobs check` what is wrong with them.",
            ) from None
        steps = {step.id: step for step in self.job.definition.steps}
        if step_id not in steps:
            raise StateError(f"job {self.job.name!r} has no step {step_id!r}; it has: {', '.join(steps)}")
        self.step = steps[step_id]

    def notices(self) -> list[str]:
        """Return what in the configuration has no effect."""
        return self._project.notices()

    def named(self, files: Sequence[str]) -> Outputs:
        """Sort files, each as PATH or OUTPUT=PATH, by the outputs to which they belong.

        Raises:
            OutputError: A file belongs to none, or several to an output that is one file.
        """
        paths_of: dict[str, list[str]] = {}
        for file in files:
            name, separator, path = file.partition("=")
            if not separator or name not in self.step.outputs:
                if len(self.step.outputs) != 1:
                    names = ", ".join(self.step.outputs)
                    raise OutputError(f"{file!r} names no output; give OUTPUT=PATH with one of: {names}")
                name, path = next(iter(self.step.outputs)), file
            paths_of.setdefault(name, []).append(path)
        outputs: dict[str, str | list[str]] = {}
        for name, paths in paths_of.items():
            if self.step.outputs[name].type == "file" and len(paths) > 1:
                raise OutputError(f"output {name!r} is one file, but {len(paths)} were given")
            outputs[name] = paths[0] if self.step.outputs[name].type == "file" else paths
        return outputs

    def on_disk(self, outputs: Outputs) -> Outputs:
        """Return outputs as they are reported, once their files are found.

        Raises:
            OutputError: They are not what the step declares.
        """
        owner = f"step {self.step.id!r} of {self.job.name}"
        return check_outputs(outputs, self.step.outputs, self._project.workspace, owner=owner).outputs

    def judged(
        self,
        outputs: Outputs,
        purpose: str,
        *,
        runner: str | None = None,
        notes: str | None = None,
        session: Session | None = None,
    ) -> AbstractAsyncContextManager[tuple[Judgement, Sequence[Trial]]]:
        """Have the outputs judged as they are, and yield what came of it, and the reviewers that have judged.

        Reviewers are told the purpose in the place of a workflow. The runner judges what the configuration sends to no
        other. If a session has reported the work, its other outputs are the inputs.
        """
        gate = self._project.gate(runner, proves=False)
        work = Work(
            *(session.session_id if session else purpose, self.job.name, purpose, self.step, outputs),
            outputs_by_step=session.outputs_by_step if session else {},
            notes=notes,
            reviewers=gate.reviewers(self.job.name, self.step),
        )
        return gate.tried(work)
