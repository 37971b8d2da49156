"""How much may be stored by any writer: tools, templates, imports and answers of the inbox all pass here.

What an older version has stored above a limit is read, and its tasks are completed, as before: only what is written is
checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deepwork_orchestration.arguments import MAX_BYTES, MAX_DEPENDENCIES, MAX_TASKS, compact, too_many_dependencies
from deepwork_orchestration.errors import invalid_input

MAX_PLAN = 8 * 1024 * 1024
# What the server may add around a value of the size that arguments can have, such as the keys of a checkpoint's detail.
FRAME = 1024
# So many characters of a list are answered. A client reads it whole, and its user pays for the tokens.
MAX_ANSWER = 4 * 1024 * 1024
# So many names the entries of a list have together, such as those of their dependencies: 5,000 entries of 5,000 names
# would be gigabytes. Each may have some.
MAX_NAMES = 20_000
LEAST_NAMES = 4
CUT_MARK = "\n... [truncated]"
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


def fitting(sizes: Sequence[int]) -> int:
    """Return how many of the first entries of a list an answer has room for; one at least."""
    room = MAX_ANSWER
    for count, size in enumerate(sizes):
        room -= size
        if room < 0 and count:
            return count
    return len(sizes)


def names_in(entries: int) -> int:
    """Return how many names each of so many entries of a list may have."""
    return max(LEAST_NAMES, MAX_NAMES // max(1, entries))


def some(names: Sequence[str], limit: int, name: str) -> Mapping[str, Any]:
    """Return a list of names for an entry of an answer, cut to a limit, and how many are left out."""
    return {name: names[:limit], **omitted(name, len(names) - limit)}


def omitted(name: str, count: int) -> Mapping[str, int]:
    """Return the part of an answer that counts the entries left out of a list, if there are any."""
    return {f"{name}_omitted": count} if count > 0 else {}


def shortened(text: str, length: int) -> str:
    """Cut a text to so many characters, and mark it as cut."""
    return text if len(text) <= length else text[:length] + CUT_MARK


def size_of(value: Any) -> int:
    """Count the bytes of a text, or of the JSON of an object; of anything else none."""
    if isinstance(value, dict | list | tuple):
        value = compact(value)
    return len(value.encode(errors="surrogatepass")) if isinstance(value, str) else 0


def check_plan(tasks: int, dependencies: int, size: int) -> None:
    """Refuse a plan of too many tasks, dependencies or bytes of text to be looked at as a whole.

    Raises:
        OrchestrationError: INVALID_INPUT.
    """
    if tasks > MAX_TASKS:
        raise invalid_input("tasks", f"may be {MAX_TASKS:,}, not {tasks:,}", "Make several workflows.")
    if dependencies > MAX_DEPENDENCIES:
        raise too_many_dependencies(dependencies)
    if size > MAX_PLAN:
        raise invalid_input(
            "the plan",
            f"may have {MAX_PLAN:,} bytes of text, not {size:,}",
            "Keep long texts in files, and name them.",
        )
