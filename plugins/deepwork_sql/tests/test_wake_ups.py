"""Who waits for events is woken."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio


def emit(name, *, workflow_id="wf_1", source="acme", **data):
    return lambda tx: tx.emit(source, name, workflow_id=workflow_id, data=data)


async def test_the_wake_up_channel_is_notified_beside_the_transaction(database, database_url):
    """A NOTIFY inside would make all commits of the database wait for each other."""
    if database.dialect == "sqlite":
        pytest.skip("SQLite has no NOTIFY")
    import psycopg

    def wait(connection):
        return [note.channel for note in connection.notifies(timeout=PATIENCE, stop_after=1)]

    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("LISTEN deepwork_events")
        async with anyio.create_task_group() as tasks:
            heard = []

            async def hear():
                heard.extend(await to_thread.run_sync(wait, listener))

            tasks.start_soon(hear)
            await database.write(emit("a"))
        assert heard == ["deepwork_events"]
