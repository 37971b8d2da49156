"""How a list of reviews is written for an agent's platform."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from deepwork.api import ToolError

DEFAULT = "claude"


@dataclass(frozen=True)
class Task:
    """One review as an agent starts it; `agent` is the persona that the rule has for the platform."""

    name: str
    description: str
    agent: str | None
    path: str


@dataclass(frozen=True)
class Formatter:
    """The words of one platform; the four fields of a task are the same on all."""

    lead: str
    agent: str
    prompt: str

    def fields(self, task: Task) -> dict[str, str]:
        """Give a task's fields."""
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


FORMATTERS = {
    "claude": Formatter(
        lead="Invoke the following list of Tasks in parallel:",
        agent="general-purpose",
        prompt="@{path}",
    ),
    "generic": Formatter(
        lead="Have each of these reviews done by a reviewer of its own, in parallel where you can:",
        agent="reviewer",
        prompt="Follow the instructions in {path}",
    ),
}


def formatter_for(platform: str) -> Formatter:
    """Choose a formatter.

    Raises:
        ToolError: There is none for this platform.
    """
    if platform not in FORMATTERS:
        known = ", ".join(sorted(FORMATTERS))
        raise ToolError(f"reviews are not written for platform {platform!r}", hint=f"Supported: {known}.")
    return FORMATTERS[platform]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
