"""Reviews of changed files: their rules, and what has passed."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from starlette.requests import Request

from deepwork.api import PluginContext
from deepwork_dashboard.answers import Mapped, cut, iso_text, matches, words_of
from deepwork_dashboard.dashboard import Dashboard

PLUGIN = "review"
# Of so many passes of a page the files are compared.
MAX_COMPARED = 50
MAX_FILES = 100
_BROKEN = "PARSE_ERROR:"


class Reviews:
    """The endpoints below `api/reviews`."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    async def rules(self, request: Request) -> Mapped:
        """List the rules of the project."""
        replies = await self._dashboard.module(PLUGIN, "deepwork_review.replies")
        reply = await replies.configured_rules(self._dashboard.demand(PLUGIN), None)
        words = words_of(request)
        rules = [_rule(rule) for rule in reply if matches(words, *rule.values())]
        return cut(rules, request)

    async def passes(self, request: Request) -> Mapped:
        """List what has passed, the newest first."""
        module = await self._dashboard.module(PLUGIN, "deepwork_review.review_folder")
        context, words = self._dashboard.demand(PLUGIN), words_of(request)
        records = await to_thread.run_sync(module.ReviewFolder(context).records)
        matching = [
            record for record in records if matches(words, record.review_id, record.by, record.summary, *_files(record))
        ]
        rows = cut(matching, request)
        rows["items"] = await to_thread.run_sync(_shown, rows["items"], context)
        return rows


def _rule(rule: dict[str, str]) -> Mapped:
    is_broken = rule["name"].startswith(_BROKEN)
    return {
        "name": rule["name"].removeprefix(_BROKEN),
        "description": "" if is_broken else rule["description"],
        "file": rule["defining_file"],
        "error": rule["description"] if is_broken else None,
    }


def _shown(records: list[Any], context: PluginContext) -> list[Mapped]:
    return [
        {
            "id": record.review_id,
            "rule": record.review_id.partition("--")[0],
            "at": iso_text(record.at),
            "by": record.by,
            "summary": record.summary,
            "files": [*_files(record)][:MAX_FILES],
            "files_total": len(_files(record)),
            "current": _is_current(record, context) if number < MAX_COMPARED else None,
        }
        for number, record in enumerate(records)
    ]


def _is_current(record: Any, context: PluginContext) -> bool:
    from deepwork_review.identity import is_unchanged

    return all(is_unchanged(context.project_root, path, digest) for path, digest in _files(record).items())


def _files(record: Any) -> dict[str, str]:
    files = record.components.get("files")
    return files if isinstance(files, dict) else {}
