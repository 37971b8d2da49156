"""Lists of reviews, written for the platform of the agent that reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from deepwork.errors import ToolError

DEFAULT = "claude"


@dataclass(frozen=True)
class Task:
    """One review as an agent starts it; `agent` is the persona that the rule names for the platform."""

    name: str
    description: str
    agent: str | None
    path: str


@dataclass(frozen=True)
class Formatter:
    """The words of one platform. The four fields of a task are the same on all platforms.

    Attributes:
        platform: The name of the platform.
        lead: The first line of a list.
        agent: Who reviews if the rule names no reviewer.
        prompt: What a reviewer is told, with `{path}` for the file of instructions.
    """

    platform: str
    lead: str
    agent: str
    prompt: str

    def fields(self, task: Task) -> dict[str, str]:
        """Return the fields of a task."""
        return {
            "name": task.name,
            "description": task.description,
            "subagent_type": task.agent or self.agent,
            "prompt": self.prompt.format(path=task.path),
        }

    def text(self, tasks: Sequence[Task]) -> str:
        """Write the whole list."""
        return "\n".join([self.lead, "", *map(self._block, tasks)])

    def _block(self, task: Task) -> str:
        fields = self.fields(task)
        return (
            f"name: {_quoted(fields['name'])}\n"
            f"\tdescription: {fields['description']}\n"
            f"\tsubagent_type: {fields['subagent_type']}\n"
            f"\tprompt: {_quoted(fields['prompt'])}\n"
        )


CLAUDE = Formatter(
    platform=DEFAULT,
    lead="Invoke the following list of Tasks in parallel:",
    agent="general-purpose",
    prompt="@{path}",
)
GENERIC = Formatter(
    platform="generic",
    lead="Have each of these reviews done by a reviewer of its own, in parallel where you can:",
    agent="reviewer",
    prompt="Follow the instructions in {path}",
)
FORMATTERS = {formatter.platform: formatter for formatter in (CLAUDE, GENERIC)}


def formatter_for(platform: str) -> Formatter:
    """Choose a formatter.

    Raises:
        ToolError: This platform has no formatter.
    """
    if platform not in FORMATTERS:
        supported = ", ".join(sorted(FORMATTERS))
        raise ToolError(f"reviews are not written for platform {platform!r}", hint=f"Supported: {supported}.")
    return FORMATTERS[platform]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
