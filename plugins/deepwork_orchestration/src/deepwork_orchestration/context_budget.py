"""Cuts a context until it fits a budget of tokens: what helps least goes first, and what is cut is said.

The promise is kept by counting, not by estimating: every candidate is counted as a whole, as the JSON that is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from deepwork_orchestration.arguments import MAX_BYTES, compact
from deepwork_orchestration.limits import CUT_MARK, omitted, shortened
from deepwork_orchestration.models import Mapped
from deepwork_orchestration.tokens import count_up_to, estimate, estimator

# The keys and the id of an entry alone have more tokens than this: no budget holds more entries.
LEAST_ENTRY = 16
# More characters than the tokens of a text have on average.
LONG_TOKEN = 32
SOURCE_PERCENT = 9
# What each part may have of the budget when the whole is too long.
SHARES = (
    (15, ("workflow",)),
    (55, ("current_task",)),
    (20, ("prior_tasks",)),
    (10, ("sibling_tasks", "dependency_outcomes")),
)
FLOOR = ("id", "name", "status")
DETAIL = ("detail", "files_changed")
ONLY_FLOOR = "everything but ids, names and status"


@dataclass(frozen=True)
class Cut:
    """A way to shorten a context.

    Attributes:
        label: What `truncated` says of it.
        section: The part of the context that it shortens.
        steps: Returns how often it can be applied.
        apply: Returns the context with so many steps of it applied.
    """

    label: str
    section: str
    steps: Callable[[Mapped], int]
    apply: Callable[[Mapped, int], Mapped]


def fit(context: Mapped, budget: int) -> Mapped:
    """Return the context with `token_estimate`, cut so that the whole JSON has at most `budget` tokens.

    What can never be cut are ids, names and status of workflow and task; a smaller budget gets just these.
    """
    sizes = Sizes(budget)
    cut: list[str] = []
    context = _with_possible(context, sizes, cut)
    is_too_long = bool(cut)
    context = _with_short_source(context, budget, cut)
    answer = None if is_too_long else _fitting(budget, context, cut)
    if answer is None:
        for percent, sections in SHARES:
            share = partial(_keeps_share, sizes, sections, budget * percent // 100)
            context = _shorten(context, cut, share, sections)
        context = _shorten(context, cut, lambda tried, labels: sizes.of(_labelled(tried, labels)) <= budget)
        context = _shorten(context, cut, lambda tried, labels: _fitting(budget, tried, labels) is not None)
        answer = _fitting(budget, context, cut)
    return _counted(_labelled(_floor(context), [ONLY_FLOOR])) if answer is None else answer


def most_entries(budget: int) -> int:
    """Return a number of entries that no budget of so many tokens holds more of."""
    return max(1, budget // LEAST_ENTRY)


def most_characters(budget: int) -> int:
    """Return a number of characters that a text of so many tokens hardly ever has more of."""
    return min(LONG_TOKEN * budget, MAX_BYTES)


def without_detail(checkpoint: Mapped) -> Mapped:
    """Return a checkpoint without its details and files."""
    return {name: value for name, value in checkpoint.items() if name not in DETAIL}


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
        if sections is None or item.section in sections:
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


class Sizes:
    """The tokens of the parts of a context, each counted once however often it is tried with others.

    The parts together have about as many tokens as the whole, and hardly ever fewer.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._counted: dict[int, tuple[Any, int]] = {}

    def of(self, value: Any) -> int:
        """Count a value; what is more than the budget is not counted to its end."""
        if isinstance(value, list):
            return sum(self._part(entry) + 1 for entry in value) + 2
        if isinstance(value, dict):
            return sum(self._part(name) + self.of(part) + 2 for name, part in value.items()) + 2
        return self._part(value)

    def _part(self, value: Any) -> int:
        entry = self._counted.get(id(value))
        if entry is None:
            # The value is kept too: the next one could otherwise get its id.
            entry = self._counted[id(value)] = value, count_up_to(compact(value), self.budget)
        return entry[1]


def _fitting(budget: int, context: Mapped, labels: Sequence[str]) -> Mapped | None:
    """Return the answer with its number of tokens; None if these are more than the budget."""
    answer = _labelled(context, labels)
    if count_up_to(compact(answer), budget) > budget:
        return None
    answer = _counted(answer)
    return answer if answer["token_estimate"] <= budget else None


def _keeps_share(sizes: Sizes, sections: Sequence[str], most: int, context: Mapped, _labels: Sequence[str]) -> bool:
    return sum(sizes.of(context[name]) for name in sections if name in context) <= most


def _labelled(context: Mapped, cut: Sequence[str]) -> Mapped:
    """Add what the answer says of itself, but for the number."""
    return {**context, **({"truncated": list(cut)} if cut else {}), "estimator": estimator().name, "token_estimate": 0}


def _counted(answer: Mapped) -> Mapped:
    """Add the number of tokens, which is a part of the JSON that it counts."""
    for _ in range(5):
        count = estimate(answer)
        if count == answer["token_estimate"]:
            break
        answer["token_estimate"] = max(count, answer["token_estimate"])
    return answer


def _with_possible(context: Mapped, sizes: Sizes, cut: list[str]) -> Mapped:
    """Leave out what could not be in the answer in any case, so that it need not be counted again and again.

    Of some lists only the newest entries have been read.
    """
    for item, part, name in (
        (OLDEST_CHECKPOINTS, context["current_task"], "checkpoints_omitted"),
        (OLDEST_PRIOR_TASKS, context, "prior_tasks_omitted"),
    ):
        if name in part:
            cut.append(item.label)
    for item, entries in (
        (OLDEST_CHECKPOINTS, [without_detail(checkpoint) for checkpoint in _checkpoints(context)]),
        (OLDEST_PRIOR_TASKS, context["prior_tasks"]),
        (SIBLINGS, context.get("sibling_tasks", [])),
        (DEPENDENCIES, context.get("dependency_outcomes", [])),
    ):
        surplus = len(entries) - max(1, _possible(entries, sizes))
        if surplus > 0:
            context = item.apply(context, surplus)
            _add(cut, item.label)
    details = [{name: point.get(name) for name in DETAIL} for point in _checkpoints(context)]
    surplus = len(details) - max(1, _possible(details, sizes))
    if surplus > 0 and any(any(detail.values()) for detail in details[:surplus]):
        context = _cut_details(context, surplus)
        _add(cut, OLDER_DETAILS.label)
    for item in (_text_cut("workflow", "plan_summary"), _text_cut("current_task", "description")):
        context = _with_possible_text(context, item, sizes, cut)
    return context


def _add(cut: list[str], label: str) -> None:
    if label not in cut:
        cut.append(label)


def _possible(entries: Sequence[Mapped], sizes: Sizes) -> int:
    """Return how many of the newest entries the budget could hold."""
    if count_up_to(compact(entries), sizes.budget) <= sizes.budget:
        return len(entries)
    budget = sizes.budget
    for number, entry in enumerate(reversed(entries)):
        budget -= sizes.of([entry])
        if budget < 0:
            return number
    return len(entries)


def _with_possible_text(context: Mapped, item: Cut, sizes: Sizes, cut: list[str]) -> Mapped:
    """Cut a text that alone is too long, to between half of the budget and all of it."""
    section = item.section
    text = context[section].get(item.label)
    if not text or len(text.encode()) <= sizes.budget:
        return context
    possible = text
    while count_up_to(possible, sizes.budget) > sizes.budget:
        possible = possible[: len(possible) // 2]
    if possible is text:
        return context
    cut.append(item.label)
    return {**context, section: {**context[section], item.label: shortened(text, len(possible))}}


def _with_short_source(context: Mapped, budget: int, cut: list[str]) -> Mapped:
    source = context["workflow"].get("source_summary")
    most = budget * SOURCE_PERCENT // 100
    if source is None or _size(source, most) <= most:
        return context
    source = source[: most_characters(most)]
    dropped = _least(len(source), lambda count: _size(shortened(source, len(source) - count - 1), most) <= most)
    short = shortened(source, max(0, len(source) - dropped - 1))
    cut.append("source_summary")
    section = {**context["workflow"], "source_summary": short if _size(short, most) <= most else ""}
    return {**context, "workflow": section}


def _size(text: str, most: int) -> int:
    return count_up_to(compact(text), most)


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
    before: int = context["current_task"].get("checkpoints_omitted", 0)
    return _with_checkpoints(context, _checkpoints(context)[count:], **omitted("checkpoints", before + count))


def _cut_prior(context: Mapped, count: int) -> Mapped:
    before: int = context.get("prior_tasks_omitted", 0)
    return {**context, "prior_tasks": context["prior_tasks"][count:], **omitted("prior_tasks", before + count)}


def _cut_text(section: str, name: str, context: Mapped, count: int) -> Mapped:
    """Cut a text by sixteenths; the last step leaves nothing."""
    text = context[section].get(name)
    if not text or not count:
        return context
    short = "" if count == 16 else shortened(text.removesuffix(CUT_MARK), len(text) * (16 - count) // 16)
    return {**context, section: {**context[section], name: short}}


def _list_cut(name: str) -> Cut:
    def apply(context: Mapped, count: int) -> Mapped:
        return {**context, name: context[name][count:]} if name in context else context

    return Cut(name, name, lambda context: len(context.get(name, ())), apply)


def _text_cut(section: str, name: str) -> Cut:
    return Cut(name, section, lambda context: 16 * bool(context[section].get(name)), partial(_cut_text, section, name))


def _object_cut(name: str) -> Cut:
    def apply(context: Mapped, count: int) -> Mapped:
        return {**context, "current_task": {**context["current_task"], name: None}} if count else context

    return Cut(name, "current_task", lambda context: int(context["current_task"][name] is not None), apply)


def _older(context: Mapped) -> int:
    return max(0, len(_checkpoints(context)) - 1)


def _all(context: Mapped) -> int:
    return len(_checkpoints(context))


OLDER_DETAILS = Cut("details of older checkpoints", "current_task", _older, _cut_details)
OLDEST_CHECKPOINTS = Cut("oldest checkpoints", "current_task", _older, _cut_checkpoints)
OLDEST_PRIOR_TASKS = Cut("oldest prior tasks", "prior_tasks", lambda context: len(context["prior_tasks"]), _cut_prior)
SIBLINGS = _list_cut("sibling_tasks")
DEPENDENCIES = _list_cut("dependency_outcomes")
CUTS = (
    OLDER_DETAILS,
    OLDEST_CHECKPOINTS,
    OLDEST_PRIOR_TASKS,
    SIBLINGS,
    DEPENDENCIES,
    _text_cut("workflow", "source_summary"),
    _text_cut("workflow", "plan_summary"),
    _text_cut("current_task", "description"),
    _object_cut("context"),
    _object_cut("plan"),
    Cut("details of the newest checkpoint", "current_task", _all, _cut_details),
    Cut("newest checkpoint", "current_task", _all, _cut_checkpoints),
)
