"""What waits for a person, and their answers."""

from __future__ import annotations

from starlette.requests import Request

from deepwork.api import Answerer, InboxItem, things
from deepwork.errors import ArgumentError, DeepWorkError, PersonNeeded, StorageError, UnknownItem
from deepwork.ports.inbox import Answer, InboxContents
from deepwork_dashboard.answers import (
    Conflict,
    Mapped,
    NotThere,
    cut,
    iso_text,
    json_body,
    matches,
    words_of,
)
from deepwork_dashboard.dashboard import Dashboard, principal_of

# What ends something, or lets pass what has failed its review, can be chosen, and is never what is suggested.
UNSUGGESTED = ("abort", "delete", "override", "remove", "skip")


class InboxPages:
    """The endpoints below `api/inbox`."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    async def listed(self, request: Request) -> Mapped:
        """List what waits: the most urgent first, then what has waited longest."""
        words, kind = words_of(request), request.query_params.get("kind")
        contents = await self.contents(principal_of(request))
        items = [
            item
            for item in contents.items
            if kind in (None, item.kind) and matches(words, item.id, item.what, item.detail, item.who)
        ]
        rows = cut(items, request)
        problems = [f"{failure.source}: {failure.error}" for failure in contents.failures]
        return {**rows, "items": [*map(shown_item, rows["items"])], "more": contents.more, "problems": problems}

    async def contents(self, principal: str) -> InboxContents:
        """Return all that waits and that a principal may see."""
        return await self._dashboard.context.inbox().items(Answerer(principal=principal))

    async def answer(self, request: Request) -> Mapped:
        """Answer an item, in the name of who has logged in."""
        body = await _body(request)
        try:
            given = {name: body[name] for name in ("action", "text", "task", "comments", "state")}
            inbox = self._dashboard.context.inbox()
            sentence = await inbox.answer(body["id"], Answer(**given), request.state.answerer)
        except UnknownItem as error:
            raise NotThere(error.message, hint=error.hint) from None
        except (ArgumentError, PersonNeeded, StorageError):
            raise
        except DeepWorkError as error:
            raise Conflict(error.message, hint=error.hint) from None
        return {"done": sentence}


async def _body(request: Request) -> Mapped:
    body = await json_body(request)
    for name, is_required in (("id", True), ("action", True), ("text", False), ("state", False), ("task", False)):
        value = body.setdefault(name, None)
        if not isinstance(value, str) and (is_required or value is not None):
            raise ArgumentError(f"{name} is {'a text' if is_required else 'a text, or null'}")
    body["comments"] = body.get("comments") or []
    return body


def shown_item(item: InboxItem) -> Mapped:
    """Show an item, with its actions."""
    suggested = next((action for action in item.actions if action.name not in UNSUGGESTED), None)
    lists = {"files": list(item.files), "criteria": list(item.criteria)}
    return {
        "id": item.id,
        "kind": item.kind,
        "title": item.what,
        "text": item.detail,
        **{name: texts for name, texts in lists.items() if texts},
        "who": item.who,
        "since": iso_text(item.since) or None,
        "state": item.state,
        "source": item.source,
        "principal": item.principal,
        "thing": things.thing_of(item.reference),
        "reference": dict(item.reference),
        "actions": [
            {
                "name": action.name,
                "label": action.label,
                "text": action.text,
                "suggested": action is suggested,
                "tasks": [{"id": task_id, "name": name} for task_id, name in action.tasks.items()],
                **({"comments": True} if action.comments else {}),
            }
            for action in item.actions
        ],
        "command": f"deepwork inbox answer {item.id} {suggested.name}" if suggested else None,
    }
