"""A job on the real engine, in a folder of its own and with a store that forgets: nothing of it reaches a project."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from deepwork.engine.engine import Engine
from deepwork.engine.interventions import Interventions
from deepwork.engine.reports import Report
from deepwork.gate.gate import QualityGate
from deepwork.gate.work import Reviewer, Routing
from deepwork.jobs.catalogue import Catalogue
from deepwork.models.jobs import Job
from deepwork.models.replies import FinishedStep, StartedWorkflow
from deepwork.models.sessions import Session
from deepwork.paths.workspace import Workspace
from deepwork.ports.call import ToolCall
from deepwork.ports.inbox import Answerer
from deepwork.ports.job_source import JobSource
from deepwork.ports.records import ReviewRunnerSpec, StateStoreSpec
from deepwork.sessions.manager import StateManager
from deepwork.sessions.memory_store import MemoryStore

# Who plays the agent plays the person too.
PLAYER = Answerer(user="rehearsal", terminal="rehearsal", process=())


class _OneJob(JobSource):
    """The job that is rehearsed."""

    name = "rehearsal"

    def __init__(self, job: Job) -> None:
        self._job = job

    def load(self) -> Iterator[Job]:
        yield self._job


class Rehearsal:
    """One session of a job.

    Args:
        job: The job.
        folder: An empty folder, which stands for the project.
        reviewer: Who judges, unless another gate is named.
    """

    def __init__(self, job: Job, folder: Path, reviewer: ReviewRunnerSpec) -> None:
        self._job = job
        self._call = ToolCall()
        self.workspace = Workspace(folder)
        store = StateStoreSpec(name="memory", open=lambda _: MemoryStore(), persists=False)
        self._sessions = StateManager(store, self.workspace)
        self._gate = QualityGate(Routing(Reviewer(reviewer)), self.workspace)
        self._engine = Engine(catalogue=Catalogue([_OneJob(job)]), sessions=self._sessions, gate=self._gate)
        self._session_id = ""

    async def start(self, workflow_name: str, goal: str) -> StartedWorkflow:
        """Start a workflow of the job.

        Raises:
            ToolError: It cannot be started.
        """
        reply = await self._engine.start(self._call, goal=goal, job_name=self._job.name, workflow_name=workflow_name)
        self._session_id = reply.begin_step.session_id
        return reply

    async def finish(self, report: Report, gate: QualityGate | None = None) -> FinishedStep:
        """Report a step.

        Args:
            report: What is reported; the session need not be named.
            gate: Who judges this report instead of the reviewer.

        Raises:
            ToolError: The call is refused.
        """
        self._engine.gate = gate or self._gate
        return await self._engine.finish_step(self._call, replace(report, session_id=self._session_id))

    async def go_back(self, step_id: str, reason: str) -> None:
        """Have a step begun again, as a person does.

        Raises:
            StateError: There is no such step, or it was not begun yet.
        """
        changes = Interventions(self._sessions, lambda session: session)
        await changes.go_back(await self.session(), step_id, reason, PLAYER)

    async def session(self) -> Session:
        """Read the session as it is stored."""
        return await self._sessions.reload(self._session_id)

    async def close(self) -> None:
        """Close the store."""
        await self._engine.close()
