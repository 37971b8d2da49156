"""From the bytes of a `job.yml` to a `Job`, or to everything that is wrong with it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from pathlib import Path

from deepwork.documents.load import MAX_BYTES, Document, read_document
from deepwork.documents.problems import MAX_PROBLEMS, DocumentError, Problem, refuse
from deepwork.errors import JobLoadError, PathRefused
from deepwork.files.paths import describe, read_regular, resolve_inside
from deepwork.models.jobs import FileInput, Job, JobFile, Step

FILE_NAME = "job.yml"


def parse_job(path: Path) -> Job | JobLoadError:
    """Read a job from its folder, or from its `job.yml`.

    Whatever is wrong with the file, the answer is a `JobLoadError`; nothing is raised.
    """
    job_dir = path.parent if path.name == FILE_NAME else path
    if not os.path.isdir(job_dir):
        return load_error(job_dir, f"{job_dir} is not a directory")
    try:
        content = read_regular(FILE_NAME, [job_dir], limit=MAX_BYTES)
    except (PathRefused, OSError) as error:
        return unreadable(job_dir, error)
    return parse_content(content, job_dir)


def parse_content(content: bytes, job_dir: Path) -> Job | JobLoadError:
    """Make a job of the bytes of its file."""
    file = job_dir / FILE_NAME
    try:
        document = read_document(content)
        definition = document.validate(JobFile)
        refuse(_contradictions(definition, document))
        warnings = [problem.at(file) for problem in islice(_doubts(definition, document, job_dir), MAX_PROBLEMS)]
    except DocumentError as error:
        return load_error(job_dir, error.at(file))
    except Exception as error:  # noqa: BLE001 - whatever a hostile file brings about harms that job alone
        return load_error(job_dir, Problem(f"cannot be read ({type(error).__name__})").at(file))
    return Job(definition=definition, job_dir=job_dir, warnings=tuple(warnings))


def load_error(job_dir: Path, message: str) -> JobLoadError:
    """Make the error of one job."""
    return JobLoadError(f"Failed to load: {message}", job_name=_folder_name(job_dir), job_dir=job_dir)


def unreadable(job_dir: Path, error: PathRefused | OSError) -> JobLoadError:
    """Make the error of a job whose file cannot be read."""
    reason = "not found" if isinstance(error, FileNotFoundError) else describe(error)
    return load_error(job_dir, f"{job_dir / FILE_NAME} {reason.replace('the project', 'the folder of its job')}")


def _folder_name(job_dir: Path) -> str:
    """The name of a folder that may be given as `.`."""
    return os.path.basename(os.path.abspath(job_dir))


def _contradictions(job: JobFile, document: Document) -> Iterator[Problem]:
    """Yield what makes a job unusable, in the order in which the original looked."""
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
        for position, given in enumerate(step.inputs):
            if not isinstance(given, FileInput):
                continue
            line = document.line("steps", index, "inputs", position, "from_step")
            what = f"step {step.id!r}: input {given.file!r}"
            if given.from_step not in steps:
                text = f"{what} references non-existent step {given.from_step!r}"
                yield Problem(text, line, (given.from_step, ids))
            elif given.from_step not in step.dependencies:
                yield Problem(f"{what} comes from {given.from_step!r}, which is not in dependencies", line)


def _wrong_reviews(job: JobFile, document: Document) -> Iterator[Problem]:
    for index, step in enumerate(job.steps):
        for position, review in enumerate(step.reviews):
            if review.run_each != "step" and review.run_each not in step.outputs:
                valid = ", ".join(["step", *step.outputs])
                text = f"step {step.id!r}: run_each={review.run_each!r} is no output of the step; valid: {valid}"
                yield Problem(text, document.line("steps", index, "reviews", position, "run_each"))


def _wrong_workflows(job: JobFile, steps: dict[str, Step], document: Document) -> Iterator[Problem]:
    ids, names = list(steps), set[str]()
    for index, workflow in enumerate(job.workflows):
        here = document.line("workflows", index, "name")
        if workflow.name in names:
            yield Problem(f"workflow name {workflow.name!r} is used twice", here)
        names.add(workflow.name)
        if not workflow.steps:
            yield Problem(f"workflow {workflow.name!r} has no steps", document.line("workflows", index, "steps"))
        seen: set[str] = set()
        for position, entry in enumerate(workflow.entries):
            line = document.line("workflows", index, "steps", position)
            if not entry:
                yield Problem(f"workflow {workflow.name!r} has an empty group", line)
            for step_id in entry:
                if step_id not in steps:
                    text = f"workflow {workflow.name!r} references non-existent step {step_id!r}"
                    yield Problem(text, line, (step_id, ids))
                if step_id in seen:
                    yield Problem(f"workflow {workflow.name!r} has step {step_id!r} twice", line)
                seen.add(step_id)


def _doubts(job: JobFile, document: Document, job_dir: Path) -> Iterator[Problem]:
    """Yield what is probably a mistake, but bites only when the step is reached."""
    if job.name != _folder_name(job_dir):
        yield Problem(f"the job is named {job.name!r}, its folder {_folder_name(job_dir)!r}", document.line("name"))
    outputs = {step.id: step.outputs for step in job.steps}
    for index, step in enumerate(job.steps):
        doubt = _doubtful_path(step.instructions_file, job_dir)
        if doubt:
            line = document.line("steps", index, "instructions_file")
            yield Problem(f"step {step.id!r}: instructions file {step.instructions_file!r} {doubt}", line)
        for position, given in enumerate(step.inputs):
            if isinstance(given, FileInput) and given.file not in outputs[given.from_step]:
                line = document.line("steps", index, "inputs", position)
                yield Problem(f"step {step.id!r}: {given.file!r} is no output of {given.from_step!r}", line)
    yield from _doubtful_orders(job, document)
    used = {step_id for workflow in job.workflows for step_id in workflow.step_ids}
    for index, step in enumerate(job.steps):
        if step.id not in used and job.workflows:
            yield Problem(f"step {step.id!r} is in no workflow", document.line("steps", index, "id"))


def _doubtful_path(given: str, job_dir: Path) -> str | None:
    """Say why an instructions file could not be read now."""
    if _is_plainly_there(given, job_dir):
        return None
    try:
        path, _ = resolve_inside(given, [job_dir])
    except PathRefused as error:
        return error.message.replace("the project", "the job's folder")
    return None if os.path.isfile(path) else "does not exist"


def _is_plainly_there(given: str, job_dir: Path) -> bool:
    """Say whether no link and no detour has to be resolved to see that a file is there: a job has many."""
    parts = given.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\\" in given or "\0" in given:
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
        done: set[str] = set()
        in_workflow = set(workflow.step_ids)
        for position, entry in enumerate(workflow.entries):
            for step_id in entry:
                for early in in_workflow.intersection(dependencies[step_id]) - done:
                    text = f"workflow {workflow.name!r}: step {step_id!r} does not come after its dependency {early!r}"
                    yield Problem(text, document.line("workflows", index, "steps", position))
            done.update(entry)
