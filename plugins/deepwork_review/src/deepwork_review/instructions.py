"""The instructions of one review as text: what to judge, which files, and what to do when nothing has to change."""

from __future__ import annotations

import re
from collections.abc import Iterable

from deepwork_review.material import Material, Reference
from deepwork_review.names import EXPLANATION, is_plain, printable


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
        parts.append(_section("Deleted Files", (f"- {printable(path)}" for path in material.deleted)))
    if material.unchanged:
        lines = [_mention(path) for path in material.unchanged]
        if material.unchanged_left_out:
            lines.append(f"- … and {material.unchanged_left_out:,} more, which are not listed")
        parts.append(_section("Unchanged Matching Files", lines))
    if material.changed is not None:
        lines = [f"- {printable(path)}{' (deleted)' if deleted else ''}" for path, deleted in material.changed]
        parts.append(_section("All Changed Files", lines))
    paths = (*material.paths, *material.unchanged, *(path for path, _ in material.changed or ()))
    if not all(map(is_plain, paths)):
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
    parts.append(f"---\n\nRule `{rule.name}`. This review is required by the policy at `{printable(rule.place)}`.\n")
    return "\n\n".join(parts)


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"## {title}", "", *lines])


def _mention(path: str) -> str:
    return f"- @{path}" if is_plain(path) else f"- {printable(path)}"


def _reference(reference: Reference) -> str:
    title = f"### {printable(reference.path)}"
    if reference.description:
        title += f"\n\n{' '.join(reference.description.split())}"
    if reference.content is None:
        return f"{title}\n\n(not included: {reference.problem})"
    return f"{title}\n\n{_fenced(reference.content)}"


def _fenced(text: str) -> str:
    """Put a text between marks that it does not contain itself, so that it cannot pretend to be instructions."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip(chr(10))}\n{fence}"
