"""Events as readers see them."""

from __future__ import annotations

import pytest

import deepwork_sql
from deepwork.api import Workspace
from deepwork.errors import ArgumentError
from deepwork.models.history import HistoryEntry
from deepwork.testing import a_session
from deepwork_sql.store import SqlStore

pytestmark = pytest.mark.anyio


def emit(name, *, workflow_id="wf_1", source="acme", **data):
    return lambda tx: tx.emit(source, name, workflow_id=workflow_id, data=data)


async def backwards(database, before=None, **filters):
    return [event.event for event in await database.history(before, deepwork_sql.EventFilter(**filters))]


async def test_the_history_is_read_backwards_in_pages_and_narrowed(database):
    for name in ("task:a", "task:b", "agent:c", "task:d"):
        await database.write(emit(name, source="other" if name == "task:b" else "acme"))
    assert await backwards(database) == ["task:d", "agent:c", "task:b", "task:a"]
    *_, last = await database.history(limit=2)
    assert await backwards(database, last.id) == ["task:b", "task:a"]
    assert await backwards(database, event="task:") == ["task:d", "task:b", "task:a"]
    assert await backwards(database, event="task", source="acme") == ["task:d", "task:a"]
    assert await backwards(database, workflow_id="wf_2") == []
    with pytest.raises(ArgumentError):
        await database.history("x")


async def test_a_viewer_sees_sessions_of_their_own_and_of_their_project(project_on_database, database, tmp_path):
    root = project_on_database.root
    for number, (folder, principal) in enumerate(((root, "ann"), (root, "bob"), (tmp_path / "other", "ann"))):
        folder.mkdir(exist_ok=True)
        session = a_session(session_id=f"{number:032x}", principal=principal)
        store = SqlStore(_given(database), Workspace(folder))
        async with store:
            await store.save(with_history(session), expected=None)
    await database.write(emit("everybodys"))
    viewer = deepwork_sql.Viewer(database.machine, str(root), "ann")
    history = await database.history(None, deepwork_sql.EventFilter(viewer=viewer))
    assert [(event.source, event.workflow_id) for event in history] == [("acme", "wf_1"), ("core", f"{0:032x}")]


def _given(database):
    async def give():
        return database

    return give


def with_history(session):
    entry = HistoryEntry(at=session.started_at, kind="started")
    return session.model_copy(update={"history": [entry]})
