"""How a job can be wrong or mean something else: each operator makes every mutant of its kind, one after the other."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

Location = tuple[str | int, ...]
Data = dict[str, Any]


@dataclass(frozen=True)
class Mutant:
    """A job with one change.

    Attributes:
        kind: A fault makes the job contradict itself; a change leaves it valid, but it means something else.
        location: Where in job.yml the change is.
        data: The content of job.yml.
        files: The instruction files that differ; None for a removed one.
    """

    kind: Literal["fault", "change"]
    operator: str
    location: Location
    message: str
    data: Data
    files: dict[str, str | None] = field(default_factory=dict)


# An operator yields the place, a sentence, and what makes the change in a copy of the content of job.yml, which returns
# the instruction files that it changes, if any.
Change = Callable[[Data], dict[str, str | None] | None]
Sites = Iterator[tuple[Location, str, Change]]
Operator = Callable[[Data, dict[str, str]], Sites]

FAULTS: dict[str, Operator] = {}
CHANGES: dict[str, Operator] = {}


def _fault(operator: Operator) -> Operator:
    FAULTS[operator.__name__] = operator
    return operator


def _change(operator: Operator) -> Operator:
    CHANGES[operator.__name__] = operator
    return operator


class Mutants:
    """The mutants of a job, always in the same order.

    An operator that fits more places than `most` makes mutants of some, spread evenly over the job.

    Attributes:
        untried: How many places have no mutant for that reason.
    """

    def __init__(self, data: Data, texts: dict[str, str], *, most: int) -> None:
        """Keep what to change.

        Args:
            data: The content of job.yml.
            texts: The instruction files.
            most: How many mutants one operator may make.
        """
        self._data, self._texts, self._most = data, texts, most
        self.untried = 0

    def __iter__(self) -> Iterator[Mutant]:
        """Yield the mutants."""
        for kind, operators in (("fault", FAULTS), ("change", CHANGES)):
            for name, operator in operators.items():
                sites = [*operator(self._data, self._texts)]
                chosen = sites[:: -(-len(sites) // self._most) or 1]
                self.untried += len(sites) - len(chosen)
                for location, message, change in chosen:
                    changed = copy.deepcopy(self._data)
                    files = change(changed) or {}
                    yield Mutant(kind, name, location, message, changed, files)  # type: ignore[arg-type]  # one of the two


def _at(data: Any, location: Location) -> Any:
    for part in location:
        data = data[part]
    return data


def _set(location: Location, value: Any) -> Change:
    def change(data: Data) -> None:
        _at(data, location[:-1])[location[-1]] = value

    return change


def _remove(location: Location) -> Change:
    def change(data: Data) -> None:
        del _at(data, location[:-1])[location[-1]]

    return change


def _steps(data: Data) -> Iterator[tuple[int, Data]]:
    yield from enumerate(data["steps"])


def _inputs(data: Data, key: str) -> Iterator[tuple[Location, Data, Data]]:
    """Yield the inputs that have a key: place, step and input."""
    for index, step in _steps(data):
        for position, item in enumerate(step.get("inputs", [])):
            if key in item:
                yield ("steps", index, "inputs", position), step, item


def _entries(data: Data) -> Iterator[tuple[Location, Data, list[Any]]]:
    for index, workflow in enumerate(data.get("workflows", [])):
        yield ("workflows", index, "steps"), workflow, workflow["steps"]


def _reviews(data: Data) -> Iterator[tuple[Location, Data, Data]]:
    for index, step in _steps(data):
        for position, review in enumerate(step["reviews"]):
            yield ("steps", index, "reviews", position), step, review


def _members(entry: Any) -> list[str]:
    return [entry] if isinstance(entry, str) else entry


def _follows(data: Data, earlier: Any, later: Any) -> bool:
    """True if a step of the later entry depends on one of the earlier."""
    needs = {step["id"]: step.get("dependencies", []) for step in data["steps"]}
    return any(step_id in needs[other] for step_id in _members(earlier) for other in _members(later))


@_fault
def unknown_dependency(data: Data, _: dict[str, str]) -> Sites:
    """A dependency names an unknown step."""
    for index, step in _steps(data):
        for position, name in enumerate(step.get("dependencies", [])):
            place = ("steps", index, "dependencies", position)
            yield place, f"step {step['id']!r} depends on {name + 'x'!r}", _set(place, f"{name}x")


@_fault
def missing_dependency(data: Data, _: dict[str, str]) -> Sites:
    """A step reads a file of a step that is not among its dependencies."""
    for place, step, item in _inputs(data, "from_step"):
        if item["from_step"] in step.get("dependencies", []):
            rest = [name for name in step["dependencies"] if name != item["from_step"]]
            message = f"step {step['id']!r} no longer depends on {item['from_step']!r}, of which it reads"
            yield (*place[:2], "dependencies"), message, _set((*place[:2], "dependencies"), rest)


@_fault
def unknown_input_step(data: Data, _: dict[str, str]) -> Sites:
    """An input comes from an unknown step."""
    for place, step, item in _inputs(data, "from_step"):
        name = f"{item['from_step']}x"
        yield (*place, "from_step"), f"step {step['id']!r} reads of {name!r}", _set((*place, "from_step"), name)


@_fault
def unknown_input_file(data: Data, _: dict[str, str]) -> Sites:
    """An input names an unknown output of its source step."""
    for place, step, item in _inputs(data, "file"):
        name = f"{item['file']}x"
        yield (*place, "file"), f"step {step['id']!r} reads {name!r}", _set((*place, "file"), name)


@_fault
def unknown_review_target(data: Data, _: dict[str, str]) -> Sites:
    """A review is of no output of its step."""
    for place, step, review in _reviews(data):
        name = f"{review['run_each']}x"
        message = f"step {step['id']!r} has a review of {name!r}"
        yield (*place, "run_each"), message, _set((*place, "run_each"), name)


@_fault
def unknown_workflow_step(data: Data, _: dict[str, str]) -> Sites:
    """A workflow names an unknown step."""
    for place, workflow, entries in _entries(data):
        for position, entry in enumerate(entries):
            if isinstance(entry, str):
                message = f"workflow {workflow['name']!r} has {entry + 'x'!r}"
                yield (*place, position), message, _set((*place, position), f"{entry}x")


@_fault
def swapped_order(data: Data, _: dict[str, str]) -> Sites:
    """A step comes before one on which it depends."""
    for place, workflow, entries in _entries(data):
        for position, (first, second) in enumerate(pairwise(entries)):
            if _follows(data, first, second):
                swapped = [*entries[:position], second, first, *entries[position + 2 :]]
                message = f"workflow {workflow['name']!r} has {second!r} before {first!r}, on which it depends"
                yield (*place, position), message, _set(place, swapped)


@_fault
def missing_instructions(data: Data, texts: dict[str, str]) -> Sites:
    """The instructions file of a step is gone."""
    for index, step in _steps(data):
        name = step["instructions_file"]
        if name not in texts:
            continue
        yield (
            ("steps", index, "instructions_file"),
            f"the file {name!r} is gone",
            lambda _, name=name: {name: None},  # type: ignore[misc]  # bound now
        )


@_fault
def joined_group(data: Data, _: dict[str, str]) -> Sites:
    """A step is in one group with a step on which it depends."""
    for place, workflow, entries in _entries(data):
        for position, (first, second) in enumerate(pairwise(entries)):
            if _follows(data, first, second):
                joined = [*entries[:position], [*_members(first), *_members(second)], *entries[position + 2 :]]
                message = f"workflow {workflow['name']!r} does {first!r} and {second!r}, which depends on it, at once"
                yield (*place, position), message, _set(place, joined)


@_fault
def emptied_instructions(data: Data, texts: dict[str, str]) -> Sites:
    """The instructions of a step are empty."""
    for index, step in _steps(data):
        name = step["instructions_file"]
        if name in texts:
            place = ("steps", index, "instructions_file")
            yield place, f"the file {name!r} is empty", lambda _, name=name: {name: ""}  # type: ignore[misc]  # bound now


@_fault
def renamed_output(data: Data, _: dict[str, str]) -> Sites:
    """An output has another name, but what reads it has the old one."""
    read = {(item["from_step"], item["file"]) for _, _, item in _inputs(data, "file")}
    for index, step in _steps(data):
        for name in step["outputs"]:
            if (step["id"], name) in read:
                place = ("steps", index, "outputs")
                renamed = {f"new_{key}" if key == name else key: value for key, value in step["outputs"].items()}
                yield (
                    (*place, name),
                    f"output {name!r} of step {step['id']!r} is now {'new_' + name!r}",
                    _set(place, renamed),
                )


@_fault
def contradicting_criterion(data: Data, _: dict[str, str]) -> Sites:
    """A review asks for the opposite of one of its criteria, too."""
    for place, step, review in _reviews(data):
        for name, question in review["quality_criteria"].items():
            opposite = re.sub(r"^(Is|Are|Does|Do|Has|Have|Was|Were|Can|Could) (\S+)", r"\1 \2 not", question, count=1)
            if opposite != question:
                criteria = {**review["quality_criteria"], f"Not {name}": opposite}
                message = f"step {step['id']!r} asks for {name!r}, and for its opposite"
                yield (*place, "quality_criteria", name), message, _set((*place, "quality_criteria"), criteria)


@_change
def criterion_loosened(data: Data, _: dict[str, str]) -> Sites:
    """A criterion asks for less."""
    for place, step, review in _reviews(data):
        for name, question in review["quality_criteria"].items():
            looser = _looser(question)
            message = f"criterion {name!r} of step {step['id']!r} asks less: {looser!r}"
            yield (*place, "quality_criteria", name), message, _set((*place, "quality_criteria", name), looser)


def _looser(question: str) -> str:
    for pattern, replacement in (
        (r"\b([Ee])very\b", "some"),
        (r"\b[Ee]ach\b", "some"),
        (r"\b[Aa]ll\b", "some"),
        (r"\bat least \w+", "at least one"),
        (r"\bat most (\d+)", r"at most \g<1>0"),
    ):
        looser = re.sub(pattern, replacement, question, count=1)
        if looser != question:
            return looser
    return f"{question.rstrip('?. ')}, as far as possible?"


@_change
def review_removed(data: Data, _: dict[str, str]) -> Sites:
    """An output is not judged any more."""
    for place, step, review in _reviews(data):
        yield place, f"step {step['id']!r} has no review of {review['run_each']!r} any more", _remove(place)


@_change
def input_dropped(data: Data, _: dict[str, str]) -> Sites:
    """A step is not given an input any more."""
    for place, step, item in [*_inputs(data, "file"), *_inputs(data, "name")]:
        name = item.get("file", item.get("name"))
        yield place, f"step {step['id']!r} is not given {name!r} any more", _remove(place)


@_change
def output_optional(data: Data, _: dict[str, str]) -> Sites:
    """An output may be left out."""
    for index, step in _steps(data):
        for name, output in step["outputs"].items():
            if output["required"]:
                place = ("steps", index, "outputs", name, "required")
                yield place, f"step {step['id']!r} can be finished without {name!r}", _set(place, value=False)


@_change
def output_type_changed(data: Data, _: dict[str, str]) -> Sites:
    """An output is one file instead of several, or several instead of one."""
    for index, step in _steps(data):
        for name, output in step["outputs"].items():
            kind = "file" if output["type"] == "files" else "files"
            place = ("steps", index, "outputs", name, "type")
            yield place, f"output {name!r} of step {step['id']!r} is of type {kind!r}", _set(place, kind)


@_change
def criterion_removed(data: Data, _: dict[str, str]) -> Sites:
    """A criterion is not asked any more."""
    for place, step, review in _reviews(data):
        for name in review["quality_criteria"] if len(review["quality_criteria"]) > 1 else ():
            message = f"step {step['id']!r} no longer asks for {name!r}"
            yield (*place, "quality_criteria", name), message, _remove((*place, "quality_criteria", name))


@_change
def order_changed(data: Data, _: dict[str, str]) -> Sites:
    """Two steps that do not depend on each other change places; the first of a group is another one."""
    for place, workflow, entries in _entries(data):
        for position, (first, second) in enumerate(pairwise(entries)):
            if not _follows(data, first, second):
                swapped = [*entries[:position], second, first, *entries[position + 2 :]]
                message = f"workflow {workflow['name']!r} has {second!r} before {first!r}"
                yield (*place, position), message, _set(place, swapped)
        for position, entry in enumerate(entries):
            if len(_members(entry)) > 1 and not isinstance(entry, str):
                turned = [*entry[1:], entry[0]]
                message = f"{entry[1]!r} is the first of its group instead of {entry[0]!r}"
                yield (*place, position), message, _set((*place, position), turned)


@_change
def instruction_removed(data: Data, texts: dict[str, str]) -> Sites:
    """A line of the instructions is gone."""
    for index, step in _steps(data):
        name = step["instructions_file"]
        lines = texts.get(name, "").splitlines(keepends=True)
        for number, line in enumerate(lines):
            if line.strip() and not line.startswith("#"):
                rest = "".join(lines[:number] + lines[number + 1 :])
                place = ("steps", index, "instructions_file")
                message = f"line {number + 1} of {name!r} is gone: {line.strip()[:60]!r}"
                yield place, message, lambda _, name=name, rest=rest: {name: rest}  # type: ignore[misc]  # bound now
                break
