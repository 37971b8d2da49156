"""`deepwork jobs test`: hold the conversations of `*.test.yml` with jobs, and say what is not as expected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import anyio
import click

from deepwork.builtin.authoring.job_tests import SUFFIX, JobTestBench, JobTestResult, files_in
from deepwork.builtin.authoring.places import job_folders, project_folder
from deepwork.commands.options import json_option, path_option
from deepwork.commands.terminal import Styled, say, say_json, say_text
from deepwork.errors import ConfigError
from deepwork.text import visible_lines

AT_ONCE = 4


@click.command("test")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@path_option
@json_option
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Also write JUnit XML.")
def test(paths: tuple[Path, ...], root: str, as_json: bool, junit: Path | None) -> int:
    """Run the tests of jobs: *.test.yml files, job folders, names of jobs, or all jobs of the project.

    A test is a conversation with a job. It is held with the real engine in a throw-away folder; no model is asked, and
    no command runs unless the test says `gates: run`. Exits with 1 if a test is red or broken.
    """
    folder = project_folder(root)
    results, bench = run_tests(files_of(paths, folder), folder)
    if junit:
        try:
            junit.write_text(junit_xml(results), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{junit} cannot be written: {error.strerror}", hint="Give another FILE.") from None
    red = [result for result in results if result.problems]
    if as_json:
        coverage = {name: str(of_job) for name, of_job in bench.coverage.items()}
        say_json({"passed": not red, "tests": [*map(_record, results)], "coverage": coverage})
        return 1 if red else 0
    for result in red:
        say(Styled("red  ", "red"), f"{result.file}")
        for line in result.lines:
            say_text(line)
        for part in result.conversation:
            say_text(part, "    ")
    for name, of_job in bench.coverage.items():
        say(f"{name}: {of_job}")
    noun = "test" if len(results) == 1 else "tests"
    say(f"{len(results)} {noun}, {f'{len(red)} red' if red else 'all green'}.", err=True)
    return 1 if red else 0


def _record(result: JobTestResult) -> dict[str, Any]:
    """Return a result as `--json` prints it; the conversation of a green test says nothing."""
    return {
        "file": str(result.file),
        "passed": not result.problems,
        "problems": result.lines,
        "conversation": result.conversation if result.problems else [],
    }


def run_tests(files: Sequence[Path], root: Path) -> tuple[list[JobTestResult], JobTestBench]:
    """Run test files, a few at a time: each mostly waits for the threads of its own engine."""
    bench = JobTestBench(root)
    results = [JobTestResult(file) for file in files]

    async def run(number: int) -> None:
        async with turns:
            results[number] = await bench.run(files[number])

    async def run_all() -> None:
        async with anyio.create_task_group() as group:
            for number in range(len(files)):
                group.start_soon(run, number)

    turns = anyio.Semaphore(AT_ONCE)
    anyio.run(run_all)
    return results, bench


def files_of(paths: Sequence[Path], root: Path) -> list[Path]:
    """Return the test files that paths and names mean.

    Raises:
        ConfigError: No test file was found.
    """
    files = [path for path in paths if path.name.endswith(SUFFIX)]
    missing = [path for path in files if not path.is_file()]
    if missing:
        raise click.BadParameter(f"there is no file {str(missing[0])!r}", param_hint="PATHS")
    folders = [path for path in paths if path not in files]
    try:
        places = job_folders(folders, root) if folders or not files else []
    except ConfigError as error:
        if not folders:
            raise
        raise click.BadParameter(error.message, param_hint="PATHS") from None
    unknown = [place for place in places if not place.is_dir()]
    if unknown:
        raise click.BadParameter(f"{str(unknown[0])!r} is neither a path nor a job", param_hint="PATHS")
    files += files_in(places)
    if not files:
        names = ", ".join(place.name for place in places)
        raise ConfigError(
            f"there are no tests: no *{SUFFIX} beside {names or 'any job'}", hint="Write one beside job.yml."
        )
    return files


def junit_xml(results: Sequence[JobTestResult]) -> str:
    """Return the results as JUnit writes them, which every CI reads."""
    broken = sum(result.is_broken for result in results)
    red = sum(bool(result.problems) for result in results) - broken
    total = f"{sum(result.seconds for result in results):.3f}"
    head = f'tests="{len(results)}" failures="{red}" errors="{broken}" time="{total}"'
    cases = "".join(map(_case, results))
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<testsuites {head}>\n<testsuite name="deepwork jobs" {head}>\n{cases}</testsuite>\n</testsuites>\n'
    )


def _case(result: JobTestResult) -> str:
    name = result.file.name.removesuffix(SUFFIX)
    opening = (
        f"<testcase classname={_attribute(result.name or result.file.parent.name)} name={_attribute(name)} "
        f'file={_attribute(str(result.file))} time="{result.seconds:.3f}"'
    )
    if not result.problems:
        return f"{opening}/>\n"
    kind = "error" if result.is_broken else "failure"
    text = escape(visible_lines("\n".join([*result.lines, "", *result.conversation])))
    return f"{opening}><{kind} message={_attribute(result.lines[0])}>{text}</{kind}></testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(visible_lines(text))
