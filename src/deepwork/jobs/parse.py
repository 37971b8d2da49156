"""From the bytes of a `job.yml` to a `Job`, or to everything that is wrong with it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import chain, islice
from pathlib import Path

from deepwork.documents.document import Document
from deepwork.documents.limits import MAX_BYTES
from deepwork.documents.load import read_document
from deepwork.documents.problems import MAX_PROBLEMS, DocumentError, Problem, refuse
from deepwork.errors import JobLoadError, PathRefused
from deepwork.models.jobs import FILE_NAME, PATTERNS, FileInput, Job, JobFile, Step
from deepwork.paths.paths import describe, read_regular, resolve_inside
from deepwork.text import visible

# Keys that only the later job format has at the top.
LATER_KEYS = ("step_arguments",)


@dataclass(frozen=True)
class JobReading:
    """The content of a job file: its definition, or why it cannot be used, and what else is wrong.

    Attributes:
        definition: None if the file cannot be used.
        document: None if the file is not YAML.
        refusal: Why the file cannot be used; without problems if it can.
        errors: What makes a step fail when it begins.
        warnings: What is probably a mistake.
    """

    job_dir: Path
    definition: JobFile | None = None
    document: Document | None = None
    refusal: DocumentError = field(default_factory=DocumentError)
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, content: bytes, job_dir: Path) -> JobReading:
        """Read the content of a job's file, and note everything that is wrong with it, with the rule that it breaks."""
        document, rule = None, "yaml"
        try:
            document, rule = read_document(content), "later-format"
            refuse(_later_format(document))
            rule = "schema"
            definition = document.validate(JobFile, patterns=PATTERNS)
            refuse(_contradictions(definition, document))
            unreadable_files = [*_missing_instructions(definition, document, job_dir)]
            used = {step_id for workflow in definition.workflows for step_id in workflow.step_ids} or None
            errors = _first(problem for step_id, problem in unreadable_files if used is None or step_id in used)
            unused = [problem for step_id, problem in unreadable_files if used is not None and step_id not in used]
            warnings = _first(chain(unused, _doubts(definition, document, job_dir)))
        except DocumentError as error:
            return cls(job_dir, document=document, refusal=error.of_rule(rule))
        except Exception as error:  # noqa: BLE001 - a hostile file must not take the good jobs with it
            problem = Problem(f"cannot be read ({type(error).__name__})", rule=rule)
            return cls(job_dir, document=document, refusal=DocumentError(problem))
        return cls(job_dir, definition, document, errors=errors, warnings=warnings)

    @staticmethod
    def content_of(job_dir: Path) -> bytes:
        """Read the bytes of a job's file.

        Raises:
            PathRefused: The folder does not exist, or its file cannot be read.
        """
        if not os.path.isdir(job_dir):
            raise PathRefused("is not a directory")
        try:
            return read_regular(FILE_NAME, [job_dir], limit=MAX_BYTES)
        except (PathRefused, OSError) as error:
            raise PathRefused(_why_unreadable(job_dir, error)) from None

    @property
    def result(self) -> Job | JobLoadError:
        """The job, or the error of its file."""
        file = self.job_dir / FILE_NAME
        if self.definition is None:
            return load_error(self.job_dir, self.refusal.at(file))
        errors, warnings = (tuple(item.at(file) for item in items) for items in (self.errors, self.warnings))
        return Job(definition=self.definition, job_dir=self.job_dir, errors=errors, warnings=warnings)


def parse_job(path: Path) -> Job | JobLoadError:
    """Read a job from its folder, or from its `job.yml`.

    Whatever is wrong with the file, the answer is a `JobLoadError`; nothing is raised.
    """
    job_dir = path.parent if path.name == FILE_NAME else path
    try:
        return JobReading.of(JobReading.content_of(job_dir), job_dir).result
    except PathRefused as error:
        place = job_dir / FILE_NAME if job_dir.is_dir() else job_dir
        return load_error(job_dir, f"{visible(str(place))} {error.message}")


def load_error(job_dir: Path, message: str) -> JobLoadError:
    """Make the error of one job."""
    return JobLoadError(f"Failed to load: {message}", job_name=_folder_name(job_dir), job_dir=job_dir)


def unreadable(job_dir: Path, error: PathRefused | OSError) -> JobLoadError:
    """Make the error of a job whose file cannot be read."""
    return load_error(job_dir, f"{visible(str(job_dir / FILE_NAME))} {_why_unreadable(job_dir, error)}")


def _why_unreadable(job_dir: Path, error: PathRefused | OSError) -> str:
    """Return why a job's file cannot be read, and which file was probably meant."""
    if isinstance(error, FileNotFoundError):
        return f"not found{_other_name(job_dir)}"
    return describe(error).replace("the project", "the folder of its job")


def _other_name(job_dir: Path) -> str:
    """Suggest the file that was probably meant to be the job's."""
    try:
        names = sorted(os.listdir(job_dir))
    except OSError:
        return ""
    if not names:
        return "; the folder is empty"
    meant = next((name for name in names if name != FILE_NAME and name.lower() in ("job.yaml", FILE_NAME)), None)
    return f"; rename {meant!r} to {FILE_NAME!r}" if meant else ""


def _first(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Take the first problems, in the order of the file."""
    return tuple(sorted(islice(problems, MAX_PROBLEMS), key=lambda problem: problem.line or 0))


def _later_format(document: Document) -> Iterator[Problem]:
    """Yield one sentence for a file of DeepWork 0.10 or newer, instead of an error for each of its keys."""
    data = document.data if isinstance(document.data, dict) else {}
    keys = [key for key in LATER_KEYS if key in data]
    if "steps" not in data and isinstance(data.get("workflows"), dict):
        keys.append("workflows")
    if keys:
        yield Problem(
            f"this is a job of DeepWork 0.10 or newer ({keys[0]!r} shows it), whose format this release does not read: "
            "here a job has `steps`, each with an `instructions_file`, and a list of `workflows`",
            document.line(keys[0]),
        )


def _folder_name(job_dir: Path) -> str:
    """The name of a folder that may be given as `.`."""
    return os.path.basename(os.path.abspath(job_dir))


def _contradictions(job: JobFile, document: Document) -> Iterator[Problem]:
    """Yield what makes a job unusable."""
    steps: dict[str, Step] = {}
    for index, step in enumerate(job.steps):
        if step.id in steps:
            line = document.line("steps", index, "id")
            yield Problem(f"step id {step.id!r} is used twice", line, rule="duplicate-step")
        steps.setdefault(step.id, step)
    yield from _wrong_dependencies(job, steps, document)
    yield from _wrong_inputs(job, steps, document)
    yield from _wrong_reviews(job, document)
    yield from _wrong_workflows(job, steps, document)


def _wrong_dependencies(job: JobFile, steps: dict[str, Step], document: Document) -> Iterator[Problem]:
    ids = list(steps)
    for index, step in enumerate(job.steps):
        for position, dependency in enumerate(step.dependencies):
            if dependency not in steps:
                line = document.line("steps", index, "dependencies", position)
                text = f"step {step.id!r} depends on non-existent step {dependency!r}"
                yield Problem(text, line, (dependency, ids), "unknown-dependency")
    try:
        TopologicalSorter({step.id: step.dependencies for step in job.steps}).prepare()
    except CycleError as error:
        cycle = error.args[1]
        line = document.line("steps", [step.id for step in job.steps].index(cycle[-1]), "dependencies")
        text = f"Circular dependency detected: {' -> '.join(reversed(cycle))}"
        yield Problem(text, line, rule="dependency-cycle")


def _wrong_inputs(job: JobFile, steps: dict[str, Step], document: Document) -> Iterator[Problem]:
    ids = list(steps)
    for index, step in enumerate(job.steps):
        for position, step_input in enumerate(step.inputs):
            if not isinstance(step_input, FileInput):
                continue
            line = document.line("steps", index, "inputs", position, "from_step")
            subject = f"step {step.id!r}: input {step_input.file!r}"
            if step_input.from_step not in steps:
                text = f"{subject} references non-existent step {step_input.from_step!r}"
                yield Problem(text, line, (step_input.from_step, ids), "unknown-input-step")
            elif step_input.from_step not in step.dependencies:
                text = f"{subject} comes from {step_input.from_step!r}, which is not in dependencies"
                yield Problem(text, line, rule="input-without-dependency")


def _wrong_reviews(job: JobFile, document: Document) -> Iterator[Problem]:
    for index, step in enumerate(job.steps):
        for position, review in enumerate(step.reviews):
            if review.run_each != "step" and review.run_each not in step.outputs:
                valid = ", ".join(["step", *step.outputs])
                text = f"step {step.id!r}: run_each={review.run_each!r} is not an output of the step; valid: {valid}"
                line = document.line("steps", index, "reviews", position, "run_each")
                yield Problem(text, line, rule="unknown-review-target")


def _wrong_workflows(job: JobFile, steps: dict[str, Step], document: Document) -> Iterator[Problem]:
    ids, names = list(steps), set[str]()
    for index, workflow in enumerate(job.workflows):
        if workflow.name in names:
            line = document.line("workflows", index, "name")
            yield Problem(f"workflow name {workflow.name!r} is used twice", line, rule="duplicate-workflow")
        names.add(workflow.name)
        if not workflow.steps:
            line = document.line("workflows", index, "steps")
            yield Problem(f"workflow {workflow.name!r} has no steps", line, rule="empty-workflow")
        earlier_steps: set[str] = set()
        for position, entry in enumerate(workflow.entries):
            line = document.line("workflows", index, "steps", position)
            if not entry:
                yield Problem(f"workflow {workflow.name!r} has an empty group", line, rule="empty-workflow")
            for step_id in entry:
                if step_id not in steps:
                    text = f"workflow {workflow.name!r} references non-existent step {step_id!r}"
                    yield Problem(text, line, (step_id, ids), "unknown-workflow-step")
                if step_id in earlier_steps:
                    text = f"workflow {workflow.name!r} has step {step_id!r} twice"
                    yield Problem(text, line, rule="repeated-step")
                earlier_steps.add(step_id)


def _missing_instructions(job: JobFile, document: Document, job_dir: Path) -> Iterator[tuple[str, Problem]]:
    """Yield the steps whose instruction files cannot be read: they fail when they begin, the others work."""
    for index, step in enumerate(job.steps):
        reason = _doubtful_path(step.instructions_file, job_dir)
        if reason:
            line = document.line("steps", index, "instructions_file")
            text = f"step {step.id!r}: instructions file {step.instructions_file!r} {reason}"
            yield step.id, Problem(text, line, rule="missing-instructions")


def _doubts(job: JobFile, document: Document, job_dir: Path) -> Iterator[Problem]:
    """Yield what is probably a mistake, but does harm only when the step is reached."""
    if job.name != _folder_name(job_dir):
        text = f"the job is named {job.name!r}, its folder {_folder_name(job_dir)!r}"
        yield Problem(text, document.line("name"), rule="folder-name")
    outputs = {step.id: step.outputs for step in job.steps}
    for index, step in enumerate(job.steps):
        for position, step_input in enumerate(step.inputs):
            if isinstance(step_input, FileInput) and step_input.file not in outputs[step_input.from_step]:
                line = document.line("steps", index, "inputs", position)
                text = f"step {step.id!r}: {step_input.file!r} is not an output of {step_input.from_step!r}"
                yield Problem(text, line, rule="unknown-input-file")
    yield from _doubtful_orders(job, document)
    used = {step_id for workflow in job.workflows for step_id in workflow.step_ids}
    for index, step in enumerate(job.steps):
        if step.id not in used and job.workflows:
            text = f"step {step.id!r} is in no workflow"
            yield Problem(text, document.line("steps", index, "id"), rule="unused-step")


def _doubtful_path(path: str, job_dir: Path) -> str | None:
    """Return why an instructions file could not be read now; None if it could."""
    if _exists_without_links(path, job_dir):
        return None
    try:
        resolved, _ = resolve_inside(path, [job_dir])
    except PathRefused as error:
        return error.message.replace("the project", "the job's folder")
    return None if os.path.isfile(resolved) else "does not exist"


def _exists_without_links(path: str, job_dir: Path) -> bool:
    """True if a file exists at a path that needs no resolving, as almost all do.

    A job names many files, and `resolve_inside` takes several times as long.
    """
    parts = path.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\\" in path or "\0" in path:
        return False
    place = str(job_dir)
    for part in parts:
        place = f"{place}/{part}"
        try:
            mode = os.lstat(place).st_mode
        except (OSError, ValueError):
            return False
        if stat.S_ISLNK(mode):
            return False
    return stat.S_ISREG(mode)


def _doubtful_orders(job: JobFile, document: Document) -> Iterator[Problem]:
    dependencies = {step.id: step.dependencies for step in job.steps}
    reads = {(step.id, item.from_step) for step in job.steps for item in step.inputs if isinstance(item, FileInput)}
    for index, workflow in enumerate(job.workflows):
        earlier_steps: set[str] = set()
        in_workflow = set(workflow.step_ids)
        for position, entry in enumerate(workflow.entries):
            for step_id in entry:
                for later in in_workflow.intersection(dependencies[step_id]) - earlier_steps:
                    text = f"workflow {workflow.name!r}: step {step_id!r} does not come after its dependency {later!r}"
                    line = document.line("workflows", index, "steps", position)
                    yield Problem(text, line, rule="read-before-written" if (step_id, later) in reads else "order")
            earlier_steps.update(entry)
