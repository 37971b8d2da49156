"""From the bytes of a `job.yml` to a `Job`, or to everything that is wrong with it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from pathlib import Path

from deepwork.documents.document import Document
from deepwork.documents.limits import MAX_BYTES
from deepwork.documents.load import read_document
from deepwork.documents.problems import MAX_PROBLEMS, DocumentError, Problem, refuse
from deepwork.errors import JobLoadError, PathRefused
from deepwork.files.paths import describe, read_regular, resolve_inside
from deepwork.models.jobs import PATTERNS, FileInput, Job, JobFile, Step
from deepwork.text.foreign import visible

FILE_NAME = "job.yml"

# Keys that only the later job format has at the top.
LATER_KEYS = ("step_arguments",)


def parse_job(path: Path) -> Job | JobLoadError:
    """Read a job from its folder, or from its `job.yml`.

    Whatever is wrong with the file, the answer is a `JobLoadError`; nothing is raised.
    """
    job_dir = path.parent if path.name == FILE_NAME else path
    if not os.path.isdir(job_dir):
        return load_error(job_dir, f"{visible(str(job_dir))} is not a directory")
    try:
        content = read_regular(FILE_NAME, [job_dir], limit=MAX_BYTES)
    except (PathRefused, OSError) as error:
        return unreadable(job_dir, error)
    return parse_content(content, job_dir)


def parse_content(content: bytes, job_dir: Path) -> Job | JobLoadError:
    """Make a job of the content of its file."""
    file = job_dir / FILE_NAME
    try:
        document = read_document(content)
        refuse(_later_format(document))
        definition = document.validate(JobFile, patterns=PATTERNS)
        refuse(_contradictions(definition, document))
        errors = _lines(_missing_instructions(definition, document, job_dir), file)
        warnings = _lines(_doubts(definition, document, job_dir), file)
    except DocumentError as error:
        return load_error(job_dir, error.at(file))
    except Exception as error:  # noqa: BLE001 - a hostile file must not take the good jobs with it
        return load_error(job_dir, Problem(f"cannot be read ({type(error).__name__})").at(file))
    return Job(definition=definition, job_dir=job_dir, errors=errors, warnings=warnings)


def load_error(job_dir: Path, message: str) -> JobLoadError:
    """Make the error of one job."""
    return JobLoadError(f"Failed to load: {message}", job_name=_folder_name(job_dir), job_dir=job_dir)


def unreadable(job_dir: Path, error: PathRefused | OSError) -> JobLoadError:
    """Make the error of a job whose file cannot be read."""
    reason = f"not found{_other_name(job_dir)}" if isinstance(error, FileNotFoundError) else describe(error)
    file = visible(str(job_dir / FILE_NAME))
    return load_error(job_dir, f"{file} {reason.replace('the project', 'the folder of its job')}")


def _other_name(job_dir: Path) -> str:
    """Say which file was probably meant to be the job's."""
    try:
        names = sorted(os.listdir(job_dir))
    except OSError:
        return ""
    if not names:
        return "; the folder is empty"
    meant = next((name for name in names if name != FILE_NAME and name.lower() in ("job.yaml", FILE_NAME)), None)
    return f"; rename {meant!r} to {FILE_NAME!r}" if meant else ""


def _lines(problems: Iterator[Problem], file: Path) -> tuple[str, ...]:
    """Write the first problems as lines, in the order of the file."""
    first = sorted(islice(problems, MAX_PROBLEMS), key=lambda problem: problem.line or 0)
    return tuple(problem.at(file) for problem in first)


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
            yield Problem(f"step id {step.id!r} is used twice", document.line("steps", index, "id"))
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
                yield Problem(text, line, (dependency, ids))
    try:
        TopologicalSorter({step.id: step.dependencies for step in job.steps}).prepare()
    except CycleError as error:
        cycle = error.args[1]
        line = document.line("steps", [step.id for step in job.steps].index(cycle[-1]), "dependencies")
        yield Problem(f"Circular dependency detected: {' -> '.join(reversed(cycle))}", line)


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
                yield Problem(text, line, (step_input.from_step, ids))
            elif step_input.from_step not in step.dependencies:
                yield Problem(f"{subject} comes from {step_input.from_step!r}, which is not in dependencies", line)


def _wrong_reviews(job: JobFile, document: Document) -> Iterator[Problem]:
    for index, step in enumerate(job.steps):
        for position, review in enumerate(step.reviews):
            if review.run_each != "step" and review.run_each not in step.outputs:
                valid = ", ".join(["step", *step.outputs])
                text = f"step {step.id!r}: run_each={review.run_each!r} is not an output of the step; valid: {valid}"
                yield Problem(text, document.line("steps", index, "reviews", position, "run_each"))


def _wrong_workflows(job: JobFile, steps: dict[str, Step], document: Document) -> Iterator[Problem]:
    ids, names = list(steps), set[str]()
    for index, workflow in enumerate(job.workflows):
        if workflow.name in names:
            yield Problem(f"workflow name {workflow.name!r} is used twice", document.line("workflows", index, "name"))
        names.add(workflow.name)
        if not workflow.steps:
            yield Problem(f"workflow {workflow.name!r} has no steps", document.line("workflows", index, "steps"))
        earlier_steps: set[str] = set()
        for position, entry in enumerate(workflow.entries):
            line = document.line("workflows", index, "steps", position)
            if not entry:
                yield Problem(f"workflow {workflow.name!r} has an empty group", line)
            for step_id in entry:
                if step_id not in steps:
                    text = f"workflow {workflow.name!r} references non-existent step {step_id!r}"
                    yield Problem(text, line, (step_id, ids))
                if step_id in earlier_steps:
                    yield Problem(f"workflow {workflow.name!r} has step {step_id!r} twice", line)
                earlier_steps.add(step_id)


def _missing_instructions(job: JobFile, document: Document, job_dir: Path) -> Iterator[Problem]:
    """Yield the instruction files that cannot be read: their steps fail when they begin, the others work."""
    for index, step in enumerate(job.steps):
        reason = _doubtful_path(step.instructions_file, job_dir)
        if reason:
            line = document.line("steps", index, "instructions_file")
            yield Problem(f"step {step.id!r}: instructions file {step.instructions_file!r} {reason}", line)


def _doubts(job: JobFile, document: Document, job_dir: Path) -> Iterator[Problem]:
    """Yield what is probably a mistake, but does harm only when the step is reached."""
    if job.name != _folder_name(job_dir):
        yield Problem(f"the job is named {job.name!r}, its folder {_folder_name(job_dir)!r}", document.line("name"))
    outputs = {step.id: step.outputs for step in job.steps}
    for index, step in enumerate(job.steps):
        for position, step_input in enumerate(step.inputs):
            if isinstance(step_input, FileInput) and step_input.file not in outputs[step_input.from_step]:
                line = document.line("steps", index, "inputs", position)
                text = f"step {step.id!r}: {step_input.file!r} is not an output of {step_input.from_step!r}"
                yield Problem(text, line)
    yield from _doubtful_orders(job, document)
    used = {step_id for workflow in job.workflows for step_id in workflow.step_ids}
    for index, step in enumerate(job.steps):
        if step.id not in used and job.workflows:
            yield Problem(f"step {step.id!r} is in no workflow", document.line("steps", index, "id"))


def _doubtful_path(path: str, job_dir: Path) -> str | None:
    """Say why an instructions file could not be read now."""
    if _exists_without_links(path, job_dir):
        return None
    try:
        resolved, _ = resolve_inside(path, [job_dir])
    except PathRefused as error:
        return error.message.replace("the project", "the job's folder")
    return None if os.path.isfile(resolved) else "does not exist"


def _exists_without_links(path: str, job_dir: Path) -> bool:
    """Say whether a file exists at a path that needs no resolving, as almost all do.

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
    for index, workflow in enumerate(job.workflows):
        earlier_steps: set[str] = set()
        in_workflow = set(workflow.step_ids)
        for position, entry in enumerate(workflow.entries):
            for step_id in entry:
                for later in in_workflow.intersection(dependencies[step_id]) - earlier_steps:
                    text = f"workflow {workflow.name!r}: step {step_id!r} does not come after its dependency {later!r}"
                    yield Problem(text, document.line("workflows", index, "steps", position))
            earlier_steps.update(entry)
