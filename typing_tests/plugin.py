"""What a plugin's author writes against `deepwork.api`, and mistakes that the types have to find. Never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, assert_type

from pydantic import BaseModel

from deepwork import __version__, hookimpl
from deepwork.api import (
    Check,
    Engine,
    Finding,
    HandedBack,
    Job,
    JobSource,
    Level,
    NeedsTrust,
    NeedsWork,
    Passed,
    PluginContext,
    ReviewRequest,
    ReviewRunner,
    ReviewRunnerSpec,
    Session,
    SessionStatus,
    SessionSummary,
    StateStore,
    StateStoreSpec,
    ToolCall,
    ToolSet,
    ToolSpec,
    Verdict,
    Workspace,
    parse_job,
    run_program,
)
from deepwork.errors import JobLoadError
from deepwork.models.replies import WorkflowList

assert_type(__version__, str)


class AcmeStore(StateStore):
    def __init__(self, root: Path) -> None:
        self.root = root

    async def load(self, session_id: str) -> Session | None:
        return None

    async def save(self, session: Session, *, expected: int | None) -> int:
        return (expected or 0) + 1

    async def find(
        self, *, status: SessionStatus | None = None, before: str | None = None, limit: int = 10
    ) -> list[SessionSummary]:
        return []


class ForgetsExpected(AcmeStore):
    async def save(self, session: Session) -> int:  # type: ignore[override]
        return 1


class Unfinished(StateStore):
    pass


class AcmeRunner(ReviewRunner):
    async def review(self, request: ReviewRequest) -> Verdict:
        assert_type(request.project_root, Path)
        if not request.tasks:
            return Passed()
        return NeedsWork("again") if request.notes else HandedBack("look at it")


class SyncRunner(ReviewRunner):
    def review(self, request: ReviewRequest) -> Verdict:  # type: ignore[override]
        return Passed()


class SaysYes(ReviewRunner):
    async def review(self, request: ReviewRequest) -> bool:  # type: ignore[override]
        return True


class AcmeJobs(JobSource):
    name = "acme"

    def load(self) -> Iterable[Job | JobLoadError]:
        item = parse_job(Path("job.yml"))
        assert_type(item, Job | JobLoadError)
        yield item


class AcmeSettings(BaseModel):
    program: Annotated[str, NeedsTrust()] = "acme"


class Client:
    def ask(self) -> str:
        return ""


@asynccontextmanager
async def open_client() -> AsyncIterator[Client]:
    yield Client()


async def shares(context: PluginContext) -> None:
    assert_type(await context.shared("acme", open_client), Client)
    await context.shared("acme", Client)  # type: ignore[arg-type]
    await run_program(["true"])  # type: ignore[call-arg]


@hookimpl
def deepwork_state_stores(context: PluginContext) -> Iterator[StateStoreSpec]:
    assert_type(context.settings(AcmeSettings), AcmeSettings)
    assert_type(context.project_root, Path)
    yield StateStoreSpec(name="acme", open=lambda workspace: AcmeStore(workspace.root))
    yield StateStoreSpec(name="acme", open=Unfinished)  # type: ignore[arg-type]
    yield StateStoreSpec("acme", AcmeStore)  # type: ignore[call-arg, arg-type]
    yield StateStoreSpec(name="acme", open=AcmeRunner)  # type: ignore[arg-type]


@hookimpl
def deepwork_review_runners() -> Iterator[ReviewRunnerSpec]:
    yield ReviewRunnerSpec(name="acme", create=AcmeRunner, max_inline_files=5)
    yield ReviewRunnerSpec(name="acme", create=AcmeRunner())  # type: ignore[arg-type, call-arg]


@hookimpl
def deepwork_tool_sets(engine: Engine) -> Iterator[ToolSet]:
    def jobs(call: ToolCall) -> WorkflowList:
        """List the jobs."""
        assert_type(call.principal, str)
        return engine.list_workflows(ToolCall())

    tool = ToolSpec("jobs", jobs, title="Jobs", read_only=True, output=WorkflowList)
    yield ToolSet(name="acme", tools=[tool])
    yield ToolSet(name="acme", tools=[ToolSpec("jobs", jobs, title="Jobs", output="xml")])  # type: ignore[arg-type]
    tool.name = "other"  # type: ignore[misc]


@hookimpl
def deepwork_checks() -> Iterator[Check]:
    yield Check("acme", lambda: [Finding(Level.OK, "well")])
    yield Check("acme", lambda: [Finding("ok", "well")])  # type: ignore[arg-type]
    yield Check("acme", lambda: "well")  # type: ignore[arg-type, return-value]


def paths(workspace: Workspace, session: Session) -> None:
    assert_type(workspace.state_dir, Path)
    assert_type(session.summary(), SessionSummary)
    session.goal = "another"  # type: ignore[misc]
