"""`*.test.yml`: conversations with a job, held with the real engine and compared with the expected replies."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepwork.api import Job, Rehearsal, Report, Step, Workspace, parse_job, project_at
from deepwork.builtin.authoring.scripted import ScriptedReviewer, rehearsed, write_file
from deepwork.documents.document import Document
from deepwork.documents.limits import MAX_BYTES
from deepwork.documents.load import read_document
from deepwork.documents.problems import DocumentError, Problem, refuse
from deepwork.errors import DeepWorkError, JobLoadError, PathRefused, ToolError
from deepwork.models.job_tests import JobTest, StepReport
from deepwork.models.jobs import PATTERNS
from deepwork.models.outputs import KINDS
from deepwork.models.sessions import Session
from deepwork.paths.paths import describe, read_regular, resolve_inside
from deepwork.text import nearest

if TYPE_CHECKING:
    from deepwork.models.replies import FinishedStep, StartedWorkflow

SUFFIX = ".test.yml"


@dataclass
class Coverage:
    """What of a job tests have reached: sets of names, each with what there is of it."""

    steps: tuple[set[Any], set[Any]] = field(default_factory=lambda: (set(), set()))
    reviews: tuple[set[Any], set[Any]] = field(default_factory=lambda: (set(), set()))
    criteria: tuple[set[Any], set[Any]] = field(default_factory=lambda: (set(), set()))
    members: tuple[set[Any], set[Any]] = field(default_factory=lambda: (set(), set()))

    def add_job(self, job: Job) -> None:
        """Count what there is in a job."""
        workflows = job.definition.workflows
        used = {step_id for workflow in workflows for step_id in workflow.step_ids}
        self.steps[1].update(used)
        self.members[1].update(
            (workflow.name, step_id) for workflow in workflows for entry in workflow.entries for step_id in entry[1:]
        )
        for step in job.definition.steps:
            for review in step.reviews if step.id in used else ():
                self.reviews[1].add((step.id, review.run_each))
                self.criteria[1].update((step.id, review.run_each, name) for name in review.quality_criteria)

    def __str__(self) -> str:
        counts = (
            f"{kind} {len(reached & possible)} of {len(possible)}" for kind, (reached, possible) in vars(self).items()
        )
        return ", ".join(counts)


@dataclass
class JobTestResult:
    """What came of one test file: no problems if it is green."""

    file: Path
    name: str = ""
    problems: list[Problem] = field(default_factory=list)
    conversation: list[str] = field(default_factory=list)
    seconds: float = 0.0
    is_broken: bool = False

    @property
    def lines(self) -> list[str]:
        """The problems as `file:line: message`."""
        return [problem.at(self.file) for problem in self.problems]


class JobTestBench:
    """Runs test files; parses each job once.

    Attributes:
        coverage: What was reached, by job.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._jobs: dict[Path, Job | JobLoadError] = {}
        self.coverage: dict[str, Coverage] = {}

    async def run(self, file: Path) -> JobTestResult:
        """Run one test. Whatever is wrong with it or its job is a problem of the result."""
        result, begin = JobTestResult(file), time.perf_counter()
        try:
            document, test = read_test(file)
            result.name = f"{test.job}/{test.workflow}" if test.workflow else test.job
            await self.run_test(test, document, self._job(test, document, file), result)
        except DocumentError as error:
            result.problems, result.is_broken = error.problems, True
        except (PathRefused, OSError) as error:
            result.problems, result.is_broken = [Problem(f"the file {describe(error)}")], True
        result.seconds = time.perf_counter() - begin
        return result

    async def run_test(self, test: JobTest, document: Document, job: Job, result: JobTestResult) -> None:
        """Hold the conversation of a test with a job, and note what is not as expected."""
        coverage = self.coverage.setdefault(job.name, Coverage())
        coverage.add_job(job)
        problems = [*unknown_names(test, document, job)]
        if problems:
            result.problems += problems
            return
        reviewer = ScriptedReviewer()
        async with rehearsed(job, reviewer) as rehearsal:
            conversation = Conversation(test, document, job, rehearsal, reviewer, self._root, result)
            await conversation.hold()
        coverage.reviews[0].update(reviewer.asked)
        coverage.steps[0].update(conversation.reported)
        coverage.members[0].update((conversation.workflow, step_id) for step_id in conversation.reported)
        for report in test.steps:
            for review, criteria in report.verdicts.items():
                coverage.criteria[0].update((report.step, review, name) for name in criteria)

    def _job(self, test: JobTest, document: Document, file: Path) -> Job:
        """Find the job of a test: in the folder of its file, or in one above it, else among those of the project.

        Raises:
            DocumentError: There is no such job, or it cannot be used.
        """
        beside = [folder for folder in file.absolute().parents[:2] if (folder / "job.yml").exists()]
        job_dir = beside[0] if beside else self._root / ".deepwork" / "jobs" / test.job
        if job_dir not in self._jobs:
            self._jobs[job_dir] = parse_job(job_dir)
        job, line = self._jobs[job_dir], document.line("job")
        if isinstance(job, JobLoadError):
            raise DocumentError(Problem(f"the job cannot be used: {job.message}", line))
        if job.name != test.job:
            raise DocumentError(Problem(f"the job of this folder is named {job.name!r}, not {test.job!r}", line))
        return job


def read_test(file: Path) -> tuple[Document, JobTest]:
    """Read a test file.

    Raises:
        DocumentError: What is wrong with it.
        PathRefused: It is not a regular file.
        OSError: It cannot be read.
    """
    return parsed_test(read_regular(file.name, [file.parent], limit=MAX_BYTES))


def parsed_test(content: bytes) -> tuple[Document, JobTest]:
    """Read the content of a test file.

    Raises:
        DocumentError: What is wrong with it.
    """
    document = read_document(content)
    test = document.validate(JobTest, patterns=PATTERNS)
    refuse(_paths_outside(test, document))
    return document, test


def _paths_outside(test: JobTest, document: Document) -> Iterator[Problem]:
    """Yield the paths that leave the folder of the test, or lead to the state of the server in it."""
    places: list[tuple[str, tuple[str | int, ...]]] = [(path, ("files", path)) for path in test.files]
    for index, report in enumerate(test.steps):
        for name, files in report.outputs.items():
            places += [(path, ("steps", index, "outputs", name, path)) for path in files]
    for path, place in places:
        normal = os.path.normpath(path)
        try:
            resolve_inside(path, [Path("/nowhere/folder")])
        except PathRefused as error:
            yield Problem(
                f"path {path!r} {error.message.replace('the project', 'the folder of the test')}", document.line(*place)
            )
            continue
        if os.path.isabs(path) or normal.split("/")[0] in (".", ".deepwork"):
            yield Problem(f"path {path!r} is not one of the folder of the test", document.line(*place))


def unknown_names(test: JobTest, document: Document, job: Job) -> Iterator[Problem]:
    """Yield the names of workflows, steps, reviews and criteria that the job does not have."""
    workflows = {workflow.name: workflow for workflow in job.definition.workflows}
    if test.workflow is not None and test.workflow not in workflows:
        text = f"job {job.name!r} has no workflow {test.workflow!r}{nearest(test.workflow, [*workflows])}"
        yield Problem(text, document.line("workflow"))
    elif test.workflow is None and len(workflows) != 1:
        yield Problem(f"job {job.name!r} has {len(workflows)} workflows: name one", document.line("job"))
    steps = {step.id: step for step in job.definition.steps}
    for index, report in enumerate(test.steps):
        if report.step not in steps:
            text = f"job {job.name!r} has no step {report.step!r}{nearest(report.step, [*steps])}"
            yield Problem(text, document.line("steps", index, "step"))
            continue
        criteria = criteria_of(steps[report.step])
        for review, verdicts in report.verdicts.items():
            line = document.line("steps", index, "verdicts", review)
            if review not in criteria:
                yield Problem(f"step {report.step!r} has no review {review!r}{nearest(review, [*criteria])}", line)
                continue
            for name in verdicts:
                if name not in criteria[review]:
                    text = f"review {review!r} of step {report.step!r} has no criterion {name!r}"
                    yield Problem(
                        text + nearest(name, [*criteria[review]]),
                        document.line("steps", index, "verdicts", review, name),
                    )


def criteria_of(step: Step) -> dict[str, dict[str, str]]:
    """Return the criteria of a step by their reviews."""
    criteria: dict[str, dict[str, str]] = {}
    for review in step.reviews:
        criteria.setdefault(review.run_each, {}).update(review.quality_criteria)
    return criteria


class Conversation:
    """One test while it runs.

    Attributes:
        workflow: The workflow that is played.
        reported: The steps whose reports were accepted.
    """

    def __init__(
        self,
        test: JobTest,
        document: Document,
        job: Job,
        rehearsal: Rehearsal,
        reviewer: ScriptedReviewer,
        root: Path,
        result: JobTestResult,
    ) -> None:
        self._test, self._document, self._job = test, document, job
        self._rehearsal, self._reviewer, self._root, self._result = rehearsal, reviewer, root, result
        self._steps = {step.id: step for step in job.definition.steps}
        self.workflow = test.workflow or job.definition.workflows[0].name
        self.reported: set[str] = set()
        self._last_status: str | None = None

    async def hold(self) -> None:
        """Hold the conversation, and compare every reply."""
        folder = self._rehearsal.workspace.root
        try:
            for path, text in self._test.files.items():
                write_file(folder, path, text)
            started = await self._rehearsal.start(self.workflow, f"test {self._job.name}")
        except (ToolError, OSError) as error:
            self._fail(f"the workflow cannot be started: {_words(error)}", "job")
            return
        self._note(f"start_workflow(job_name={self._job.name!r}, workflow_name={self.workflow!r})", started)
        self._compare_texts(("start",), self._test.start, started)
        for index, report in enumerate(self._test.steps):
            await self._report(index, report)
        await self._compare_end()

    async def _report(self, index: int, report: StepReport) -> None:
        gate = None
        outputs = {name: self._value(report.step, name, [*files]) for name, files in report.outputs.items()}
        self._reviewer.verdicts = report.verdicts
        try:
            for files in report.outputs.values():
                for path, text in files.items():
                    if text is not None:
                        write_file(self._rehearsal.workspace.root, path, text)
            if report.gates == "run" and self._steps[report.step].reviews:
                gate = await real_gate(self._root, self._job.name, self._steps[report.step], self._rehearsal.workspace)
        except (DeepWorkError, OSError) as error:
            self._fail(
                f"step {report.step!r}: {_words(error)}",
                "steps",
                index,
                "gates" if report.gates == "run" else "outputs",
            )
            return
        reply: FinishedStep | ToolError
        try:
            reply = await self._rehearsal.finish(Report(outputs=outputs, notes=report.notes, step_id=report.step), gate)
            self._last_status = str(reply.status)
            if self._last_status != "needs_work":
                self.reported.add(report.step)
        except ToolError as error:
            reply, self._last_status = error, "refused"
        self._note(f"finished_step(step_id={report.step!r}, outputs={json.dumps(outputs)})", reply)
        self._compare(index, report, reply)

    def _value(self, step_id: str, name: str, paths: list[str]) -> str | list[str]:
        """Return what the agent reports for an output: of the form that its kind has, where the files fit it."""
        output = self._steps[step_id].outputs.get(name)
        is_list = output is not None and KINDS[output.type].one_by_one
        return paths[0] if len(paths) == 1 and not is_list else paths

    def _compare(self, index: int, report: StepReport, reply: FinishedStep | ToolError) -> None:
        place, expected = ("steps", index, "expect"), report.expect
        status = "refused" if isinstance(reply, ToolError) else str(reply.status)
        subject = f"step {report.step!r}"
        expected_status = expected.status or (
            "refused" if expected.refused else "needs_work" if expected.feedback else None
        )
        is_told_to_fail = any(
            verdict != "pass" for of_review in report.verdicts.values() for verdict in of_review.values()
        )
        if expected_status is None and (status == "refused" or (status == "needs_work" and not is_told_to_fail)):
            self._fail(f"{subject}: it is not accepted: {_what(reply)}", "steps", index, "step")
            return
        if (
            expected_status is not None
            and expected_status != status
            and not (expected.status is None and expected_status == "needs_work")
        ):
            self._fail(
                f"{subject}: the status is {status!r}, not {expected_status!r}: {_what(reply)}", *place, "status"
            )
            return
        if isinstance(reply, ToolError):
            self._contains(subject, "the refusal", expected.refused, _words(reply), *place, "refused")
            return
        self._contains(subject, "the feedback", expected.feedback, reply.feedback or "", *place, "feedback")
        self._compare_texts(place, expected, reply)

    def _compare_texts(
        self, place: tuple[str | int, ...], expected: Any, reply: StartedWorkflow | FinishedStep
    ) -> None:
        subject = "the start" if place == ("start",) else f"step {self._test.steps[int(place[1])].step!r}"
        self._contains(subject, "what the agent reads", expected.reads, reply_text(reply), *place, "reads")
        self._contains(
            subject, "the text of the notices", expected.notices, "\n".join(reply.notices), *place, "notices"
        )

    def _contains(self, subject: str, what: str, texts: Iterable[str], whole: str, *place: str | int) -> None:
        normal = " ".join(whole.split())
        for number, text in enumerate(texts):
            if " ".join(text.split()) not in normal:
                self._fail(f"{subject}: {what} does not have {text!r}", *place, number)

    async def _compare_end(self) -> None:
        expected, session = self._test.expect, await self._rehearsal.session()
        if expected.status is not None and expected.status != self._last_status:
            self._fail(f"the last status is {self._last_status!r}, not {expected.status!r}", "expect", "status")
        steps = completed_steps(session)
        if expected.steps is not None and expected.steps != steps:
            self._fail(f"the completed steps are {steps}, not {expected.steps}", "expect", "steps")
        outputs = {name: value for step_id in steps for name, value in session.step_progress[step_id].outputs.items()}
        if expected.outputs is not None and expected.outputs != outputs:
            self._fail(
                f"the outputs are {json.dumps(outputs)}, not {json.dumps(expected.outputs)}", "expect", "outputs"
            )

    def _fail(self, message: str, *place: str | int) -> None:
        self._result.problems.append(Problem(message, self._document.line(*place)))

    def _note(self, call: str, reply: StartedWorkflow | FinishedStep | ToolError) -> None:
        text = f"Error: {_words(reply)}" if isinstance(reply, ToolError) else reply.model_dump_json(indent=2)
        self._result.conversation += [f"> {call}", text]


async def real_gate(root: Path, job_name: str, step: Step, workspace: Workspace) -> Any:
    """Make the gate of the configuration for work in another folder.

    Raises:
        DeepWorkError: A review of the step is not judged by a command that may run.
    """
    project = project_at(root)
    gate = project.gate(workspace=workspace)
    judges = [(run_each, judge) for run_each, several in gate.reviewers(job_name, step).items() for judge in several]
    for run_each, reviewer in judges:
        if reviewer.name not in project.review_commands():
            text = f"`gates: run` runs commands, but the review of {run_each!r} is judged by {reviewer.name!r}"
            raise DeepWorkError(text, hint="Name a command in quality_gate.runner or quality_gate.runners.")
        if error := await reviewer.runner.unavailable(root):
            raise error
    return gate


def completed_steps(session: Session) -> list[str]:
    """Return the completed steps in their order; the first of a group after its other members."""
    entries = session.pinned.workflow.entries
    primaries = {entry[0] for entry in entries}
    completed = [progress for progress in session.step_progress.values() if progress.completed_at]
    order = {step_id: number for number, entry in enumerate(entries) for step_id in entry}
    completed.sort(key=lambda step: (order.get(step.step_id, 0), str(step.completed_at), step.step_id in primaries))
    return [step.step_id for step in completed]


def reply_text(reply: StartedWorkflow | FinishedStep) -> str:
    """Return everything that an agent reads in a reply: its texts as they are, and the whole as JSON."""
    data = reply.model_dump(mode="json")
    return "\n".join([*_texts(data), json.dumps(data, ensure_ascii=False)])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(item)


def _words(error: Exception) -> str:
    if isinstance(error, DeepWorkError):
        return f"{error.message}. {error.hint}" if error.hint else error.message
    return str(error)


def _what(reply: FinishedStep | ToolError) -> str:
    return _words(reply) if isinstance(reply, ToolError) else str(reply.feedback or reply.status)


def files_in(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the test files in job folders, and in a folder `tests` of each."""
    for folder in folders:
        for place in (folder, folder / "tests"):
            if place.is_dir():
                yield from sorted(file for file in place.iterdir() if file.name.endswith(SUFFIX))
