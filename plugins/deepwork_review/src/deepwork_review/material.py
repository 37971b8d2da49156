"""Which rules a change concerns, and what the reviewers of each are given to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepwork_review.changed import Changes
from deepwork_review.match import MAX_SECONDS, Matcher
from deepwork_review.names import printable
from deepwork_review.project_files import UnusableFile, read_text
from deepwork_review.rules import Rule, Strategy

MAX_REFERENCE_BYTES = 256 * 1024
MAX_UNCHANGED = 1000


@dataclass(frozen=True)
class Reference:
    """A reference file of a rule, as it is now; `problem` says why it has no content."""

    path: str
    description: str | None
    content: str | None
    problem: str | None = None


@dataclass(frozen=True)
class Material:
    """Everything that is written into the instructions of one review.

    Attributes:
        files: The files to review.
        deleted: Files to which the rule applies and that no longer exist.
        unchanged: Unchanged files to which the rule applies.
        unchanged_left_out: How many more of these there are.
        changed: All changed files with whether they are deleted; None if the rule does not ask for them.
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
        """The name of the file, or the number of files."""
        return printable(self.paths[0]) if len(self.paths) == 1 else f"{len(self.paths)} files"

    @property
    def name(self) -> str:
        """The name of the review."""
        return f"{self.rule.title} review of {self.subject}"


@dataclass(frozen=True)
class RuleMatch:
    """A rule that a change concerns, and the changed files to which it applies.

    Attributes:
        gave_up: Why files were counted as matching without being tried; None if all were tried.
    """

    rule: Rule
    matcher: Matcher
    files: tuple[str, ...]
    deleted: tuple[str, ...]
    gave_up: str | None


def match_rules(rules: Iterable[Rule], changes: Changes) -> list[RuleMatch]:
    """Choose the rules that a change concerns. Deleted files count only for rules that ask for them."""
    matches = []
    seconds_left = MAX_SECONDS  # for all rules together, because there may be very many
    for rule in rules:
        matcher = rule.matcher(seconds_left)
        files = tuple(matcher.select(changes.files))
        deleted = tuple(matcher.select(changes.deleted)) if rule.body.match.deletions else ()
        seconds_left = min(seconds_left, matcher.seconds_left)
        if files or deleted:
            matches.append(RuleMatch(rule, matcher, files, deleted, matcher.gave_up))
    return matches


class MaterialReader:
    """Reads what the reviewers of one change are given.

    `project_files` are all of the project, sorted, for rules that ask for unchanged ones; `precomputed` is what the
    commands of rules have printed, by the rule's place; and `notes` are problems with reference files.
    """

    def __init__(
        self, root: Path, changes: Changes, project_files: Sequence[str], precomputed: Mapping[str, str]
    ) -> None:
        self._root = root
        self._changes = changes
        self._project_files = project_files
        self._precomputed = precomputed
        self.notes: list[str] = []

    def materials(self, rule_match: RuleMatch) -> Iterator[Material]:
        """Yield the material of each review that a rule demands, by its strategy."""
        rule, common = rule_match.rule, self._common(rule_match)
        match rule.body.review.strategy:
            case Strategy.INDIVIDUAL:
                yield from (Material(rule, files=(path,), **common) for path in rule_match.files)
                yield from (Material(rule, files=(), deleted=(path,), **common) for path in rule_match.deleted)
            case Strategy.MATCHES_TOGETHER:
                yield Material(rule, files=rule_match.files, deleted=rule_match.deleted, **common)
            case Strategy.ALL_CHANGED_FILES:
                yield Material(rule, files=self._changes.files, deleted=self._changes.deleted, **common)

    def _common(self, rule_match: RuleMatch) -> dict[str, Any]:
        """Read what all reviews of a rule have in common."""
        rule, changes = rule_match.rule, self._changes
        context = rule.body.review.additional_context
        common: dict[str, Any] = {
            "references": tuple(self._references(rule)),
            "precomputed": self._precomputed.get(rule.place),
        }
        if context.all_changed_filenames:
            existing, deleted = dict.fromkeys(changes.files, False), dict.fromkeys(changes.deleted, True)
            common["changed"] = tuple(sorted([*existing.items(), *deleted.items()]))
        if context.unchanged_matching_files:
            changed = {*changes.files, *changes.deleted}
            unchanged = [path for path in rule_match.matcher.select(self._project_files) if path not in changed]
            common["unchanged"] = tuple(unchanged[:MAX_UNCHANGED])
            common["unchanged_left_out"] = max(0, len(unchanged) - MAX_UNCHANGED)
        return common

    def _references(self, rule: Rule) -> Iterator[Reference]:
        """Read the reference files of a rule; the limit is for all of them together."""
        remaining_bytes = MAX_REFERENCE_BYTES
        for reference in rule.body.review.reference_files:
            try:
                content = read_text(self._root, rule.beside(reference.path), limit=remaining_bytes)
            except UnusableFile as error:
                self.notes.append(f"{rule.label}: reference file {printable(reference.path)} {error}")
                yield Reference(reference.path, reference.description, None, str(error))
            else:
                remaining_bytes -= len(content.encode())
                yield Reference(reference.path, reference.description, content)
