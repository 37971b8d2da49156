"""A job source, a store and a runner."""

from __future__ import annotations

from pathlib import Path

from deepwork.api import (
    HandedBack,
    Job,
    JobFile,
    JobSource,
    ReviewRunner,
    StateStore,
    Step,
    StepOutput,
    Workflow,
)
from deepwork.errors import StaleSession


class AcmeJobs(JobSource):
    name = "acme"
    rank = 70

    def load(self):
        folder = Path(__file__).parent / "job"
        step = Step(
            id="only",
            name="Only",
            description="The only step",
            instructions_file="only.md",
            outputs={"out": StepOutput(type="file", description="A file", required=True)},
            reviews=[],
        )
        definition = JobFile(
            name="acme_job",
            version="1.0.0",
            summary="A job of Acme",
            common_job_info_provided_to_all_steps_at_runtime="About Acme",
            steps=[step],
            workflows=[Workflow(name="main", summary="Does it", steps=["only"])],
        )
        yield Job(definition=definition, job_dir=folder, description="Made by a plugin")


class AcmeStore(StateStore):
    """Keeps sessions in memory, and notes in a file of the project when it is opened and closed."""

    def __init__(self, workspace):
        self._log = workspace.root / "acme-store.log"
        self._sessions = {}

    async def load(self, session_id):
        return self._sessions.get(session_id)

    async def save(self, session, *, expected):
        current = self._sessions.get(session.session_id)
        if (current.revision if current else None) != expected:
            raise StaleSession("changed meanwhile")
        revision = (expected or 0) + 1
        self._sessions[session.session_id] = session.model_copy(update={"revision": revision})
        return revision

    async def find(self, *, status=None, before=None, limit=10):
        summaries = (session.summary() for session in self._sessions.values())
        return [summary for summary in summaries if status in (None, summary.status)][:limit]

    async def __aenter__(self):
        self._note("opened")
        return self

    async def __aexit__(self, kind, error, trace):
        self._note("closed")

    def _note(self, what):
        with self._log.open("a") as log:
            log.write(f"{what}\n")


class AcmeRunner(ReviewRunner):
    async def review(self, request):
        return HandedBack(f"Acme wants to see {request.step_id!r} again")
