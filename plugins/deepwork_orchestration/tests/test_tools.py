"""What agents are served: subsets, their cost, and instructions that fit."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from splintr import Tokenizer

from deepwork_orchestration.tools import ALL, INSTRUCTIONS, OBSERVER, WORKER

pytestmark = pytest.mark.anyio

READS = """workflow_get workflow_list workflow_get_summary workflow_next_tasks workflow_progress task_get
task_load_context task_check_dependencies checkpoint_list workspace_list repository_list repository_get template_list
agent_get agent_list"""


async def served(project, *names):
    async with project.agent(tools=list(names)) as agent:
        return (await agent.client.list_tools_mcp()).model_dump(by_alias=True, exclude_none=True)["tools"]


@pytest.mark.parametrize(
    ("name", "tools", "most"),
    [
        ("orchestration", ALL, 6000),
        ("orchestration:coordinator", ALL, 6000),
        ("orchestration:worker", WORKER, 2300),
        ("orchestration:observer", OBSERVER, 1500),
    ],
)
async def test_a_subset_has_its_tools_and_costs_no_more_than_promised(project, name, tools, most):
    answer = await served(project, name)
    assert sorted(tool["name"] for tool in answer) == sorted(tools)
    read = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in answer]
    text = json.dumps(read, ensure_ascii=False, separators=(",", ":"))
    assert len(Tokenizer.from_pretrained("o200k_base").encode(text)) <= most


async def test_there_are_43_tools_and_those_that_read_say_so(project):
    answer = await served(project, "orchestration")
    assert len(answer) == 43
    assert sorted(OBSERVER) == sorted(READS.split())
    read_only = {tool["name"] for tool in answer if tool["annotations"]["readOnlyHint"]}
    assert read_only == {*OBSERVER, "task_get_available", "message_list", "message_count_unread"}


async def test_two_subsets_are_joined(project):
    answer = await served(project, "orchestration:observer", "orchestration:worker")
    assert {tool["name"] for tool in answer} == {*OBSERVER, *WORKER}


async def test_no_schema_says_more_than_it_has_to(project):
    text = json.dumps([tool["inputSchema"] for tool in await served(project, "orchestration")])
    assert '"default": null' not in text
    assert text.count('"null"') == 1  # agent_update.current_task_id, which null clears


def test_the_instructions_fit_beside_those_of_core_and_review(project):
    assert len(INSTRUCTIONS) <= 400
    assert INSTRUCTIONS in project.server(tools=["core", "orchestration"]).instructions


def test_declaring_the_tools_loads_no_database():
    code = (
        "import sys, tempfile\nfrom deepwork.server import create_server\n"
        "create_server(tempfile.mkdtemp(), tools=['orchestration'])\nprint(*sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in process.stdout.split()}
    assert not loaded & {"sqlalchemy", "alembic", "psycopg", "splintr"}
