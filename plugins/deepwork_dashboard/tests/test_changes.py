"""What a page that comes back can be told without fetching everything anew."""

from __future__ import annotations

from types import SimpleNamespace

import anyio
import pytest

from deepwork.ports.inbox import InboxContents
from deepwork_dashboard import changes
from deepwork_dashboard.changes import Change

pytestmark = pytest.mark.anyio


class OneStore:
    """A store in which the test changes sessions."""

    def __init__(self):
        self.versions = {"run": 0}

    async def stamps(self):
        return dict(self.versions)

    async def peek(self, _session_ids):
        return []


async def no_stamps():
    """Return the stamps of runs: an empty set."""
    return {}


@pytest.fixture
def store():
    return OneStore()


@pytest.fixture
def dashboard(store):
    """A dashboard without other plugins, so that sessions alone change."""

    async def opened():
        return store

    async def no_items(by):
        return InboxContents(items=())

    context = SimpleNamespace(has=lambda _: False, inbox=lambda: SimpleNamespace(items=no_items))
    return SimpleNamespace(context=context, store=opened, has_database=False, has_sessions_in_database=False)


async def test_a_page_that_has_missed_more_than_is_remembered_fetches_everything_anew(dashboard, store, monkeypatch):
    monkeypatch.setattr(changes, "REMEMBERED", 2)
    monkeypatch.setattr(changes, "POLL_SECONDS", 0.001)
    async with anyio.create_task_group() as tasks:
        watch = changes.Watch(dashboard, SimpleNamespace(stamps=no_stamps), tasks)
        async with watch.page("local") as page:
            cursors = [str(watch.cursor)]
            while len(cursors) < 4:
                store.versions["run"] += 1
                page.take()
                await page.wait()
                if str(watch.cursor) != cursors[-1]:
                    cursors.append(str(watch.cursor))
            news = [await watch.since(cursor) for cursor in cursors]
    assert news[0] is None
    assert Change("sessions") in news[-2]
    assert news[-1] == []
