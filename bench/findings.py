"""What `deepwork jobs check` finds, to be judged by a person: `python -m bench.findings [FOLDER…]`.

Prints the warnings on valid jobs: those of the corpus, their changes of meaning, and a job for each Markdown file below
the FOLDERs, as its instructions. Then a hundred of the warnings on jobs with a fault, chosen by a seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import anyio
import click

from bench.corpus import write_corpus
from deepwork.builtin.authoring.findings import JobFinding
from deepwork.builtin.authoring.lint import MAX_LINTED, LintedJob, lint
from deepwork.builtin.authoring.mutate import MutationBench
from deepwork.builtin.authoring.operators import Mutants
from deepwork.testing import output, step
from deepwork.testing.project import DeepworkProject

SEED, SAMPLE = 35, 100
# A shorter text says nothing.
LEAST_CHARACTERS = 500


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folders: tuple[Path, ...]) -> None:
    """Print the warnings on valid jobs, and a sample of those on jobs with a fault."""
    with TemporaryDirectory() as temporary:
        place = Path(temporary)
        jobs = write_corpus(place / ".deepwork" / "jobs")
        _show("jobs of the corpus", [(job.name, lint(job)) for job in jobs])
        changed = [found for job in jobs for found in anyio.run(_changed, job, Path(mkdtemp(dir=place)))]
        _show("changes of meaning", [(text, findings) for kind, text, findings in changed if kind == "change"])
        _show("texts of others", [*_of_texts(folders, place / "texts")])
        faults = [
            f"{text} -> {one.message}" for kind, text, ones in changed for one in _warnings(ones) if kind == "fault"
        ]
    click.echo(f"{len(faults)} warnings on jobs with a fault; {SAMPLE} of them:")
    for line in random.Random(SEED).sample(faults, min(SAMPLE, len(faults))):
        click.echo(f"  {line}")


async def _changed(job: Path, folder: Path) -> list[tuple[str, str, list[JobFinding]]]:
    """Return the kind, the change and the findings of each mutant of a job."""
    bench = MutationBench(job, folder, job.parents[2])
    await bench.prepare()
    mutants = Mutants(bench.data, bench.texts, most=bench.most_of_operator)
    return [(mutant.kind, f"{job.name}: {mutant.message}", bench.findings(mutant)) for mutant in mutants]


def _of_texts(folders: tuple[Path, ...], place: Path) -> Iterator[tuple[str, list[JobFinding]]]:
    project = DeepworkProject(place)
    job_dir = project.write_job("job", [step("write", outputs={"report.md": output()})])
    for file in sorted(file for folder in folders for file in folder.rglob("*.md") if file.is_file()):
        text = file.read_text("utf-8", "replace")[:MAX_LINTED]
        if len(text) >= LEAST_CHARACTERS:
            yield str(file), LintedJob(job_dir, {job_dir / "steps" / "write.md": text}).findings()


def _show(what: str, found: list[tuple[str, list[JobFinding]]]) -> None:
    warnings = [f"  {name} -> {one.message}" for name, findings in found for one in _warnings(findings)]
    errors = sum(one.level == "error" for _, findings in found for one in findings)
    click.echo("\n".join([f"{len(found)} {what}: {errors} errors, {len(warnings)} warnings", *warnings]))


def _warnings(findings: list[JobFinding]) -> list[JobFinding]:
    return [finding for finding in findings if finding.level == "warning"]


if __name__ == "__main__":
    main(prog_name="python -m bench.findings")
