"""The blockers of tracked work wait in the inbox of the project, and are resolved there."""

from __future__ import annotations

import getpass
import json

import pytest

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
    done = shared.run("inbox", "answer", item["id"], "resolve", "--text", "the red one")
    assert done.stdout == f"{logged['issue_id']} is resolved by {getpass.getuser()}\n"
    assert json.loads(shared.run("inbox", "--json").stdout)["items"] == []
    assert json.loads(shared.run("track", "blockers", "--json").stdout)["blockers"] == []


async def test_looking_at_the_inbox_makes_no_database(repo):
    assert json.loads(repo.run("inbox", "--json").stdout) == {"items": [], "failures": [], "more": 0}
    assert not (repo.root / ".deepwork" / "data").exists()
