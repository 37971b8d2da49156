"""Cuts a context until it fits a budget of tokens: what helps least goes first, and what is cut is said.

The promise is kept by counting, not by estimating: every candidate is counted as a whole, as the JSON that is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from deepwork_orchestration.models import Mapped
from deepwork_orchestration.tokens import Estimator, estimate, estimator

# The keys and the id of an entry alone have more tokens than this.
LEAST_ENTRY = 16
MARK = "\n... [truncated]"
SOURCE_PERCENT = 9
# What each part may have of the budget when the whole is too long.
SHARES = (
    (15, ("workflow",)),
    (55, ("current_task",)),
    (20, ("prior_tasks",)),
    (10, ("sibling_tasks", "dependency_outcomes")),
)
FLOOR = ("id", "name", "status")
ONLY_FLOOR = "everything but ids, names and status"


@dataclass(frozen=True)
class Cut:
    """A way to shorten a context.

    Attributes:
        label: What `truncated` says of it.
        sections: The parts of the context that it shortens.
        steps: Says how often it can be applied.
        apply: Gives the context with so many steps of it applied.
    """

    label: str
    sections: tuple[str, ...]
    steps: Callable[[Mapped], int]
    apply: Callable[[Mapped, int], Mapped]


def fit(context: Mapped, budget: int) -> Mapped:
    """Give the context with `token_estimate`, cut so that the whole JSON has at most `budget` tokens.

    What can never be cut are ids, names and status of workflow and task; a smaller budget gets just these.
    """
    cut: list[str] = []
    context = _with_short_source(_with_short_lists(context, budget, cut), budget, cut)
    if not _fits(budget, context, cut):
        for percent, sections in SHARES:
            context = _shorten(context, cut, partial(_keeps_share, sections, budget * percent // 100), sections)
        context = _shorten(context, cut, partial(_fits, budget))
    if not _fits(budget, context, cut):
        context, cut = _floor(context), [ONLY_FLOOR]
    return _counted(context, cut)


def without_detail(checkpoint: Mapped) -> Mapped:
    """Give a checkpoint without what it says in detail."""
    return {name: value for name, value in checkpoint.items() if name not in ("detail", "files_changed")}


def shortened(text: str, length: int) -> str:
    """Cut a text to so many characters, and mark it as cut."""
    return text if len(text) <= length else text[:length] + MARK


def _shorten(
    context: Mapped,
    cut: list[str],
    is_enough: Callable[[Mapped, list[str]], bool],
    sections: Sequence[str] | None = None,
) -> Mapped:
    """Apply the cuts one after another, each as far as needed, until it is enough."""
    for item in CUTS:
        if is_enough(context, cut):
            break
        if sections is None or set(item.sections) & set(sections):
            labels = cut if item.label in cut else [*cut, item.label]
            steps = _least(item.steps(context), partial(_is_enough_after, item, context, labels, is_enough))
            if steps:
                context = item.apply(context, steps)
                cut[:] = labels
    return context


def _is_enough_after(
    cut: Cut, context: Mapped, labels: list[str], is_enough: Callable[[Mapped, list[str]], bool], steps: int
) -> bool:
    return is_enough(cut.apply(context, steps), labels)


def _least(most: int, is_enough: Callable[[int], bool]) -> int:
    """Find the least count that is enough; `most` if none is."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _fits(budget: int, context: Mapped, labels: Sequence[str]) -> bool:
    return bool(_counted(context, labels)["token_estimate"] <= budget)


def _keeps_share(sections: Sequence[str], most: int, context: Mapped, _labels: Sequence[str]) -> bool:
    return sum(estimate(context[name]) for name in sections if name in context) <= most


def _counted(context: Mapped, cut: Sequence[str]) -> Mapped:
    """Add what the answer says of itself. The number is a part of the JSON that it counts."""
    counting: Estimator = estimator()
    answer = {**context, **({"truncated": list(cut)} if cut else {}), "estimator": counting.name, "token_estimate": 0}
    for _ in range(5):
        count = estimate(answer)
        if count == answer["token_estimate"]:
            break
        answer["token_estimate"] = max(count, answer["token_estimate"])
    return answer


def _with_short_lists(context: Mapped, budget: int, cut: list[str]) -> Mapped:
    """Leave out entries that could not fit in any case, so that thousands of them need not be counted."""
    for item, entries in (
        (OLDEST_CHECKPOINTS, _checkpoints(context)),
        (OLDEST_PRIOR_TASKS, context["prior_tasks"]),
        (SIBLINGS, context.get("sibling_tasks", ())),
        (DEPENDENCIES, context.get("dependency_outcomes", ())),
    ):
        surplus = len(entries) - max(1, budget // LEAST_ENTRY)
        if surplus > 0:
            context = item.apply(context, surplus)
            cut.append(item.label)
    return context


def _with_short_source(context: Mapped, budget: int, cut: list[str]) -> Mapped:
    source = context["workflow"].get("source_summary")
    most = budget * SOURCE_PERCENT // 100
    if source is None or estimate(source) <= most:
        return context
    # A token has at least one byte, and seldom more than 128 characters: longer texts need not be counted at all.
    source = source[: most * 128]
    dropped = _least(len(source), lambda count: estimate(shortened(source, len(source) - count - 1)) <= most)
    short = shortened(source, max(0, len(source) - dropped - 1))
    cut.append("source_summary")
    return {**context, "workflow": {**context["workflow"], "source_summary": short if estimate(short) <= most else ""}}


def _floor(context: Mapped) -> Mapped:
    sections = ("workflow", "current_task")
    return {section: {name: context[section][name] for name in FLOOR} for section in sections}


# The cuts, in the order in which they are tried.


def _checkpoints(context: Mapped) -> list[Mapped]:
    checkpoints: list[Mapped] = context["current_task"]["checkpoints"]
    return checkpoints


def _with_checkpoints(context: Mapped, checkpoints: list[Mapped], **more: Any) -> Mapped:
    return {**context, "current_task": {**context["current_task"], "checkpoints": checkpoints, **more}}


def _cut_details(context: Mapped, count: int) -> Mapped:
    checkpoints = _checkpoints(context)
    return _with_checkpoints(context, [*map(without_detail, checkpoints[:count]), *checkpoints[count:]])


def _cut_checkpoints(context: Mapped, count: int) -> Mapped:
    omitted = context["current_task"].get("checkpoints_omitted", 0) + count
    return _with_checkpoints(context, _checkpoints(context)[count:], **_omitted("checkpoints", omitted))


def _cut_prior(context: Mapped, count: int) -> Mapped:
    omitted = context.get("prior_tasks_omitted", 0) + count
    return {**context, "prior_tasks": context["prior_tasks"][count:], **_omitted("prior_tasks", omitted)}


def _cut_list(name: str, context: Mapped, count: int) -> Mapped:
    return {**context, name: context[name][count:]} if name in context else context


def _omitted(name: str, count: int) -> Mapped:
    return {f"{name}_omitted": count} if count else {}


def _cut_text(section: str, name: str, context: Mapped, count: int) -> Mapped:
    """Cut a text by sixteenths; the last step leaves nothing."""
    text = context[section].get(name)
    if not text or not count:
        return context
    short = "" if count == 16 else shortened(text.removesuffix(MARK), len(text) * (16 - count) // 16)
    return {**context, section: {**context[section], name: short}}


def _cut_object(name: str, context: Mapped, count: int) -> Mapped:
    return {**context, "current_task": {**context["current_task"], name: None}} if count else context


def _list_cut(label: str, name: str) -> Cut:
    return Cut(label, (name,), lambda context: len(context.get(name, ())), partial(_cut_list, name))


def _text_cut(section: str, name: str) -> Cut:
    return Cut(
        name, (section,), lambda context: 16 * bool(context[section].get(name)), partial(_cut_text, section, name)
    )


def _object_cut(name: str) -> Cut:
    return Cut(
        name,
        ("current_task",),
        lambda context: int(context["current_task"][name] is not None),
        partial(_cut_object, name),
    )


OLDEST_CHECKPOINTS = Cut(
    "oldest checkpoints", ("current_task",), lambda c: max(0, len(_checkpoints(c)) - 1), _cut_checkpoints
)
OLDEST_PRIOR_TASKS = Cut("oldest prior tasks", ("prior_tasks",), lambda c: len(c["prior_tasks"]), _cut_prior)
SIBLINGS = _list_cut("sibling_tasks", "sibling_tasks")
DEPENDENCIES = _list_cut("dependency_outcomes", "dependency_outcomes")
CUTS = (
    Cut("details of older checkpoints", ("current_task",), lambda c: max(0, len(_checkpoints(c)) - 1), _cut_details),
    OLDEST_CHECKPOINTS,
    OLDEST_PRIOR_TASKS,
    SIBLINGS,
    DEPENDENCIES,
    _text_cut("workflow", "source_summary"),
    _text_cut("workflow", "plan_summary"),
    _text_cut("current_task", "description"),
    _object_cut("context"),
    _object_cut("plan"),
    Cut("details of the newest checkpoint", ("current_task",), lambda c: len(_checkpoints(c)), _cut_details),
    Cut("newest checkpoint", ("current_task",), lambda c: len(_checkpoints(c)), _cut_checkpoints),
)
