"""Sessions are copied from one store to another, by command."""

from __future__ import annotations

import json

import pytest

from deepwork.api import SessionStatus
from deepwork.models.history import HistoryEntry
from deepwork.project.stores import open_store
from deepwork.testing import a_session
from deepwork.testing.samples import at

pytestmark = pytest.mark.anyio
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def plain(root, store_name):
    async with open_store(root, store_name) as store:
        ids = [summary.session_id for summary in await store.find(limit=100)]
        loaded = [await store.load(session_id) for session_id in ids]
    return [session.model_copy(update={"revision": 0}) for session in loaded]


@pytest.mark.smoke
async def test_sessions_are_copied_there_and_back_equal_and_in_order(project_on_database, run, save):
    root = project_on_database.root
    history = [HistoryEntry(at=at(0), kind="started", detail={"text": "ü"})]
    await save("json", *(a_session(f"s{n}", updated_at=at(n), history=history, newer=n) for n in (2, 1, 3)))
    before = await plain(root, "json")
    assert json.loads(await run("store", "copy", "--from", "json", "--to", "sql", "--json"))["copied"] == [
        "s1",
        "s2",
        "s3",
    ]
    assert await plain(root, "sql") == before
    again = json.loads(await run("store", "copy", "--from", "json", "--to", "sql", "--json"))
    assert (again["copied"], again["present"]) == ([], ["s1", "s2", "s3"])
    for file in project_on_database.state.glob("session_*.json"):
        file.unlink()
    await run("store", "copy", "--from", "sql", "--to", "json")
    assert await plain(root, "json") == before


@on_sqlite
async def test_archived_and_damaged_sessions_are_named_and_a_different_one_is_not_overwritten(
    project_on_database, run, save
):
    root = project_on_database.root
    over = a_session("old", status=SessionStatus.COMPLETED)
    await save("json", a_session("mine", goal="in json"), a_session("bad"), over)
    await save("sql", a_session("mine", goal="in sql"))
    async with open_store(root, "json") as store:
        await store.archive("old")
    (project_on_database.state / "session_bad.json").write_text("{")
    report = json.loads(await run("store", "copy", "--from", "json", "--to", "sql", "--json", code=1))
    assert (report["different"], report["archived"], len(report["damaged"])) == (["mine"], ["old"], 1)
    assert [session.goal for session in await plain(root, "sql")] == ["in sql"]


@on_sqlite
async def test_a_store_is_not_copied_onto_itself(run):
    assert await run("store", "copy", "--from", "sql", "--to", "sql", code=1) == ""
