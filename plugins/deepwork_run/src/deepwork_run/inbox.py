"""What runs ask people: whether to go on after their budget, their time, or without progress."""

from __future__ import annotations

from anyio import to_thread

from deepwork.api import Answerer, InboxAction, InboxItem, InboxSource, PluginContext
from deepwork.errors import UnknownItem
from deepwork.ports.call import LOCAL
from deepwork.text import one_line
from deepwork_run.record import CONTINUE, STOP, Record, Run, records
from deepwork_run.shown import used

ACTIONS: tuple[InboxAction, ...] = (
    InboxAction(name=CONTINUE, label="Go on"),
    InboxAction(name=STOP, label="Stop the run"),
)


class RunInbox(InboxSource):
    """The runs of one project."""

    def __init__(self, context: PluginContext) -> None:
        self._context = context
        self._known: dict[str, tuple[tuple[int, int], list[InboxItem]]] = {}

    async def items(self) -> list[InboxItem]:
        """Read the runs that have changed."""
        return await to_thread.run_sync(self._items)

    def _items(self) -> list[InboxItem]:
        known = {}
        for record in records(self._context.workspace):
            stamp, items = self._known.get(record.session_id, ((0, 0), []))
            if stamp != record.stamp():
                stamp, items = record.stamp(), _items_of(record.read())
            known[record.session_id] = stamp, items
        self._known = known
        return [item for _, items in known.values() for item in items]

    async def answer(self, item_id: str, action: str, _text: str | None, _by: Answerer) -> str:
        """Write the answer down; the runner looks for it, and so does the next start of the run."""
        record = Record(self._context.workspace, item_id.partition(".")[0])

        def write() -> int | None:
            pause = record.read().pause
            if pause is None or pause.answer:
                raise UnknownItem("The run has been answered meanwhile; nothing was changed")
            record.add("answered", action=action)
            return record.runner()

        runner = await to_thread.run_sync(write)
        if action == STOP:
            return "The run stops"
        return "The run goes on" if runner else f"To go on: deepwork run --continue {record.session_id}"


def _items_of(run: Run) -> list[InboxItem]:
    actions: tuple[InboxAction, ...] = ()
    if run.pause and run.is_asking:
        kind, what, since, actions = run.pause.kind, run.pause.what, run.pause.since, ACTIONS
    elif run.notice:
        kind, what, since = "notice", run.notice, run.notice_at
    else:
        return []
    item = InboxItem(
        id=f"{run.session_id}.{kind}",
        kind=f"run-{kind}",
        who=f"session {run.session_id[:8]}",
        what=what,
        detail=_used(run),
        since=since,
        state=f"{kind} {since}",
        reference={"kind": "session", "id": run.session_id},
        principal=LOCAL,
        actions=actions,
    )
    return [item]


def _used(run: Run) -> str:
    """Return who has worked, and what that has cost, an agent a line."""
    lines = []
    for name in dict.fromkeys(worker.agent for worker in run.workers):
        workers = [worker for worker in run.workers if worker.agent == name]
        end = workers[-1].end or f"works since {workers[-1].started_at}"
        starts = "once" if len(workers) == 1 else f"{len(workers)} times"
        lines.append(f"{name}: started {starts}, {used(run.totals(name))}; last: {one_line(end)}")
    return "\n".join(lines)
