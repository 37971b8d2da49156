"""Text that an engine cannot hold is refused."""

from __future__ import annotations

import pytest

import deepwork_sql

pytestmark = pytest.mark.anyio


def emit(name, *, workflow_id="wf_1", source="acme", **data):
    return lambda tx: tx.emit(source, name, workflow_id=workflow_id, data=data)


async def names(database, after=None, **filters):
    return [event.event for event in await database.feed(after, **filters)]


async def test_an_event_with_text_that_cannot_be_stored_is_refused_by_its_field(database):
    with pytest.raises(deepwork_sql.UnstorableText) as error:
        await database.write(emit("a", plan={"steps": [{"name": "ok"}, {"name": "a\0b"}]}))
    assert error.value.field == "data.plan.steps[1].name"
    with pytest.raises(deepwork_sql.UnstorableText) as error:
        await database.write(emit("a", workflow_id="\ud800"))
    assert error.value.field == "workflow_id"
    assert await names(database) == []
