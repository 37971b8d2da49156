"""Measure what the project promises: `python tools/figures.py all`, or one figure by its name.

A figure that is missed is printed as missed. The exit code is 1 only when behaviour is broken: an exception that
escapes, a good job that is not listed, a bomb that is accepted.
"""

from __future__ import annotations

import json
import logging
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import click
from fastmcp import Client
from hostile_jobs import BOMBS, MIB, MUTATORS, WIDE, big_job, good_job
from rows import Row, show

from deepwork.api import Job, JobReader
from deepwork.builtin.local_jobs import PACKAGED, FolderJobs
from deepwork.jobs.catalogue import Catalogue
from deepwork.server import create_server
from deepwork.testing import output, review, step
from deepwork.testing.project import DeepworkProject

SEED = 20_260_101
BOMB_SECONDS = 1.0
BOMB_MIB = 50.0
MODEL_TOKENS = 700
ANSWER_TOKENS = 2_500
ENVELOPE_TOKENS = 850
SESSION_ID = "<session id>"
SAMPLE_IDS = 50
AUTHORS_TEXTS = ("step_instructions", "common_job_info")
ADDITIVE = (
    "active_sessions",
    "additional_review_guidance",
    "branch_name",
    "concurrent_steps",
    "from_step",
    "notices",
    "outputs_by_step",
    "path",
    "step_inputs",
)


@click.group()
def main() -> None:
    """Measure what the project promises."""
    logging.disable()


# Job files that nobody means to write: mutated ones, and bombs.


def measure_mutations(count: int) -> Iterable[Row]:
    """List a mutated job beside a good one, again and again."""
    originals = [big_job(), *((PACKAGED / name / "job.yml").read_text() for name in ("deepwork_jobs", "project_tour"))]
    seen: Counter[str] = Counter()
    broken: list[str] = []
    with TemporaryDirectory() as folder:
        jobs = Path(folder)
        (jobs / "good").mkdir()
        (jobs / "good" / "job.yml").write_text(good_job())
        file = jobs / "mutated" / "job.yml"
        file.parent.mkdir()
        catalogue = Catalogue([FolderJobs("project", 0, [JobReader(jobs)])])
        for number in range(count):
            chance = random.Random(SEED + number)
            file.write_bytes(MUTATORS[number % len(MUTATORS)](chance.choice(originals), chance))
            seen.update(judge(catalogue, file, broken, number))
    without = seen["without a line"]
    yield Row(
        f"mutated job files ({count:,})",
        "0 exceptions, good listed",
        f"{seen['exception']} exceptions, good job listed {seen['good']:,} times",
        seen["exception"] == 0 and seen["good"] == count,
        tuple(broken),
    )
    yield Row(
        f"errors of mutated files ({seen['errors']:,})",
        "all name file and line",
        f"{seen['errors'] - without:,} with a line, {seen['nothing to point at']} of empty files without",
        without == seen["nothing to point at"],
    )


def judge(catalogue: Catalogue, file: Path, broken: list[str], number: int) -> Iterable[str]:
    """List the jobs once, and say what was seen; what may not be is added to `broken`."""
    try:
        listing = catalogue.list()
        good = isinstance(catalogue.find("good"), Job)
    except Exception as error:  # noqa: BLE001 - that nothing escapes is what is measured
        broken.append(f"mutation {number}: {error!r}")
        yield "exception"
        return
    if good and "good" in [job.name for _, job in listing.jobs]:
        yield "good"
    else:
        broken.append(f"mutation {number}: the good job is not listed")
    for _, error in listing.errors:
        yield "errors"
        lines = error.message.removeprefix("Failed to load: ").splitlines()
        if not all(line.startswith(str(file)) for line in lines):
            broken.append(f"mutation {number}: an error does not name its file: {error.message[:200]!r}")
        if not re.match(rf"{re.escape(str(file))}:\d+: ", lines[0]):
            yield "without a line"
            if not re.sub(rb"(?m)^\s*(#.*|---|\.\.\.)?$", b"", file.read_bytes()).strip(b"\xef\xbb\xbf\0\r\n "):
                yield "nothing to point at"


@main.command()
@click.option("--count", default=10_000, show_default=True)
def mutations(count: int) -> None:
    """Mutated job files beside a good one."""
    show(measure_mutations(count))


@dataclass(frozen=True)
class Blast:
    """What one bomb did to the process that listed it; the seconds are those of the processor."""

    name: str
    seconds: float
    mib: float
    refused: bool
    good: bool
    message: str

    @property
    def within(self) -> bool:
        """Say whether it kept to the limits of the figure."""
        return self.seconds <= BOMB_SECONDS and self.mib <= BOMB_MIB


def measure_bombs() -> Iterable[Row]:
    """List each bomb beside a good job, in a process of its own."""
    yield bomb_row(f"bomb shapes ({len(BOMBS)})", BOMBS)
    yield bomb_row(f"widest files within limits ({len(WIDE)})", WIDE)


def bomb_row(figure: str, shapes: dict[str, Callable[[], str | bytes]]) -> Row:
    """Measure some shapes."""
    blasts = [blast(name, make()) for name, make in shapes.items()]
    missed = [one for one in blasts if not one.within]
    for one in missed:
        click.echo(f"  over: {one.name}: {one.seconds:.2f} s, +{one.mib:.0f} MiB", err=True)
    measured = f"{sum(one.refused for one in blasts)} refused, {len(blasts) - len(missed)} within"
    worst = f"most {max(one.seconds for one in blasts):.2f} s, +{max(one.mib for one in blasts):.0f} MiB"
    broken = [f"{one.name} was accepted" for one in blasts if not one.refused]
    broken += [f"{one.name} hid the good job" for one in blasts if not one.good]
    broken += [f"{one.name} has a message of {len(one.message):,}" for one in blasts if len(one.message) > 25_000]
    goal = f"each in {BOMB_SECONDS:g} s and {BOMB_MIB:g} MiB"
    return Row(figure, goal, f"{measured}; {worst}", not missed, tuple(broken))


def blast(name: str, content: str | bytes) -> Blast:
    """Let another process list a folder with a good job and this one."""
    with TemporaryDirectory() as folder:
        for job, text in (("good", good_job()), ("bomb", content)):
            (Path(folder) / job).mkdir()
            (Path(folder) / job / "job.yml").write_bytes(text if isinstance(text, bytes) else text.encode())
        command = [sys.executable, __file__, "blast", folder]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        except subprocess.SubprocessError as error:
            return Blast(name, 120, 0, refused=False, good=False, message=str(error))
    return Blast(name, **json.loads(done.stdout))


@main.command("blast", hidden=True)
@click.argument("folder", type=click.Path(path_type=Path))
def list_bomb(folder: Path) -> None:
    """List a folder, and print what that cost this process as JSON."""
    reader = JobReader(folder)
    reader.read("good")
    before, start = memory("VmRSS"), time.process_time()
    catalogue = Catalogue([FolderJobs("project", 0, [reader])])
    listing = catalogue.list()
    facts = {
        "seconds": time.process_time() - start,
        "mib": (memory("VmHWM") - before) / MIB,
        "refused": [error.job_name for _, error in listing.errors] == ["bomb"],
        "good": [job.name for _, job in listing.jobs] == ["good"],
        "message": "".join(error.message for _, error in listing.errors),
    }
    click.echo(json.dumps(facts))


def memory(name: str) -> int:
    """Give the memory of this process in bytes, now (VmRSS) or at most (VmHWM); elsewhere than on Linux at most."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(rf"{name}:\s*(\d+) kB", status.read_text())[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@main.command()
def bombs() -> None:
    """Job files made to take time or memory."""
    show(measure_bombs())


# Tokens.


def measure_tokens() -> Iterable[Row]:
    """Count what an agent's context pays for the four tools."""
    from splintr import Tokenizer

    with TemporaryDirectory() as folder:
        answer = json.loads(anyio.run(tools_list, folder))
    read = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in answer["tools"]]
    encode = Tokenizer.from_pretrained("o200k_base").encode
    for figure, value, goal in (
        (f"what a model reads of {len(read)} tools", read, MODEL_TOKENS),
        ("the whole answer of tools/list", answer, ANSWER_TOKENS),
    ):
        count = len(encode(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))
        yield Row(figure, f"at most {goal:,} tokens", f"{count:,} tokens (o200k)", count <= goal)


async def tools_list(folder: str) -> str:
    """Give the answer of tools/list for the core's tools, as JSON."""
    async with Client(create_server(folder, tools=["core"])) as client:
        return (await client.list_tools_mcp()).model_dump_json(by_alias=True, exclude_none=True)


@main.command()
def tokens() -> None:
    """What the tools cost an agent's context."""
    show(measure_tokens())


# The envelope: what the replies of a run cost besides what the author of the job has written.


def measure_envelope() -> Iterable[Row]:
    """Count the replies of a run of three steps without the author's texts; the last has three outputs and a review."""
    from splintr import Tokenizer

    with TemporaryDirectory() as folder:
        replies = anyio.run(run_of_three_steps, DeepworkProject(Path(folder)))
    encode = Tokenizer.from_pretrained("o200k_base").encode

    random_ids = random.Random(SEED)
    ids = [f"{random_ids.getrandbits(128):032x}" for _ in range(SAMPLE_IDS)]

    def tokens_of(value: Any) -> int:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return round(sum(len(encode(text.replace(SESSION_ID, sample))) for sample in ids) / SAMPLE_IDS)

    whole = sum(map(tokens_of, replies))
    envelope = sum(tokens_of(without_author(reply)) for reply in replies)
    empty = sum(tokens_of({key: value}) for reply in replies for key, value in additive_and_empty(reply))
    yield Row(
        "the replies of a run of three steps",
        f"at most {ENVELOPE_TOKENS:,} tokens",
        f"{envelope:,} tokens (o200k), {whole:,} with the author's texts",
        envelope <= ENVELOPE_TOKENS,
        (f"{empty} tokens of additive fields that say nothing",) if empty else (),
    )


async def run_of_three_steps(project: DeepworkProject) -> list[dict[str, Any]]:
    """Do a workflow from its listing to its end, in a project with five jobs, and give every reply."""
    outputs = {name: output() for name in ("polish.md", "summary.md", "changes.md")}
    steps = [step("outline"), step("draft"), step("polish", outputs=outputs, reviews=[review()])]
    project.write_job("guide", steps, {"write_guide": ["outline", "draft", "polish"]})
    for name in ("release", "survey"):  # two packaged jobs are listed besides
        project.write_job(name)
    files = {
        item["id"]: {name: str(project.write(name).relative_to(project.root)) for name in item["outputs"]}
        for item in steps
    }
    async with project.agent(tools=["core"]) as agent:
        call = {"goal": "A guide for users", "job_name": "guide", "workflow_name": "write_guide"}
        replies = [await agent.call("get_workflows"), await agent.call("start_workflow", **call)]
        session_id = replies[-1]["begin_step"]["session_id"]
        for name, paths in files.items():
            report = {"outputs": paths, "session_id": session_id, "step_id": name}
            replies.append(await agent.call("finished_step", **report))
        passed = {"quality_review_override_reason": "Good: passed"}
        replies.append(await agent.call("finished_step", **report, **passed))
    # The temporary folder is longer than those of people, and the tokens of an id differ from run to run.
    text = json.dumps(replies).replace(session_id, SESSION_ID).replace(str(project.root), "/home/ana/guide")
    return list(json.loads(text))


def without_author(value: Any) -> Any:
    """Leave out what the author of a job has written: instructions and what all steps are told."""
    if isinstance(value, dict):
        return {key: "" if key in AUTHORS_TEXTS else without_author(item) for key, item in value.items()}
    return [without_author(item) for item in value] if isinstance(value, list) else value


def additive_and_empty(value: Any) -> Iterable[tuple[str, Any]]:
    """Find the fields that say nothing and that no document of the specification has."""
    items = value.items() if isinstance(value, dict) else ()
    for key, item in items:
        if key in ADDITIVE and item in (None, "", [], {}):
            yield key, item
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from additive_and_empty(item)


@main.command()
def envelope() -> None:
    """What the replies of a run cost an agent's context."""
    show(measure_envelope())


# Everything. A further figure is a function that gives rows, a command that shows them, and a line here.


@main.command("all")
@click.option("--count", default=10_000, show_default=True, help="Mutated job files.")
def everything(count: int) -> None:
    """Every figure."""

    def rows() -> Iterable[Row]:
        yield from measure_tokens()
        yield from measure_envelope()
        yield from measure_bombs()
        yield from measure_mutations(count)

    show(rows())


if __name__ == "__main__":
    main()
