"""Draws the graph of a plan as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from deepwork.text import visible
from deepwork_orchestration.models import Mapped

STYLES = {
    "completed": "fill:#d3f9d8,stroke:#2b8a3e",
    "skipped": "fill:#f1f3f5,stroke:#868e96",
    "in_progress": "fill:#d0ebff,stroke:#1864ab",
    "planning": "fill:#d0ebff,stroke:#1864ab",
    "paused": "fill:#fff3bf,stroke:#e67700",
    "failed": "fill:#ffe3e3,stroke:#c92a2a",
}


def flowchart(tasks: Sequence[Mapped], dependencies: Sequence[Mapped]) -> str:
    """Return the text of a flowchart; an arrow leads from a task to its dependents."""
    lines = ["flowchart LR"]
    for task in tasks:
        style = f":::{task['status']}" if task["status"] in STYLES else ""
        lines.append(f'  {task["id"]}["{_label(task["name"])}"]{style}')
    lines += [f"  {edge['depends_on_id']} --> {edge['task_id']}" for edge in dependencies]
    used = {task["status"] for task in tasks}
    lines += [f"  classDef {status} {style}" for status, style in STYLES.items() if status in used]
    return "\n".join(lines)


def _label(name: str) -> str:
    """Write a name so that neither Mermaid nor HTML finds anything but text in it."""
    return escape(visible(name)).replace("&", "#").replace("`", "#96;")
