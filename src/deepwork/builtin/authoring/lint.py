"""The linter: everything that the reader of a server finds in a job, and what only an author wants to know."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, islice
from pathlib import Path

from deepwork.api import JobReading
from deepwork.builtin.authoring import wording
from deepwork.builtin.authoring.findings import JobFinding, with_ignored
from deepwork.builtin.authoring.wording import Question
from deepwork.documents.document import Document
from deepwork.documents.problems import MAX_PROBLEMS, Problem
from deepwork.errors import PathRefused
from deepwork.models.jobs import (
    FILE_NAME,
    MAX_GROUP_INSTRUCTIONS,
    MAX_INSTRUCTIONS,
    FileInput,
    JobFile,
    Review,
    Step,
)
from deepwork.paths.paths import describe, read_regular, resolve_inside
from deepwork.text import near

HUGE = 20_000
# So much of an instructions file is looked at: it is a text for an agent, and this bounds what a hostile one costs.
MAX_LINTED = 100_000
MAX_LISTED = 1000
MAX_FINDINGS = 1000
MAX_COMPARED = 100


@dataclass(frozen=True)
class LintedJob:
    """A job as the linter sees it.

    Attributes:
        unsaved: The contents of files as an editor has them, which count instead of those on the disk.
    """

    job_dir: Path
    unsaved: Mapping[Path, str] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        return self.job_dir / FILE_NAME

    @cached_property
    def reading(self) -> JobReading | Problem:
        """The reading of the file as a server does it, or the problem that prevents it."""
        unsaved = self.unsaved.get(self.file)
        try:
            content = (
                JobReading.content_of(self.job_dir) if unsaved is None else unsaved.encode("utf-8", "surrogatepass")
            )
        except PathRefused as error:
            return Problem(error.message, rule="unreadable")
        self.texts[self.file] = content.decode("utf-8", "replace")
        return JobReading.of(content, self.job_dir)

    @cached_property
    def texts(self) -> dict[Path, str]:
        """The texts of the files that were read."""
        return {}

    def read(self, name: str) -> str | Problem | None:
        """Read an instructions file; a problem if a step cannot begin with it, None if it does not exist."""
        path = self.job_dir / name
        try:
            unsaved = self.unsaved.get(path)
            text = read_regular(name, [self.job_dir], limit=MAX_INSTRUCTIONS).decode() if unsaved is None else unsaved
        except UnicodeDecodeError:
            return Problem("is not UTF-8 text")
        except FileNotFoundError:
            return None
        except (PathRefused, OSError) as error:
            return Problem(describe(error).replace("the project", "the job's folder"))
        self.texts[path] = text[:MAX_LINTED]
        return text

    def findings(self) -> list[JobFinding]:
        """Return everything that is wrong, in the order of the files; what comments ignore is marked so."""
        findings = dict.fromkeys(islice(_findings(self), MAX_FINDINGS))
        return sorted(
            with_ignored(findings, self.texts),
            key=lambda finding: (finding.file != self.file, str(finding.file), finding.line or 0),
        )


def lint(job_dir: Path) -> list[JobFinding]:
    """Return everything that is wrong with a job as it is on the disk."""
    return LintedJob(job_dir).findings()


def _findings(job: LintedJob) -> Iterator[JobFinding]:
    reading = job.reading
    if isinstance(reading, Problem):
        yield JobFinding.of(reading, job.file)
        return
    for problem in reading.refusal.problems:
        yield JobFinding.of(problem, job.file)
    if reading.refusal.more:
        more = Problem(f"and {reading.refusal.more:,} more", rule=reading.refusal.problems[-1].rule)
        yield JobFinding.of(more, job.file)
    for problem in reading.errors:
        yield JobFinding.of(problem, job.file, level="error")
    for problem in reading.warnings:
        yield JobFinding.of(problem, job.file, level="warning")
    if reading.definition is not None and reading.document is not None:
        for problems in (_structure, _criteria):
            for problem in problems(reading.definition, reading.document):
                yield JobFinding.of(problem, job.file)
        yield from _instructions(job, reading.definition, reading.document)


# What is wrong in job.yml itself


def _structure(job: JobFile, document: Document) -> Iterator[Problem]:
    if not job.workflows:
        line = document.line("workflows") if "workflows" in job.model_fields_set else document.line()
        yield Problem("the job has no workflows, so it cannot be started", line, rule="no-workflows")
    yield from _absent_inputs(job, document)
    yield from _deliveries(job, document)
    yield from _without_effect(job, document)


def _absent_inputs(job: JobFile, document: Document) -> Iterator[Problem]:
    """Yield the inputs whose source step is not in a workflow of their own step."""
    workflows = {workflow.name: {*workflow.step_ids} for workflow in job.workflows}
    for index, step in enumerate(job.steps):
        for position, item in enumerate(step.inputs):
            if not isinstance(item, FileInput):
                continue
            without = [name for name, ids in workflows.items() if step.id in ids and item.from_step not in ids]
            if without:
                text = f"step {step.id!r} reads {item.file!r} of {item.from_step!r}, which workflow {without[0]!r} "
                line = document.line("steps", index, "inputs", position)
                yield Problem(f"{text}does not have", line, rule="read-before-written")


def _deliveries(job: JobFile, document: Document) -> Iterator[Problem]:
    read = {(item.from_step, item.file) for step in job.steps for item in step.inputs if isinstance(item, FileInput)}
    last = {step_id for workflow in job.workflows for step_id in workflow.entries[-1]}
    used = {step_id for workflow in job.workflows for step_id in workflow.step_ids}
    for index, step in enumerate(job.steps):
        if not step.outputs:
            line = document.line("steps", index, "outputs")
            yield Problem(f"step {step.id!r} delivers nothing", line, rule="no-outputs")
        elif not any(output.required for output in step.outputs.values()):
            line = document.line("steps", index, "outputs")
            text = f"step {step.id!r} can be finished without any output: all of them are optional"
            yield Problem(text, line, rule="only-optional-outputs")
        reviewed = {review.run_each for review in step.reviews}
        for name in step.outputs:
            if step.id in used - last and name not in reviewed and (step.id, name) not in read:
                line = document.line("steps", index, "outputs", name)
                text = f"step {step.id!r}: nobody uses the output {name!r}: no later step reads it, no review is of it"
                yield Problem(text, line, rule="unused-output")


def _without_effect(job: JobFile, document: Document) -> Iterator[Problem]:
    for key, items, dead in (
        ("steps", job.steps, ("hooks", "stop_hooks", "exposed", "hidden", "agent")),
        ("workflows", job.workflows, ("agent",)),
    ):
        for index, item in enumerate(items):
            for name in dead:
                if name in item.model_fields_set:
                    yield Problem(f"{name!r} has no effect", document.line(key, index, name), rule="no-effect")


@dataclass(frozen=True)
class _Criterion:
    name: str
    question: Question
    target: str
    place: tuple[str | int, ...]


def _criteria(job: JobFile, document: Document) -> Iterator[Problem]:
    for index, step in enumerate(job.steps):
        criteria: list[_Criterion] = []
        for position, review in enumerate(step.reviews):
            place = ("steps", index, "reviews", position, "quality_criteria")
            for name, question in review.quality_criteria.items():
                criteria.append(_Criterion(name, Question(question), review.run_each, (*place, name)))
        for criterion in criteria:
            if criterion.question.is_unobservable:
                text = f"step {step.id!r}: criterion {criterion.name!r} asks for nothing that can be seen in the work"
                yield Problem(text, document.line(*criterion.place), rule="unobservable-criterion")
            elif [*wording.ways_around(criterion.question.text)]:
                text = f"step {step.id!r}: criterion {criterion.name!r} tells the reviewer to let work through"
                yield Problem(text, document.line(*criterion.place), rule="bypass")
        # Each is compared with all others, so very many are not.
        for first, second in combinations(criteria[:MAX_COMPARED], 2):
            for problem in _compared(step, first, second):
                yield replace(problem, line=document.line(*second.place))


def _compared(step: Step, first: _Criterion, second: _Criterion) -> Iterator[Problem]:
    is_of_same_work = first.target == second.target or "step" in (first.target, second.target)
    names = f"step {step.id!r}: criteria {first.name!r} and {second.name!r}"
    if is_of_same_work and first.question.words == second.question.words:
        yield Problem(f"{names} ask the same", rule="duplicate-criterion")
    elif is_of_same_work and (reason := first.question.contradiction(second.question)):
        yield Problem(f"{names} contradict each other: {reason}", rule="contradicting-criteria")


# What is wrong in the instructions


def _instructions(job: LintedJob, definition: JobFile, document: Document) -> Iterator[JobFinding]:
    sizes: dict[str, int] = {}
    steps_of: dict[str, list[Step]] = {}
    used = {step_id for workflow in definition.workflows for step_id in workflow.step_ids}
    reading = job.reading
    problems = () if isinstance(reading, Problem) else (*reading.errors, *reading.warnings)
    missing = {problem.line for problem in problems if problem.rule == "missing-instructions"}
    for index, step in enumerate(definition.steps):
        name = step.instructions_file
        line = document.line("steps", index, "instructions_file")
        text = job.read(name) if name not in steps_of else job.texts.get(job.job_dir / name)
        steps_of.setdefault(name, []).append(step)
        subject = f"step {step.id!r}: instructions file {name!r}"
        if isinstance(text, Problem) and line not in missing:
            unreadable = Problem(f"{subject} {text.message}", line, rule="unreadable-instructions")
            yield JobFinding.of(unreadable, job.file, level="error" if step.id in used else "warning")
        elif isinstance(text, str):
            sizes[step.id] = len(text)
            if not text.strip():
                yield JobFinding.of(Problem(f"{subject} is empty", line, rule="empty-instructions"), job.file)
            elif len(text) > HUGE:
                message = f"{subject} has {len(text):,} characters; the agent reads all of them at once"
                yield JobFinding.of(Problem(message, line, rule="huge-instructions"), job.file)
    yield from _large_groups(job, definition, document, sizes)
    names = _names(definition)
    for name, steps in steps_of.items():
        text = job.texts.get(job.job_dir / name)
        if text is not None:
            for problem in _first_of_each(_in_text(text[:MAX_LINTED], steps, names)):
                yield JobFinding.of(problem, job.job_dir / name)
    for problem in _common_info(definition, document):
        yield JobFinding.of(problem, job.file)
    yield from _unused_files(job, steps_of)


def _large_groups(
    job: LintedJob, definition: JobFile, document: Document, sizes: Mapping[str, int]
) -> Iterator[JobFinding]:
    for index, workflow in enumerate(definition.workflows):
        for position, entry in enumerate(workflow.entries):
            if len(entry) > 1 and sum(sizes.get(step_id, 0) for step_id in entry) > MAX_GROUP_INSTRUCTIONS:
                text = f"the instructions of the group of step {entry[0]!r} have more than "
                line = document.line("workflows", index, "steps", position)
                problem = Problem(
                    f"{text}{MAX_GROUP_INSTRUCTIONS:,} characters together", line, None, "huge-instructions"
                )
                yield JobFinding.of(problem, job.file, level="error")


def _names(definition: JobFile) -> frozenset[str]:
    """Return all names that instructions may use: of outputs, inputs, steps, workflows and criteria."""
    names = {definition.name, *(workflow.name for workflow in definition.workflows)}
    for step in definition.steps:
        names |= {step.id, step.instructions_file, *step.outputs}
        names |= {item.file if isinstance(item, FileInput) else item.name for item in step.inputs}
        names |= {name for review in step.reviews for name in review.quality_criteria}
    return frozenset(names)


def _in_text(text: str, steps: Sequence[Step], names: frozenset[str]) -> Iterator[Problem]:
    """Yield what is wrong in the text of an instructions file, which one or more steps have."""
    own = list(dict.fromkeys(name for step in steps for name in step.outputs))
    for line, sentence in wording.ways_around(text):
        yield Problem(f"the instructions tell to go past the server: {sentence[:200]!r}", line, rule="bypass")
    tools = {name: line for line, name in wording.called_names(text) if name not in names}
    for name, line in tools.items():
        suggestion = near(name, wording.TOOLS) if name not in wording.TOOLS else None
        if suggestion:
            message = f"the server has no tool {name!r}"
            yield Problem(message, line, (name, wording.TOOLS), "unknown-tool")
    for line, name in wording.named_outputs(text):
        if name not in names:
            yield Problem(f"the job has no output {name!r}", line, (name, own), "unknown-output-name")
    valid = {*names, *tools, *wording.TOOLS}
    for line, name in wording.quoted_names(text, valid):
        if "/" not in name and "." in name and near(name, [output for output in own if "." in output]):
            yield Problem(f"the job has no output {name!r}", line, (name, own), "unknown-output-name")


def _first_of_each(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield each message once, and not more than a reader would read."""
    firsts: dict[str, None] = {}
    for problem in problems:
        if problem.message not in firsts and len(firsts) < MAX_PROBLEMS:
            firsts[problem.message] = None
            yield problem


def _common_info(definition: JobFile, document: Document) -> Iterator[Problem]:
    """Yield the sentences of the common info, of guidance and of descriptions that tell to go past the server."""
    key = "common_job_info_provided_to_all_steps_at_runtime"
    places: list[tuple[str, int | None]] = [(getattr(definition, key), document.line(key))]
    for index, step in enumerate(definition.steps):
        for name, output in step.outputs.items():
            places.append((output.description, document.line("steps", index, "outputs", name, "description")))
        for position, review in enumerate(step.reviews):
            line = document.line("steps", index, "reviews", position, "additional_review_guidance")
            places.append((_guidance(review), line))
    for text, line in places:
        for _, sentence in wording.ways_around(text[:MAX_LINTED]):
            yield Problem(f"the job tells to go past the server: {sentence[:200]!r}", line, rule="bypass")


def _guidance(review: Review) -> str:
    return review.additional_review_guidance or ""


def _unused_files(job: LintedJob, used: Iterable[str]) -> Iterator[JobFinding]:
    """Yield Markdown files in folders of instructions that neither a step nor a text of the job names."""
    used_files = {os.path.normpath(name) for name in used}
    folders = {os.path.dirname(name) for name in used_files} - {""}
    texts = "\n".join([*job.texts.values()])
    for folder in sorted(folders):
        try:
            resolved, _ = resolve_inside(folder, [job.job_dir])
            with os.scandir(resolved) as entries:
                names = sorted(entry.name for entry in islice(entries, MAX_LISTED))
        except (PathRefused, OSError):
            continue
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".md") and path not in used_files and name not in texts:
                problem = Problem(f"{path!r} is the instructions file of no step", None, rule="unused-instructions")
                yield JobFinding.of(problem, job.job_dir / path)
