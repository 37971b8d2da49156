"""How much may be stored, whoever writes it: tools, templates, imports and answers of the inbox all pass here.

What an older version has stored above a limit is read, and its tasks are completed, as before: only what is written is
checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deepwork_orchestration.arguments import MAX_BYTES, MAX_TASKS, compact
from deepwork_orchestration.errors import invalid_input

MAX_PLAN = 8 * 1024 * 1024
MAX_DEPENDENCIES = 50_000
# What the server may add around a value of the size that arguments can have, such as the keys of a checkpoint's detail.
FRAME = 1024
WHOLE_PLANS = ("initial_plan", "template")


def check_values(values: Mapping[str, Any], *, where: str = "") -> None:
    """Refuse to store a text, or the JSON of an object, that is too large.

    Args:
        values: What is to be stored, by column.
        where: Which row it is, if the caller cannot know.

    Raises:
        OrchestrationError: INVALID_INPUT.
    """
    for name, value in values.items():
        most = MAX_PLAN if name in WHOLE_PLANS else MAX_BYTES
        size = size_of(value)
        if size > most + FRAME:
            raise invalid_input(f"{where}{name}", f"may have {most:,} bytes, not {size:,}", "Keep it in a file.")


def size_of(value: Any) -> int:
    """Count the bytes of a text, or of the JSON of an object; of anything else none."""
    if isinstance(value, dict | list | tuple):
        value = compact(value)
    return len(value.encode(errors="surrogatepass")) if isinstance(value, str) else 0


def check_plan(tasks: int, dependencies: int, size: int) -> None:
    """Refuse a plan that is too large to be looked at as a whole.

    Args:
        tasks: How many tasks it has.
        dependencies: How often a task waits for another.
        size: The bytes of its texts.

    Raises:
        OrchestrationError: INVALID_INPUT.
    """
    if tasks > MAX_TASKS:
        raise invalid_input("tasks", f"may be {MAX_TASKS:,}, not {tasks:,}", "Make several workflows.")
    if dependencies > MAX_DEPENDENCIES:
        raise invalid_input(
            "depends_on",
            f"may name {MAX_DEPENDENCIES:,} dependencies in a whole plan, not {dependencies:,}",
            "A task waits for all that its dependencies wait for, too: name the last ones only.",
        )
    if size > MAX_PLAN:
        raise invalid_input(
            "the plan",
            f"may have {MAX_PLAN:,} bytes of text, not {size:,}",
            "Keep long texts in files, and name them.",
        )
