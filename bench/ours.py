"""What our tools and replies cost an agent's context: figures of this project alone, against a budget."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import anyio
from fastmcp import Client

from bench.contestants import Contestant
from bench.measure import Run
from deepwork.server import create_server
from deepwork.testing import output, review, step
from deepwork.testing.project import DeepworkProject

SEED = 20_260_101
ANSWER_TOKENS = 2_500
MODEL_TOKENS = {"core": 700, "orchestration": 6000, "orchestration:worker": 2300, "orchestration:observer": 1500}
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

CORE = Contestant("core", "")


def measure_tokens(run: Run) -> None:
    """Count the tokens of the tools of the core, and of the replies of a run of three steps."""
    for _ in run.rounds("tokens", repeats=1, warm_up=False):
        project = DeepworkProject(run.folder)
        run.add("tokens.list", CORE, tokens_of(tools_list(project, "core")), ANSWER_TOKENS)
        run.add("tokens.tools", CORE, tokens_of_tools(project, "core"), MODEL_TOKENS["core"])
        own, empty = envelope(project)
        run.add("tokens.replies", CORE, own, ENVELOPE_TOKENS)
        run.add("tokens.empty", CORE, empty, 0)


def measure_orchestration(run: Run) -> None:
    """Count the tokens of the tools of orchestration, and of its subsets."""
    for _ in run.rounds("orchestration", repeats=1, warm_up=False):
        for name, most in MODEL_TOKENS.items():
            if name != "core":
                run.add("tokens.tools", Contestant(name, ""), tokens_of_tools(DeepworkProject(run.folder), name), most)


@cache
def _tokenizer() -> Any:
    from splintr import Tokenizer

    return Tokenizer.from_pretrained("o200k_base")


def count(text: str) -> int:
    """Return how many tokens of o200k a text costs."""
    return len(_tokenizer().encode(text))


def tokens_of(value: Any) -> int:
    """Return how many tokens a value costs, as JSON without spaces."""
    return count(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def tools_list(project: DeepworkProject, name: str) -> dict[str, Any]:
    """Return the answer of tools/list for a tool set."""

    async def ask() -> str:
        async with Client(create_server(project.root, tools=[name])) as client:
            listed = await client.list_tools_mcp()
        text: str = listed.model_dump_json(by_alias=True, exclude_none=True)
        return text

    answer: dict[str, Any] = json.loads(anyio.run(ask))
    return answer


def tokens_of_tools(project: DeepworkProject, name: str) -> int:
    """Count the tokens of what a model reads of a tool set."""
    tools = tools_list(project, name)["tools"]
    return tokens_of([{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools])


def envelope(project: DeepworkProject) -> tuple[int, int]:
    """Return the tokens of the replies of a run without its author's texts, and of additive fields that say nothing."""
    replies = anyio.run(run_of_three_steps, project)
    random_ids = random.Random(SEED)
    ids = [f"{random_ids.getrandbits(128):032x}" for _ in range(SAMPLE_IDS)]

    def mean_tokens_of(value: Any) -> int:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return round(sum(count(text.replace(SESSION_ID, sample)) for sample in ids) / SAMPLE_IDS)

    own = sum(mean_tokens_of(without_author(reply)) for reply in replies)
    return own, sum(mean_tokens_of({key: value}) for reply in replies for key, value in additive_and_empty(reply))


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
