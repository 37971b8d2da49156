"""Measure what the project promises: `python tools/figures.py [NAME …]`, or all with `make figures`.

Each figure is a function that yields rows, and stands in `FIGURES`. A figure that is missed is printed as missed; the
exit code is 1 only when behaviour is broken.
"""

from __future__ import annotations

import json
import logging
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import click
from fastmcp import Client
from rows import Row, show
from splintr import Tokenizer

from deepwork.server import create_server
from deepwork.testing import output, review, step
from deepwork.testing.project import DeepworkProject

sys.path.append(str(Path(__file__).parent.parent / "plugins" / "deepwork_run" / "tools"))
import figures_run

SEED = 20_260_101
MODEL_TOKENS = {"core": 700, "orchestration": 6000, "orchestration:worker": 2300, "orchestration:observer": 1500}
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

encode = Tokenizer.from_pretrained("o200k_base").encode


def tokens_of(value: Any) -> int:
    """Return how many tokens of o200k a value costs, as JSON without spaces."""
    return len(encode(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))


def tokens() -> Iterator[Row]:
    """What the tools of the core cost an agent's context."""
    answer = tools_list("core")
    yield tokens_row("the whole answer of tools/list", answer, ANSWER_TOKENS)
    yield tools_row("core", answer)


def orchestration() -> Iterator[Row]:
    """What the tools of orchestration, and its subsets, cost an agent's context."""
    for name in ("orchestration", "orchestration:worker", "orchestration:observer"):
        yield tools_row(name, tools_list(name))


def tools_row(name: str, answer: dict[str, Any]) -> Row:
    """Count the tokens of what a model reads of a tool set."""
    tools = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in answer["tools"]]
    return tokens_row(f"{name}: {len(tools)} tools", tools, MODEL_TOKENS[name])


def tokens_row(figure: str, value: Any, most: int) -> Row:
    """Count the tokens of a value."""
    count = tokens_of(value)
    return Row(figure, f"at most {most:,} tokens", f"{count:,} tokens (o200k)", count <= most)


def tools_list(name: str) -> dict[str, Any]:
    """Return the answer of tools/list for a tool set."""

    async def ask(folder: str) -> str:
        async with Client(create_server(folder, tools=[name])) as client:
            return (await client.list_tools_mcp()).model_dump_json(by_alias=True, exclude_none=True)

    with TemporaryDirectory() as folder:
        answer: dict[str, Any] = json.loads(anyio.run(ask, folder))
    return answer


def envelope() -> Iterator[Row]:
    """What the replies of a run of three steps cost besides what the author of the job has written."""
    with TemporaryDirectory() as folder:
        replies = anyio.run(run_of_three_steps, DeepworkProject(Path(folder)))
    random_ids = random.Random(SEED)
    ids = [f"{random_ids.getrandbits(128):032x}" for _ in range(SAMPLE_IDS)]

    def mean_tokens_of(value: Any) -> int:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return round(sum(len(encode(text.replace(SESSION_ID, sample))) for sample in ids) / SAMPLE_IDS)

    whole = sum(map(mean_tokens_of, replies))
    own = sum(mean_tokens_of(without_author(reply)) for reply in replies)
    empty = sum(mean_tokens_of({key: value}) for reply in replies for key, value in additive_and_empty(reply))
    yield Row(
        "the replies of a run of three steps",
        f"at most {ENVELOPE_TOKENS:,} tokens",
        f"{own:,} tokens (o200k), {whole:,} with the author's texts",
        own <= ENVELOPE_TOKENS,
        (f"{empty} tokens of additive fields that say nothing",) if empty else (),
    )


async def run_of_three_steps(project: DeepworkProject) -> list[dict[str, Any]]:
    """Do a workflow from its listing to its end, in a project with five jobs, and return every reply.

    The last step has three outputs and a review.
    """
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


def additive_and_empty(value: Any) -> Iterator[tuple[str, Any]]:
    """Find the fields that say nothing and that no document of the specification has."""
    items = value.items() if isinstance(value, dict) else ()
    for key, item in items:
        if key in ADDITIVE and item in (None, "", [], {}):
            yield key, item
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from additive_and_empty(item)


FIGURES: dict[str, Callable[[], Iterable[Row]]] = {
    "tokens": tokens,
    "envelope": envelope,
    "orchestration": orchestration,
    "cuts": figures_run.cuts,
    "resume": figures_run.resume,
    "idle": figures_run.idle,
}


@click.command(epilog="\b\n" + "\n".join(f"{name:14} {figure.__doc__}" for name, figure in FIGURES.items()))
@click.argument("names", nargs=-1, metavar="[NAME]…", type=click.Choice([*FIGURES]))
@click.option("--runs", default=100, show_default=True, help="How many runs `cuts` and `resume` make.")
@click.option("--seed", default=1, show_default=True, help="The same seed cuts at the same points.")
def main(names: tuple[str, ...], runs: int, seed: int) -> None:
    """Measure the figures of these names, or all."""
    logging.disable()
    figures = {
        **FIGURES,
        "cuts": partial(figures_run.cuts, runs, seed),
        "resume": partial(figures_run.resume, runs, seed),
    }
    show(row for name in names or FIGURES for row in figures[name]())


if __name__ == "__main__":
    main()
