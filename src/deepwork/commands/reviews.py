"""How a review is printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from deepwork.commands.terminal import Styled, say, say_text

INDENT = " " * 11


def say_review(facts: Mapping[str, Any], findings: Iterable[str] = ()) -> None:
    """Print the verdict of a review, or that there is none, of the facts that JSON has; each finding is a line."""
    words = {True: ("passed", "green"), False: ("needs work", "red")}
    word, colour = words.get(facts["passed"], ("not judged", "yellow"))
    where = facts.get("file") or facts["run_each"]
    more = [f"{facts['seconds'] or 0:g} s", *([f"${facts['cost_usd']:.4f}"] if facts.get("cost_usd") else [])]
    more += [facts["model"]] if facts.get("model") else []
    again = ", as before: nothing has changed" if facts.get("reused") else ""
    say(Styled(f"{word:10}", colour), f" {where}  by {facts['runner']} ({', '.join(more)}){again}")
    if facts["feedback"]:
        say_text(str(facts["feedback"]), INDENT)
    for result in facts["criteria"]:
        mark = "✓" if result["passed"] else "✗"
        say_text(f"{result['criterion']}: {result['feedback'] or ''}".rstrip().removesuffix(":"), f"{INDENT}{mark} ")
    for finding in findings:
        say_text(finding, f"{INDENT}→ ")
