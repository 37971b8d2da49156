"""`deepwork jobs new`: a job that is clean, can be tried, and has a test."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path

import click

from deepwork.builtin.authoring.places import project_folder
from deepwork.commands.options import path_option
from deepwork.commands.terminal import say
from deepwork.errors import ConfigError, PathRefused
from deepwork.paths.paths import describe, resolve_inside
from deepwork.text import yaml_text

EXAMPLES = Path(__file__).parent / "examples"
EXAMPLE_NAMES = ("release", "bug_fix", "research_report", "migration", "incident_review")
MAX_LIST = 100_000
MAX_STEPS = 100
MAX_ID = 60

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_ITEM = re.compile(r"^(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(\S.*)$")
_SUMMARY_LENGTH = 200


@click.command("new", epilog="Example: deepwork jobs new weekly --summary 'Report the week' --step draft:report.md")
@click.argument("name")
@click.option(
    "--from",
    "origin",
    metavar="EXAMPLE|FILE.md",
    help=f"An example ({', '.join(EXAMPLE_NAMES)}), or a Markdown file whose list items become steps.",
)
@click.option("--summary", metavar="TEXT", help="What the job is for, in a sentence.")
@click.option("--step", "steps", multiple=True, metavar="ID:OUTPUT", help="A step and its output; can be repeated.")
@path_option
def new(name: str, origin: str | None, summary: str | None, steps: tuple[str, ...], root: str) -> None:
    """Create a job with instructions and a test; without options it asks at a terminal."""
    if origin is not None and steps:
        raise click.UsageError("Choose one of --from and --step.")
    folder = _new_folder(name, project_folder(root))
    is_asking = sys.stdin.isatty() and origin is None and not steps
    if is_asking:
        choice = click.Choice([*EXAMPLE_NAMES, "nothing"])
        chosen = str(click.prompt("Start from", type=choice, default="nothing"))
        origin = None if chosen == "nothing" else chosen
    if origin in EXAMPLE_NAMES:
        files = _example(origin, name, summary)
    elif origin is not None:
        title, items = _listed(Path(origin))
        files = written_job(name, summary or title or f"Do what {Path(origin).name} lists", items)
    else:
        if is_asking:
            summary = summary or str(click.prompt("What is it for, in a sentence"))
        files = written_job(name, summary or "", _asked_steps() if is_asking else [*map(_step, steps)])
    _write(folder, files)
    say(f"Created {folder}: {', '.join(files)}")
    say(f"Next: deepwork jobs try {name}, deepwork jobs test {name}", err=True)


def _new_folder(name: str, root: Path) -> Path:
    if not _NAME.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} is no name: lower-case letters, digits and '_', beginning with a letter", param_hint="NAME"
        )
    try:
        folder, _ = resolve_inside(f".deepwork/jobs/{name}", [root])
    except PathRefused as error:
        raise ConfigError(f".deepwork/jobs {error.message}") from None
    if os.path.lexists(folder):
        raise _taken(folder)
    return folder


def _taken(folder: Path) -> ConfigError:
    return ConfigError(f"there is a job {folder.name!r} already: {folder}", hint="Choose another name.")


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
    except FileExistsError:  # made since the questions were asked; it is not ours to remove
        raise _taken(folder) from None
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with open(folder / path, "x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{folder} cannot be written: {error.strerror}", hint="Look at the folder's rights.")


def _example(example: str, name: str, summary: str | None) -> dict[str, str]:
    """Return the files of an example, under another name."""
    source = EXAMPLES / example
    files = {str(file.relative_to(source)): file.read_text("utf-8") for file in sorted(source.rglob("*.*"))}
    job = files["job.yml"].replace(f"name: {example}\n", f"name: {yaml_text(name)}\n", 1)
    if summary:
        job = re.sub(r"^summary: .*$", lambda _: f"summary: {yaml_text(summary)}", job, count=1, flags=re.MULTILINE)
    test = files["main.test.yml"].replace(f"job: {example}\n", f"job: {yaml_text(name)}\n", 1)
    return {**files, "job.yml": job, "main.test.yml": test}


def _listed(file: Path) -> tuple[str | None, list[tuple[str, str, str]]]:
    """Return the title of a Markdown file, and its list items as id, output and text."""
    try:
        with open(file, encoding="utf-8") as opened:
            lines = opened.read(MAX_LIST).splitlines()
    except UnicodeDecodeError:
        raise ConfigError(
            f"{file} is not UTF-8 text", hint=f"Or name an example: {', '.join(EXAMPLE_NAMES)}."
        ) from None
    except OSError as error:
        hint = f"Give a Markdown file, or an example: {', '.join(EXAMPLE_NAMES)}."
        raise ConfigError(f"{file} {describe(error)}", hint=hint) from None
    title = next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), None)
    texts = [match[1].strip() for line in lines if (match := _ITEM.match(line))][:MAX_STEPS]
    if not texts:
        raise ConfigError(f"{file} has no list items", hint="Begin each step with '- ' or '1. '.")
    return title, [(step_id, f"{step_id}.md", text) for step_id, text in zip(_ids(texts), texts, strict=True)]


def _ids(texts: Iterable[str]) -> Iterator[str]:
    """Yield an id for each text, made of its first words; no two are alike."""
    taken: set[str] = set()
    for text in texts:
        words = re.findall(r"[a-z0-9]+", text.lower())[:3]
        slug = "_".join(words if words and words[0][0].isalpha() else ["step", *words])[:MAX_ID]
        step_id = next(name for name in chain([slug], (f"{slug}_{number}" for number in count(2))) if name not in taken)
        taken.add(step_id)
        yield step_id


def _asked_steps() -> list[tuple[str, str, str]]:
    """Ask for steps until the answer is empty; a wrong one is asked for again."""
    steps: list[tuple[str, str, str]] = []

    def answered(text: str) -> tuple[str, str, str] | None:
        if not text and steps:
            return None
        step = _step(text)
        _refuse_twice([*(step_id for step_id, _, _ in steps), step[0]])
        return step

    while step := click.prompt(
        "A step, as ID:OUTPUT; nothing to end", default="", show_default=False, value_proc=answered
    ):
        steps.append(step)
    return steps


def _step(text: str) -> tuple[str, str, str]:
    step_id, _, output = text.partition(":")
    if not _NAME.fullmatch(step_id) or not output.strip():
        raise click.BadParameter(f"{text!r} is not ID:OUTPUT, such as draft:report.md", param_hint="--step")
    title = step_id.replace("_", " ").capitalize()
    return step_id, output.strip(), title


def _refuse_twice(ids: Sequence[str]) -> None:
    if len({*ids}) < len(ids):
        raise click.BadParameter(f"a step id is used twice: {', '.join(ids)}", param_hint="--step")


def written_job(name: str, summary: str, steps: Sequence[tuple[str, str, str]]) -> dict[str, str]:
    """Return the files of a job whose steps follow each other: id, output and task of each.

    Raises:
        UsageError: There are no steps or no summary, or an id is used twice.
    """
    if not steps or not summary.strip():
        raise click.UsageError("Give --from, or --summary and at least one --step ID:OUTPUT.")
    _refuse_twice([step_id for step_id, _, _ in steps])
    ids = ", ".join(yaml_text(step_id) for step_id, _, _ in steps)
    summary = " ".join(summary.split())[:_SUMMARY_LENGTH]
    job = [
        f"name: {yaml_text(name)}",
        'version: "1.0.0"',
        f"summary: {yaml_text(summary)}",
        f"common_job_info_provided_to_all_steps_at_runtime: {yaml_text(f'The purpose of all steps: {summary}')}",
        "",
        "workflows:",
        f"  - {{name: main, summary: {yaml_text(summary)}, steps: [{ids}]}}",
        "",
        "steps:",
    ]
    test = ["version: 1", f"job: {yaml_text(name)}", "workflow: main", "steps:"]
    files: dict[str, str] = {}
    for index, (step_id, output, text) in enumerate(steps):
        job += _step_lines(step_id, output, text, steps[index - 1] if index else None)
        files[f"steps/{step_id}.md"] = f"# {text}\n\nSay here how it is done. Write the result to `{output}`.\n"
        test += [
            f"  - step: {yaml_text(step_id)}",
            f"    outputs: {{{yaml_text(output)}: {{out/{step_id}.md: {yaml_text(text)}}}}}",
        ]
        if index + 1 < len(steps):
            test.append(
                f"    expect: {{status: next_step, reads: [{yaml_text(steps[index + 1][2])}, out/{step_id}.md]}}"
            )
    test += ["expect:", "  status: workflow_complete", f"  steps: [{ids}]"]
    return {"job.yml": "\n".join(job), **files, "main.test.yml": "\n".join([*test, ""])}


def _step_lines(step_id: str, output: str, text: str, before: tuple[str, str, str] | None) -> list[str]:
    lines = [
        f"  - id: {yaml_text(step_id)}",
        f"    name: {yaml_text(text)}",
        f"    description: {yaml_text(text)}",
        f"    instructions_file: steps/{step_id}.md",
    ]
    if before:
        lines += [
            f"    dependencies: [{yaml_text(before[0])}]",
            f"    inputs: [{{file: {yaml_text(before[1])}, from_step: {yaml_text(before[0])}}}]",
        ]
    description = yaml_text(f"The result of: {text}")
    return [
        *lines,
        "    outputs:",
        f"      {yaml_text(output)}: {{type: file, description: {description}, required: true}}",
        "    reviews: []",
        "",
    ]
