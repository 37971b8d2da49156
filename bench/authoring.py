"""What authors of jobs wait for: figures of this project alone, against a budget."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.client import ContestantError, resident_mib
from bench.contestants import Contestant
from bench.measure import Run, p95
from deepwork.builtin.authoring.lint import LintedJob
from deepwork.builtin.authoring.new import EXAMPLE_NAMES, EXAMPLES
from deepwork.builtin.authoring.test_command import run_tests
from deepwork.testing import review, step
from deepwork.testing.project import DeepworkProject

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from job_corpus import write_corpus  # type: ignore[import-not-found]  # found by the line above
from lsp_editor import Editor, editing  # type: ignore[import-not-found]

SEED = 35
JOBS = 100
CHECK_MS = TEST_MS = 2000
# How long an editor waits at a job of so many lines.
KEYSTROKE_MS = {600: 50, 5000: 150}
KEYSTROKES = 40

AUTHORING = Contestant("authoring", "")


def measure_authoring(run: Run) -> None:
    """Check and test a hundred jobs, and edit jobs with the language server."""
    projects = [run.folder / "authoring" / name for name in "abc"]
    jobs = [job_dir for project in projects for job_dir in write_corpus(project / ".deepwork" / "jobs")][:JOBS]
    tests = [file for project in projects for file in sorted(project.rglob("*.test.yml"))][:JOBS]
    for _ in run.rounds("jobs checked and tested"):
        run.add("authoring.check", AUTHORING, _checked(jobs), CHECK_MS)
        run.add("authoring.test", AUTHORING, _tested(tests, projects[0]), TEST_MS)
    for lines, budget in KEYSTROKE_MS.items():
        file = _job_of(lines, run.folder / f"editing-{lines}")
        with editing(file.parent) as editor:
            editor.open(file)
            for number in run.rounds(f"keystrokes in {lines:,} lines"):
                run.add(f"authoring.keys.{lines}", AUTHORING, _typed(editor, file, number), budget)
    for _ in run.rounds("random edits", repeats=1, warm_up=False):
        run.add("authoring.memory", AUTHORING, *_edited(run.folder, run.sizes.edits))


def _checked(jobs: Sequence[Path]) -> float:
    begin = time.perf_counter()
    command = [sys.executable, "-m", "deepwork", "jobs", "check", *map(str, jobs)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1000


def _tested(files: Sequence[Path], root: Path) -> float:
    begin = time.perf_counter()
    results, _ = run_tests(files, root)
    if red := [result.file for result in results if result.problems]:
        raise ContestantError(f"the test {red[0]} is red")
    return (time.perf_counter() - begin) * 1000


def _job_of(lines: int, root: Path) -> Path:
    """Write a job of at least so many lines, and return its file."""
    project = DeepworkProject(root)
    criteria = {f"Criterion {number}": f"Does it name at least {number} sources?" for number in range(1, 6)}
    reviewed = review(quality_criteria=criteria)
    names = ["s0"]
    while True:
        steps = [
            step(
                name,
                reviews=[reviewed],
                dependencies=[before],
                inputs=[{"file": f"{before}.md", "from_step": before}],
            )
            if before
            else step(name, reviews=[reviewed])
            for before, name in zip([None, *names], names, strict=False)
        ]
        file = project.write_job("long", steps, {"main": names}) / "job.yml"
        missing = lines - file.read_text().count("\n")
        if missing <= 0:
            return file
        names += [f"s{len(names) + number}" for number in range(missing // 30 + 1)]


def _typed(editor: Editor, file: Path, round_number: int) -> float:
    """Type letters at the end of a description in the middle of a job, and return the p95 of the waits."""
    line = file.read_text().count("\n") // 2
    lines = file.read_text().splitlines()
    while "description: Do" not in lines[line]:
        line += 1
    place = {"line": line, "character": len(lines[line])}
    waits = []
    for number in range(KEYSTROKES):
        version = 2 + round_number * KEYSTROKES + number
        begin = time.perf_counter()
        editor.change(file, version, {"range": {"start": place, "end": place}, "text": "x"})
        editor.await_version(file.as_uri(), version)
        waits.append((time.perf_counter() - begin) * 1000)
    return p95(waits)


def _edited(folder: Path, count: int) -> tuple[float, float]:
    """Edit each example at random; return the memory of the server after it and before.

    Raises:
        ContestantError: The server has ended, or its last diagnostics are not those of the checker.
    """
    dice = random.Random(SEED)
    with editing(folder) as editor:
        paths = [EXAMPLES / name / "job.yml" for name in EXAMPLE_NAMES]
        for path in paths:
            editor.open(path)
        before = resident_mib(editor.process.pid) or 0.0
        for path in paths:
            text = editor.edit_at_random(path, count, dice)
            messages = [item["message"] for item in editor.diagnostics[path.as_uri()]["diagnostics"]]
            findings = LintedJob(path.parent, {path: text}).findings()
            if messages != [finding.message for finding in findings if finding.file == path]:
                raise ContestantError(f"the diagnostics of {path} are not those of the checker: {messages}")
        return resident_mib(editor.process.pid) or 0.0, before
