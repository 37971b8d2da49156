"""`deepwork jobs show` and `jobs graph`: a job as a tree, and its workflows as graphs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path

import click

from deepwork.api import Job, Step, Workflow, project_at
from deepwork.builtin.authoring.places import load_job, project_folder
from deepwork.commands.options import path_option
from deepwork.commands.terminal import Styled, say, say_text
from deepwork.models.jobs import FileInput
from deepwork.text import shorten, visible

MAX_LABEL = 60
MAX_EDGES = 100  # between two entries: Mermaid draws no chart of more than 500


@click.command("show")
@click.argument("job_name", metavar="JOB")
@path_option
def show(job_name: str, root: str) -> None:
    """Show a job as a tree: workflows, steps, inputs, outputs, reviews, and who reviews."""
    folder = project_folder(root)
    job = load_job(Path(job_name), folder)
    project = project_at(folder)
    gate = project.gate() if project.has_gate() else None

    def reviewer(step: Step, run_each: str) -> str:
        if gate is None:
            return "nobody: the quality gate is off"
        return ", then ".join(reviewer.name for reviewer in gate.reviewers(job.name, step)[run_each])

    definition = job.definition
    say(Styled(f"{job.name} {definition.version}", bold=True), f"  {definition.summary}")
    steps = {step.id: step for step in definition.steps}
    for workflow in definition.workflows:
        say(Styled(f"  workflow {workflow.name}", bold=True), f"  {workflow.summary}")
        for number, entry in enumerate(workflow.entries, 1):
            if len(entry) > 1:
                say(f"    {number}. at the same time:")
            for step_id in entry:
                place = "       -" if len(entry) > 1 else f"    {number}."
                for line in _step_lines(steps[step_id], place, reviewer):
                    say(line)
    used = {step_id for workflow in definition.workflows for step_id in workflow.step_ids}
    unused = [step for step in definition.steps if step.id not in used]
    if unused:
        say("  in no workflow")
    for step in unused:
        for line in _step_lines(step, "    -", reviewer):
            say(line)


def _step_lines(step: Step, place: str, reviewer: Callable[[Step, str], str]) -> Iterator[str]:
    indent = " " * (len(place) + 1)
    yield f"{place} {step.id}  {step.name}"
    for item in step.inputs:
        if isinstance(item, FileInput):
            yield f"{indent}input   {item.file}  of {item.from_step}"
        else:
            yield f"{indent}input   {item.name}  from the user: {item.description}"
    for name, output in step.outputs.items():
        yield f"{indent}output  {name}  ({output.type}{'' if output.required else ', optional'}) {output.description}"
    for review in step.reviews:
        criteria = ", ".join(review.quality_criteria)
        yield f"{indent}review  {review.run_each}  by {reviewer(step, review.run_each)}: {criteria}"


@click.command("graph")
@click.argument("job_name", metavar="JOB")
@path_option
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print Mermaid, which forges and editors draw.")
def graph(job_name: str, root: str, as_mermaid: bool) -> None:
    """Draw the workflows of a job: each entry below the one before it, a group in a box."""
    job = load_job(Path(job_name), project_folder(root))
    if as_mermaid:
        say_text(mermaid(job))
        return
    width = shutil.get_terminal_size().columns
    for workflow in job.definition.workflows:
        say(Styled(shorten(workflow.name, width), bold=True))
        for line in _drawn(job, workflow, width):
            say(line)


def _drawn(job: Job, workflow: Workflow, width: int) -> Iterator[str]:
    """Yield the lines of a workflow, none of them wider than the terminal."""
    names = {step.id: step.name for step in job.definition.steps}
    for number, entry in enumerate(workflow.entries):
        if number:
            yield "  │"
        marks = ["●"] if len(entry) == 1 else ["┌", *["├"] * (len(entry) - 2), "└"]
        for mark, step_id in zip(marks, entry, strict=True):
            yield shorten(f"  {mark} {step_id}  {visible(names[step_id])}", width)


def mermaid(job: Job) -> str:
    """Return the workflows as a Mermaid flowchart: each entry leads to the next one."""
    names = {step.id: step.name for step in job.definition.steps}
    lines = ["flowchart TD"]
    for number, workflow in enumerate(job.definition.workflows):
        lines.append(f'  subgraph w{number}["{workflow.name}"]')
        for entry in workflow.entries:
            lines += [f'    w{number}_{step_id}["{_label(step_id, names[step_id])}"]' for step_id in entry]
        for entry, following in pairwise(workflow.entries):
            lines += [
                f"    w{number}_{step_id} --> w{number}_{next_id}" for step_id, next_id in _edges(entry, following)
            ]
        lines.append("  end")
    return "\n".join(lines)


def _edges(entry: Sequence[str], following: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Return which steps of two entries are joined; of two large groups the first step alone with all of the other."""
    if len(entry) * len(following) <= MAX_EDGES:
        return product(entry, following)
    return dict.fromkeys([*product(entry[:1], following), *product(entry, following[:1])])


def _label(step_id: str, name: str) -> str:
    """Write id and name so that Mermaid takes no character of them for its own."""
    plain = "".join(
        char if char.isalnum() or char in " .,_-" else f"#{ord(char)};" for char in visible(name[:MAX_LABEL])
    )
    return f"{step_id}: {plain}"
