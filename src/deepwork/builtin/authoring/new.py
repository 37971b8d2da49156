"""`deepwork jobs new`: a job that is clean, can be tried, and has a test."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from deepwork.builtin.authoring.places import project_folder
from deepwork.commands.options import path_option
from deepwork.commands.terminal import say
from deepwork.errors import ConfigError, PathRefused
from deepwork.paths.paths import describe, resolve_inside

EXAMPLES = Path(__file__).parent / "examples"
EXAMPLE_NAMES = ("release", "bug_fix", "research_report", "migration", "incident_review")
MAX_LIST = 100_000
MAX_STEPS = 100

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
            steps = _asked_steps()
        files = written_job(name, summary or "", [_step(text) for text in steps])
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
        raise ConfigError(f"there is a job {name!r} already: {folder}", hint="Choose another name.")
    return folder


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with open(folder / path, "x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written: {error.strerror}", hint="Look at the folder's rights."
        ) from None


def _example(example: str, name: str, summary: str | None) -> dict[str, str]:
    """Return the files of an example, under another name."""
    source = EXAMPLES / example
    files = {str(file.relative_to(source)): file.read_text("utf-8") for file in sorted(source.rglob("*.*"))}
    job = files["job.yml"].replace(f"name: {example}\n", f"name: {name}\n", 1)
    if summary:
        job = re.sub(r"^summary: .*$", lambda _: f"summary: {_quoted(summary)}", job, count=1, flags=re.MULTILINE)
    test = files["main.test.yml"].replace(f"job: {example}\n", f"job: {name}\n", 1)
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
    ids: list[str] = []
    for text in texts:
        words = re.findall(r"[a-z0-9]+", text.lower())[:3]
        slug = "_".join(words) if words and words[0][0].isalpha() else "_".join(["step", *words])
        ids.append(slug if slug not in ids else f"{slug}_{len(ids) + 1}")
    return title, [(step_id, f"{step_id}.md", text) for step_id, text in zip(ids, texts, strict=True)]


def _asked_steps() -> tuple[str, ...]:
    steps: list[str] = []
    while True:
        step = str(click.prompt("A step, as ID:OUTPUT; nothing to end", default="", show_default=False))
        if not step and steps:
            return tuple(steps)
        if step:
            _step(step)
            steps.append(step)


def _step(text: str) -> tuple[str, str, str]:
    step_id, _, output = text.partition(":")
    if not _NAME.fullmatch(step_id) or not output.strip():
        raise click.BadParameter(f"{text!r} is not ID:OUTPUT, such as draft:report.md", param_hint="--step")
    title = step_id.replace("_", " ").capitalize()
    return step_id, output.strip(), title


def written_job(name: str, summary: str, steps: Sequence[tuple[str, str, str]]) -> dict[str, str]:
    """Return the files of a job whose steps follow each other: id, output and task of each.

    Raises:
        UsageError: There are no steps or no summary, or an id is used twice.
    """
    if not steps or not summary.strip():
        raise click.UsageError("Give --from, or --summary and at least one --step ID:OUTPUT.")
    ids = [step_id for step_id, _, _ in steps]
    if len({*ids}) < len(ids):
        raise click.BadParameter(f"a step id is used twice: {', '.join(ids)}", param_hint="--step")
    summary = " ".join(summary.split())[:_SUMMARY_LENGTH]
    job = [
        f"name: {name}",
        'version: "1.0.0"',
        f"summary: {_quoted(summary)}",
        f"common_job_info_provided_to_all_steps_at_runtime: {_quoted(f'The purpose of all steps: {summary}')}",
        "",
        "workflows:",
        f"  - {{name: main, summary: {_quoted(summary)}, steps: [{', '.join(ids)}]}}",
        "",
        "steps:",
    ]
    test = ["version: 1", f"job: {name}", "workflow: main", "steps:"]
    files: dict[str, str] = {}
    for index, (step_id, output, text) in enumerate(steps):
        job += _step_lines(step_id, output, text, steps[index - 1] if index else None)
        files[f"steps/{step_id}.md"] = f"# {text}\n\nSay here how it is done. Write the result to `{output}`.\n"
        test += [f"  - step: {step_id}", f"    outputs: {{{_quoted(output)}: {{out/{step_id}.md: {_quoted(text)}}}}}"]
        if index + 1 < len(steps):
            test.append(f"    expect: {{status: next_step, reads: [{_quoted(steps[index + 1][2])}, out/{step_id}.md]}}")
    test += ["expect:", "  status: workflow_complete", f"  steps: [{', '.join(ids)}]"]
    return {"job.yml": "\n".join(job), **files, "main.test.yml": "\n".join([*test, ""])}


def _step_lines(step_id: str, output: str, text: str, before: tuple[str, str, str] | None) -> list[str]:
    lines = [
        f"  - id: {step_id}",
        f"    name: {_quoted(text)}",
        f"    description: {_quoted(text)}",
        f"    instructions_file: steps/{step_id}.md",
    ]
    if before:
        lines += [
            f"    dependencies: [{before[0]}]",
            f"    inputs: [{{file: {_quoted(before[1])}, from_step: {before[0]}}}]",
        ]
    description = _quoted(f"The result of: {text}")
    return [
        *lines,
        "    outputs:",
        f"      {_quoted(output)}: {{type: file, description: {description}, required: true}}",
        "    reviews: []",
        "",
    ]


def _quoted(text: str) -> str:
    """Write a text so that YAML reads it back."""
    return (
        text
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", text) and "." in text
        else json.dumps(text, ensure_ascii=False)
    )
