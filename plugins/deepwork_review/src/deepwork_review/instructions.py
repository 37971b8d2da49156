"""The text that a reviewer gets: what to judge, which files, and what to do when all is well."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from deepwork_review.names import EXPLANATION, is_plain, shown
from deepwork_review.rules import Rule


@dataclass(frozen=True)
class Reference:
    """A reference file of a rule, as it is now; `problem` says why it has no content."""

    path: str
    description: str | None
    content: str | None
    problem: str | None = None


@dataclass(frozen=True)
class Material:
    """Everything that one review's instructions tell.

    Attributes:
        files: The files to review.
        deleted: Files that the rule is about and that no longer exist.
        unchanged: Other files that the rule is about.
        changed: The names of all changed files, where the rule wants them told.
        precomputed: What the rule's command has printed.
    """

    rule: Rule
    files: tuple[str, ...]
    deleted: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    unchanged_left_out: int = 0
    changed: tuple[tuple[str, bool], ...] | None = None
    references: tuple[Reference, ...] = ()
    precomputed: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that are reviewed, deleted ones included."""
        return tuple(sorted({*self.files, *self.deleted}))

    @property
    def subject(self) -> str:
        """The one file, or how many."""
        return shown(self.paths[0]) if len(self.paths) == 1 else f"{len(self.paths)} files"

    @property
    def name(self) -> str:
        """What the review is called."""
        return f"{self.rule.title} review of {self.subject}"


def render(material: Material, review_id: str) -> str:
    """Write the instructions of one review."""
    rule = material.rule
    parts = [
        f"# Review: {rule.name} — {material.subject}",
        f"## Review Instructions\n\n{rule.instructions.rstrip()}",
    ]
    if material.files:
        parts.append(_section("Files to Review", map(_mention, material.files)))
    if material.deleted:
        parts.append(_section("Deleted Files", (f"- {shown(path)}" for path in material.deleted)))
    if material.unchanged:
        lines = [_mention(path) for path in material.unchanged]
        if material.unchanged_left_out:
            lines.append(f"- … and {material.unchanged_left_out:,} more, which are not listed")
        parts.append(_section("Unchanged Matching Files", lines))
    if material.changed is not None:
        lines = [f"- {shown(path)}{' (deleted)' if gone else ''}" for path, gone in material.changed]
        parts.append(_section("All Changed Files", lines))
    if any(not is_plain(path) for path in _all_names(material)):
        parts.append(EXPLANATION)
    if material.references:
        parts.append("## Reference Files\n\n" + "\n\n".join(map(_reference, material.references)))
    if material.precomputed is not None:
        parts.append(f"## Precomputed Context\n\n{_fenced(material.precomputed)}")
    parts.append(
        "## After Review\n\n"
        "If nothing has to change, call the tool `mark_review_as_passed` with\n"
        f"`review_id`: `{review_id}`\n"
        "and a `summary` of one sentence. Otherwise report what has to change, and do not call it."
    )
    parts.append(f"---\n\nRule `{rule.name}`. This review is required by the policy at `{shown(rule.place)}`.\n")
    return "\n\n".join(parts)


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"## {title}", "", *lines])


def _mention(path: str) -> str:
    return f"- @{path}" if is_plain(path) else f"- {shown(path)}"


def _all_names(material: Material) -> list[str]:
    return [*material.paths, *material.unchanged, *(path for path, _ in material.changed or ())]


def _reference(reference: Reference) -> str:
    title = f"### {shown(reference.path)}"
    if reference.description:
        title += f"\n\n{' '.join(reference.description.split())}"
    if reference.content is None:
        return f"{title}\n\n(not included: {reference.problem})"
    return f"{title}\n\n{_fenced(reference.content)}"


def _fenced(text: str) -> str:
    """Put a text between marks that it does not hold itself, so that it cannot pretend to be instructions."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip(chr(10))}\n{fence}"
