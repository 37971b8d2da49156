"""The blockers of tracked work in the inbox."""

from __future__ import annotations

from typing import Any

import deepwork_sql
from deepwork.api import Answerer, InboxAction, InboxItem, InboxSource, PluginContext
from deepwork.ports.inbox import InboxContents
from deepwork_tracking.database import TrackingDatabase

MAX_BLOCKERS = 500
# So much of a text is read; the inbox shows no more of it.
MAX_DETAIL = 4001
RESOLVE = InboxAction(name="resolve", label="Resolve", text="note")


class BlockerInbox(InboxSource):
    """The issues that wait for a person, in all workflows of a project."""

    def __init__(self, context: PluginContext) -> None:
        self._context = context
        self._database = TrackingDatabase(context)

    async def items(self) -> InboxContents:
        """List what `deepwork track blockers` lists; nothing before there is a database."""
        from deepwork_tracking.context import open_blockers

        if not deepwork_sql.has_database(self._context):
            return InboxContents(items=())
        blockers, total = await self._database.read(
            lambda transaction: open_blockers(transaction, MAX_BLOCKERS, MAX_DETAIL)
        )
        return InboxContents(items=tuple(map(_item, blockers)), more=total - len(blockers))

    async def answer(self, item_id: str, action: str, text: str | None, by: Answerer) -> str:
        """Do what `deepwork track resolve` does."""
        from deepwork_tracking.log import resolve

        who = by.principal or by.user or "a person"
        await resolve(self._database, item_id, who, text)
        return f"{item_id} is resolved by {who}"


def _item(issue: dict[str, Any]) -> InboxItem:
    return InboxItem(
        id=issue["id"],
        kind="blocker",
        who=issue["agent_name"] or issue["task_name"],
        what=f"{issue['task_name']}: {issue['description']}",
        detail=f"{issue['type']}: {issue['description']}\nTried: {issue['resolution']}",
        since=issue["created_at"],
        state="open",
        reference={"kind": "tracked-workflow", "id": issue["workflow_id"], "issue_id": issue["id"]},
        actions=(RESOLVE,),
    )
