"""`deepwork jobs mutate`: which changes of a job neither the linter nor its tests notice."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import click

from deepwork.api import Job, Report, Workflow, parse_job
from deepwork.builtin.authoring.findings import JobFinding
from deepwork.builtin.authoring.job_tests import SUFFIX, JobTestBench, JobTestResult, files_in, read_test
from deepwork.builtin.authoring.lint import lint
from deepwork.builtin.authoring.operators import Data, Mutant, Mutants
from deepwork.builtin.authoring.places import job_folders, load_job, project_folder
from deepwork.builtin.authoring.scripted import ScriptedReviewer, rehearsed, write_file
from deepwork.commands.options import json_option, path_option
from deepwork.commands.terminal import say, say_json, say_text
from deepwork.documents.document import Document
from deepwork.documents.load import read_document
from deepwork.documents.problems import DocumentError
from deepwork.errors import ConfigError, JobLoadError, ToolError
from deepwork.models.job_tests import JobTest
from deepwork.models.jobs import FILE_NAME
from deepwork.paths.private_folders import private_folder
from deepwork.text import yaml_text

# What differs from one session to the next, so that no test can expect it.
VOLATILE = {"session_id", "job_dir", "branch_name", "stack"}
MAX_TRIED = 20
# Each mutant is checked and played as a whole, which takes four times as long for a job of twice the size.
MAX_BYTES = 256 * 1024
MAX_OF_OPERATOR = 200
LARGE_BYTES = 20 * 1024


@dataclass
class Score:
    """How many mutants of an operator there are, and who noticed them."""

    mutants: int = 0
    lint: int = 0
    tests: int = 0


@dataclass
class Survey:
    """What came of all mutants of one or more jobs.

    Attributes:
        equivalent: Mutants that no agent and no reviewer could tell from the job; they do not count.
        untried: Places of very large jobs that were not changed.
    """

    scores: dict[str, dict[str, Score]] = field(default_factory=lambda: {"fault": {}, "change": {}})
    survivors: list[dict[str, Any]] = field(default_factory=list)
    equivalent: int = 0
    untried: int = 0

    @property
    def mutants(self) -> int:
        return sum(score.mutants for of_kind in self.scores.values() for score in of_kind.values())

    def total(self, kind: str) -> dict[str, int]:
        """Return the sums of one kind."""
        return {key: sum(vars(score)[key] for score in self.scores[kind].values()) for key in vars(Score())}

    @property
    def as_json(self) -> dict[str, Any]:
        """The survey as `--json` prints it."""
        operators = {
            kind: {name: vars(score) for name, score in of_kind.items()} for kind, of_kind in self.scores.items()
        }
        return {
            "mutants": self.mutants,
            "survivors": self.survivors,
            "equivalent": self.equivalent,
            "untried": self.untried,
            "faults": self.total("fault"),
            "changes": self.total("change"),
            "operators": operators,
        }


@click.command("mutate")
@click.argument("job_name", metavar="[JOB]", required=False)
@click.option("--corpus", type=click.Path(path_type=Path, file_okay=False), help="Measure all jobs of a folder.")
@path_option
@json_option
def mutate(job_name: str | None, corpus: Path | None, root: str, as_json: bool) -> int:
    """Change a job in every way that is wrong or means something else, and list the changes that are not noticed.

    A fault makes the job contradict itself: `jobs check` should find it. A change leaves it valid, but it means
    something else: its tests should be red. Each survivor comes with a test that kills it. Exits with 1 if a
    test is red before anything is changed.
    """
    folder = project_folder(root)
    if (job_name is None) == (corpus is None):
        raise click.UsageError("Give a JOB, or a folder of jobs as --corpus.")
    folders = job_folders([corpus], folder) if corpus else [load_job(Path(job_name or ""), folder).job_dir]
    survey = Survey()

    async def run() -> None:
        for job_dir in folders:
            await survey_job(job_dir, folder, survey)

    anyio.run(run)
    if as_json:
        say_json(survey.as_json)
        return 0
    for survivor in survey.survivors:
        place = f"{survivor['file']}:{survivor['line']}" if survivor["line"] else survivor["file"]
        say(f"{place}: {survivor['message']} ({survivor['kind']} {survivor['operator']})")
        say(f"    no finding and no red test; this test notices it: {survivor['into']}")
        say_text(survivor["paste"], "    ")
    for kind, noun in (("fault", "faults"), ("change", "changes of meaning")):
        total = survey.total(kind)
        say(f"{total['mutants']} {noun}: {total['lint']} found by check, {total['tests']} by tests.")
    untried = f" {survey.untried} more places were not changed, as the job is large." if survey.untried else ""
    say(f"{survey.mutants} mutants, {len(survey.survivors)} noticed by nobody.{untried}", err=True)
    return 0


async def survey_job(job_dir: Path, root: Path, survey: Survey) -> None:
    """Try all mutants of a job, and add what came of them.

    Raises:
        JobLoadError: The job cannot be used.
        ConfigError: One of its tests is red as it is.
    """
    with private_folder() as folder:
        bench = MutationBench(job_dir, folder, root)
        await bench.prepare()
        mutants = Mutants(bench.data, bench.texts, most=bench.most_of_operator)
        for mutant in mutants:
            noticed = await bench.noticed_by(mutant)
            if not any(noticed):
                paste = await bench.killing_test(mutant)
                if paste is None:
                    survey.equivalent += 1
                    continue
                survey.survivors.append(bench.survivor(mutant, paste, survey.survivors))
            score = survey.scores[mutant.kind].setdefault(mutant.operator, Score())
            score.mutants += 1
            score.lint += noticed[0]
            score.tests += noticed[1]
        survey.untried += mutants.untried


class MutationBench:
    """One job, in a copy that is changed and changed back.

    Attributes:
        data: The content of its job.yml.
        texts: Its instruction files.
    """

    def __init__(self, job_dir: Path, folder: Path, root: Path) -> None:
        self._job_dir, self._root = job_dir, root
        self._copy = folder / os.path.basename(os.path.abspath(job_dir))
        self._tests: list[tuple[Document, JobTest]] = []
        self._walks: dict[str, list[Any]] = {}
        self._findings: Counter[tuple[str, str]] = Counter()
        self.data: Data = {}
        self.texts: dict[str, str] = {}

    async def prepare(self) -> None:
        """Copy the job, and see what its linter and its tests say as it is.

        Raises:
            JobLoadError: The job cannot be used.
            ConfigError: One of its tests is red, or the job is too large.
        """
        job = _usable(parse_job(self._job_dir))
        if len(job.definition.model_dump_json()) > MAX_BYTES:
            raise ConfigError(
                f"the job {job.name!r} is too large to be changed in every way",
                hint=f"`deepwork jobs mutate` takes jobs of at most {MAX_BYTES // 1024} KiB: divide it into two jobs.",
            )
        shutil.copytree(self._job_dir, self._copy, symlinks=True, ignore=_without_devices)
        self._document = read_document((self._copy / FILE_NAME).read_bytes())
        (self._copy / FILE_NAME).unlink()  # it may be a link to the user's own
        # With the keys of the models, so that operators find every list; comments are gone in both.
        self.data = json.loads(job.definition.model_dump_json(exclude_defaults=True))
        self._write_job(self.data)
        for step in job.definition.steps:
            file = self._copy / step.instructions_file
            if _is_of(self._copy, file):
                self.texts[step.instructions_file] = file.read_text("utf-8", "replace")
        self._findings = self._lint()
        for file in files_in([self._job_dir]):
            try:
                document, test = read_test(file)
            except DocumentError as error:
                raise ConfigError(f"a test is broken: {error.at(file)}", hint="Correct it first.") from None
            if all(report.gates == "scripted" for report in test.steps):
                self._tests.append((document, test))
        red = [test for test in self._tests if await self._is_red(*test)]
        if red:
            raise ConfigError(f"a test of {job.name!r} is red as it is", hint="`deepwork jobs test` shows why.")

    @property
    def most_of_operator(self) -> int:
        """How many mutants one operator may make of this job, so that a large one ends in minutes."""
        times_large = max(1.0, len(json.dumps(self.data)) / LARGE_BYTES)
        return max(1, int(MAX_OF_OPERATOR / times_large**2))

    async def noticed_by(self, mutant: Mutant) -> tuple[bool, bool]:
        """Return whether the linter, and whether a test, notices a mutant."""
        with self._changed(mutant):
            new = self._lint() - self._findings
            is_red = False
            for test in self._tests:
                is_red = is_red or await self._is_red(*test)
            return bool(new), is_red

    def findings(self, mutant: Mutant) -> list[JobFinding]:
        """Return what the linter finds in a mutant, all that it finds in the job besides included."""
        with self._changed(mutant):
            return lint(self._copy)

    async def killing_test(self, mutant: Mutant) -> str | None:
        """Write a test that is green with the job and red with the mutant; None if nothing tells them apart."""
        job = _usable(parse_job(self._copy))
        for workflow in job.definition.workflows:
            if workflow.name not in self._walks:
                self._walks[workflow.name] = await _walk(job, workflow)
            walk = self._walks[workflow.name]
            with self._changed(mutant):
                changed_walk = await _walk(parse_job(self._copy), workflow)
            for number, phrase in _differences(walk, changed_walk):
                text = _test_text(job, workflow, number, phrase)
                if not await self._is_red_text(text):
                    with self._changed(mutant):
                        if await self._is_red_text(text):
                            return text
        return None

    def survivor(self, mutant: Mutant, paste: str, earlier: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Describe an unnoticed mutant, with the test that kills it, in a file that there is not."""
        files = (self._job_dir / f"{mutant.operator}_{number}{SUFFIX}" for number in count(len(earlier) + 1))
        into = next(file for file in files if not os.path.lexists(file))
        return {
            "kind": mutant.kind,
            "operator": mutant.operator,
            "file": str(self._job_dir / FILE_NAME),
            "line": self._document.line(*mutant.location),
            "message": mutant.message,
            "into": str(into),
            "after": 0,
            "paste": paste,
        }

    def _write_job(self, data: Data) -> None:
        (self._copy / FILE_NAME).write_text(json.dumps(data, indent=1), encoding="utf-8")

    @contextmanager
    def _changed(self, mutant: Mutant) -> Iterator[None]:
        self._write_job(mutant.data)
        for name, text in mutant.files.items():
            self._write_instructions(name, text)
        try:
            yield
        finally:
            self._write_job(self.data)
            for name in mutant.files:
                self._write_instructions(name, self.texts[name])

    def _write_instructions(self, name: str, text: str | None) -> None:
        if text is None:
            (self._copy / name).unlink()
        else:
            (self._copy / name).write_text(text, encoding="utf-8")

    def _lint(self) -> Counter[tuple[str, str]]:
        return Counter((finding.rule, finding.message) for finding in lint(self._copy))

    async def _is_red(self, document: Document, test: JobTest) -> bool:
        job = parse_job(self._copy)
        if isinstance(job, JobLoadError):
            return True
        result = JobTestResult(self._copy)
        await JobTestBench(self._root).run_test(test, document, job, result)
        return bool(result.problems)

    async def _is_red_text(self, text: str) -> bool:
        document = read_document(text.encode())
        return await self._is_red(document, document.validate(JobTest))


def _usable(job: Job | JobLoadError) -> Job:
    if isinstance(job, JobLoadError):
        raise job
    return job


def _is_of(folder: Path, file: Path) -> bool:
    """True if a file lies in a folder itself: through a link, or `..`, a file of the user would be changed."""
    return file.is_file() and os.path.realpath(file) == str(file) and file.is_relative_to(folder)


def _without_devices(folder: str, names: list[str]) -> list[str]:
    """Leave out everything but files, folders and links: a pipe would block the copy."""
    paths = {name: os.path.join(folder, name) for name in names}
    return [
        name
        for name, path in paths.items()
        if not (os.path.islink(path) or os.path.isdir(path) or os.path.isfile(path))
    ]


async def _walk(job: Job | JobLoadError, workflow: Workflow) -> list[Any]:
    """Play a workflow to its end; return what the agent is given, and with "refused" where it goes no further."""
    replies: list[Any] = []
    if isinstance(job, JobLoadError):
        return replies
    steps = {step.id: step for step in job.definition.steps}
    async with rehearsed(job, ScriptedReviewer()) as rehearsal:
        try:
            replies.append(_stable(await rehearsal.start(workflow.name, f"test {job.name}")))
            for step_id in _reported(workflow):
                outputs = {name: _value(name, output.type, step_id) for name, output in steps[step_id].outputs.items()}
                for value in outputs.values():
                    for path in [value] if isinstance(value, str) else value:
                        write_file(rehearsal.workspace.root, path, "text")
                replies.append(_stable(await rehearsal.finish(Report(outputs=outputs, step_id=step_id))))
        except (ToolError, KeyError) as error:
            replies.append({"refused": str(error)})
    return replies


def _reported(workflow: Workflow) -> list[str]:
    """Return the steps in the order of their reports: the first of a group after its other members."""
    return [step_id for first, *others in workflow.entries for step_id in (*others, first)]


def _value(name: str, kind: str, step_id: str) -> str | list[str]:
    path = f"{step_id}/{''.join(char if char.isalnum() or char in '._-' else '_' for char in name)[:100]}"
    return [path] if kind == "files" else path


def _stable(reply: Any) -> Any:
    return _without(reply.model_dump(mode="json"))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key not in VOLATILE}
    return [_without(item) for item in value] if isinstance(value, list) else value


def _differences(walk: Sequence[Any], changed: Sequence[Any]) -> Iterator[tuple[int, str]]:
    """Yield phrases that a reply of the job has and that of the mutant lacks, with the number of the reply."""
    tried = 0
    for number, reply in enumerate(walk):
        change = changed[number] if number < len(changed) else {}
        if reply == change:
            continue
        have, lack = _flat(_all_text(reply)), _flat(_all_text(change))
        for phrase in sorted(dict.fromkeys(_phrases(reply)), key=len):
            flat = _flat(phrase)
            if len(flat) > 2 and flat in have and flat not in lack:
                yield number, flat
                tried += 1
                if tried == MAX_TRIED:
                    return


def _phrases(value: Any) -> Iterator[str]:
    """Yield the lines of all texts, and every part as JSON."""
    if isinstance(value, str):
        yield from value.splitlines()
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        written = json.dumps(item, ensure_ascii=False)
        yield f"{json.dumps(key, ensure_ascii=False)}: {written}" if isinstance(value, dict) else written
        yield from _phrases(item)


def _all_text(value: Any) -> str:
    return "\n".join([*_phrases(value), json.dumps(value, ensure_ascii=False)])


def _flat(text: str) -> str:
    return " ".join(text.split())


def _test_text(job: Job, workflow: Workflow, number: int, phrase: str) -> str:
    """Write a test that plays a workflow and expects a phrase in one reply."""
    steps = {step.id: step for step in job.definition.steps}
    quoted = json.dumps(phrase, ensure_ascii=False)
    lines = ["version: 1", f"job: {yaml_text(job.name)}", f"workflow: {yaml_text(workflow.name)}"]
    if number == 0:
        lines.append(f"start: {{reads: [{quoted}]}}")
    lines.append("steps:")
    for position, step_id in enumerate(_reported(workflow)[: max(number, 1)], 1):
        outputs = {}
        for name, output in steps[step_id].outputs.items():
            value = _value(name, output.type, step_id)
            outputs[name] = dict.fromkeys([value] if isinstance(value, str) else value, "text")
        lines += [f"  - step: {yaml_text(step_id)}", f"    outputs: {json.dumps(outputs, ensure_ascii=False)}"]
        if position == number:
            lines.append(f"    expect: {{reads: [{quoted}]}}")
    return "\n".join([*lines, ""])
