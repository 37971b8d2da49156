"""The blockers of tracked work wait in the inbox of the project, and are resolved there."""

from __future__ import annotations

import getpass
import json

import pytest

import deepwork_sql
from deepwork.api import Answerer, open_context

pytestmark = pytest.mark.anyio


async def test_a_blocker_waits_until_a_person_resolves_it(shared):
    async with shared.tracker() as agent:
        workflow_id, _, task_id = await agent.running(name="write")
        issue = {"task_id": task_id, "type": "unclear_requirement", "resolution": "guessed"}
        await agent.call("log_issue", **issue, description="Which colour?")
        logged = await agent.call("log_issue", **issue, description="Which key?", requires_human_review=True)
    [item] = json.loads(shared.run("inbox", "--json").stdout)["items"]
    assert item["id"] == f"tracking:{logged['issue_id']}"
    assert (item["kind"], item["who"], item["what"]) == ("blocker", "ann", "write: Which key?")
    assert item["reference"] == {"kind": "tracked-workflow", "id": workflow_id, "issue_id": logged["issue_id"]}
    for words in (
        ("inbox", "answer", item["id"], "resolve", "--text", "the red one"),
        ("track", "resolve", logged["issue_id"], "--note", "the red one", "--by", "ann"),
    ):
        refused = shared.run(*words)
        assert (refused.returncode, "Only a person may" in refused.stderr) == (1, True)
    [same] = json.loads(shared.run("inbox", "--json").stdout)["items"]
    assert same == item
    resolution = shared.run_at_terminal("inbox", "answer", item["id"], "resolve", "--text", "the red one")
    assert resolution.stdout == f"{logged['issue_id']} is resolved by {getpass.getuser()}\n"
    assert json.loads(shared.run("inbox", "--json").stdout)["items"] == []
    assert json.loads(shared.run("track", "blockers", "--json").stdout)["blockers"] == []


async def test_a_flood_of_blockers_hides_neither_older_ones_nor_those_of_other_workflows(shared, monkeypatch):
    """The oldest of each workflow are listed, and the rest is counted."""
    monkeypatch.setattr("deepwork_tracking.inbox.MAX_BLOCKERS", 4)
    issue = {"type": "unclear_requirement", "resolution": "guessed", "requires_human_review": True}
    async with shared.tracker() as agent:
        _, _, loud = await agent.running(name="loud")
        for number in range(6):
            await agent.call("log_issue", **issue, task_id=loud, description=f"{number} " + "x" * 10_000)
        _, _, quiet = await agent.running(name="quiet")
        await agent.call("log_issue", **issue, task_id=quiet, description="quiet")
    async with open_context("test", shared.root) as context:
        contents = await context.inbox().items(Answerer())
    assert [item.what[:9] for item in contents.items] == ["loud: 0 x", "loud: 1 x", "loud: 2 x", "quiet: qu"]
    assert (contents.more, contents.failures) == (3, ())
    listed = json.loads(shared.run("track", "blockers", "--limit", "2", "--json").stdout)
    assert ([row["task_name"] for row in listed["blockers"]], listed["more"]) == (["loud", "quiet"], 5)
    assert shared.run("track", "blockers", "--limit", "2").stderr == "and 5 more; --limit lists more of them\n"


async def test_looking_at_the_inbox_makes_no_database(repo):
    assert json.loads(repo.run("inbox", "--json").stdout) == {"items": [], "failures": [], "more": 0}
    assert not deepwork_sql.has_database(open_context("sql", repo.root))
