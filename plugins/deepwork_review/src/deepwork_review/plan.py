"""From a change to its reviews: which there are, which have passed, and what has to be said about that."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from pydantic import BaseModel, ConfigDict

from deepwork.api import PathRefused, PluginContext, ToolError, read_regular
from deepwork_review.cache import DELETED, Identity, Passed, ReviewFolder, content_digest, identify, text_digest
from deepwork_review.changed import Changes, changed_files, named_files
from deepwork_review.discover import RuleBook, find_files, find_rules
from deepwork_review.formatters import DEFAULT, Task, formatter_for
from deepwork_review.git import Git
from deepwork_review.instructions import Material, Reference, render
from deepwork_review.match import Matcher
from deepwork_review.names import shown
from deepwork_review.precomputed import precompute
from deepwork_review.rules import Rule, Strategy, why

MAX_REFERENCE_BYTES = 256 * 1024
MAX_UNCHANGED = 1000


class Settings(BaseModel):
    """`plugins.settings.review` of the configuration; `base` is what changes are compared with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base: str | None = None


@dataclass(frozen=True)
class Review:
    """One review that a change needs, and its pass if it has one."""

    material: Material
    identity: Identity
    task: Task
    passed: Passed | None = None

    @property
    def text(self) -> str:
        """Its instructions."""
        return render(self.material, self.identity.review_id)


@dataclass(frozen=True)
class Plan:
    """All reviews that a change needs.

    Attributes:
        rules: The rules of the project, and the files that are broken.
        changes: What has changed.
        reviews: In the order of their rules, then of files.
        notes: What was left out or may be wrong.
    """

    rules: RuleBook
    changes: Changes
    reviews: tuple[Review, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def open(self) -> list[Review]:
        """Those that have to be done."""
        return [review for review in self.reviews if review.passed is None]

    @property
    def warnings(self) -> list[str]:
        """Broken files first, then everything else."""
        return [*(one.message for one in self.rules.broken), *self.rules.notes, *self.changes.notes, *self.notes]


async def make_plan(
    context: PluginContext,
    *,
    files: Sequence[str] | None = None,
    base_ref: str | None = None,
    platform: str | None = None,
) -> Plan:
    """Find out which reviews are needed for the files that are named, or else for everything that has changed.

    Raises:
        ToolError: The platform is unknown, the files or the base cannot be used, or git gives no answer.
    """
    platform = platform or context.platform or DEFAULT
    formatter_for(platform)
    git = await open_git(context)
    rules, changes = await _rules_and_changes(context, git, files, base_ref)
    if not rules.rules or not (changes.files or changes.deleted):
        return Plan(rules, changes)
    matched = await to_thread.run_sync(_match, rules.rules, changes)
    wants_all = any(one.rule.body.review.additional_context.unchanged_matching_files for one in matched)
    listing = await find_files(context.project_root, git) if wants_all else None
    texts, notes = await precompute(context, [one.rule for one in matched])
    folder = ReviewFolder(context.workspace)
    files_there = listing.files if listing else ()
    planner = _Planner(context.project_root, changes, platform, texts, files_there, folder.shown)
    reviews = await to_thread.run_sync(planner.reviews, matched, folder)
    notes += [f"rule {one.rule.name!r} ({one.rule.place}): {one.gave_up}" for one in matched if one.gave_up]
    return Plan(rules, changes, tuple(reviews), (*notes, *planner.notes, *_unreviewed_deletions(changes, matched)))


async def open_git(context: PluginContext) -> Git | None:
    """Give git, if the project lies in a working tree.

    Raises:
        GitError: There is a repository that cannot be used.
    """
    git = Git(context.project_root, context.environment)
    return git if await git.open() else None


async def _rules_and_changes(
    context: PluginContext, git: Git | None, files: Sequence[str] | None, base_ref: str | None
) -> tuple[RuleBook, Changes]:
    root = context.project_root
    if files is not None:
        return await find_rules(root, git), await to_thread.run_sync(named_files, root, files)
    if git is None:
        raise ToolError("this project is in no git repository, so what has changed is unknown; name the files")
    base = base_ref or context.settings(Settings).base
    rules: list[RuleBook] = []

    async def find() -> None:
        rules.append(await find_rules(root, git))

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(find)
            changes = await changed_files(root, git, base)
    except* ToolError as group:
        raise group.exceptions[0] from None
    return rules[0], changes


@dataclass
class _Matched:
    """A rule that the change concerns, and the files by which it does."""

    rule: Rule
    matcher: Matcher
    files: tuple[str, ...]
    deleted: tuple[str, ...]
    gave_up: str | None


def _match(rules: Iterable[Rule], changes: Changes) -> list[_Matched]:
    matched = []
    for rule in rules:
        matcher = matcher_of(rule)
        files = tuple(matcher.select(changes.files))
        deleted = tuple(matcher.select(changes.deleted)) if rule.body.match.deletions else ()
        if files or deleted:
            matched.append(_Matched(rule, matcher, files, deleted, matcher.gave_up))
    return matched


def matcher_of(rule: Rule) -> Matcher:
    """Make a rule's matcher; each counts its own time."""
    return Matcher(rule.folder, rule.body.match.include, rule.body.match.exclude)


def _unreviewed_deletions(changes: Changes, matched: Iterable[_Matched]) -> Iterator[str]:
    asked = {path for one in matched for path in one.deleted}
    left = [path for path in changes.deleted if path not in asked]
    if left:
        files = f"{len(left)} deleted file{'s' if len(left) > 1 else ''}"
        yield f"{files} reviewed by no rule: only rules with `match.deletions: true` are asked about deletions"


@dataclass
class _Planner:
    """Makes the reviews of one change; every file is read once."""

    root: Path
    changes: Changes
    platform: str
    precomputed: Mapping[str, str]
    everything: Sequence[str]
    shown_folder: str
    notes: list[str] = field(default_factory=list)
    _digests: dict[str, str] = field(default_factory=dict)
    _unchanged_of: dict[str, str] = field(default_factory=dict)

    def reviews(self, matched: Iterable[_Matched], folder: ReviewFolder) -> list[Review]:
        """Make all reviews, each once, and look which have passed."""
        found: dict[str, Review] = {}
        for one in matched:
            for material in self._materials(one):
                review = self._review(material)
                found.setdefault(review.identity.digest, review)
        passes = folder.find(review.identity for review in found.values())
        return [Review(one.material, one.identity, one.task, passes.get(digest)) for digest, one in found.items()]

    def _materials(self, matched: _Matched) -> Iterator[Material]:
        rule, wants = matched.rule, matched.rule.body.review.additional_context
        changed = (*((path, False) for path in self.changes.files), *((path, True) for path in self.changes.deleted))
        common: dict[str, Any] = {
            "rule": rule,
            "changed": tuple(sorted(changed)) if wants.all_changed_filenames else None,
            "references": self._references(rule),
            "precomputed": self.precomputed.get(rule.place),
        }
        if wants.unchanged_matching_files:
            known = {*self.changes.files, *self.changes.deleted}
            unchanged = [path for path in matched.matcher.select(self.everything) if path not in known]
            common |= {
                "unchanged": tuple(unchanged[:MAX_UNCHANGED]),
                "unchanged_left_out": max(0, len(unchanged) - MAX_UNCHANGED),
            }
        match rule.body.review.strategy:
            case Strategy.INDIVIDUAL:
                yield from (Material(files=(path,), **common) for path in matched.files)
                yield from (Material(files=(), deleted=(path,), **common) for path in matched.deleted)
            case Strategy.MATCHES_TOGETHER:
                yield Material(files=matched.files, deleted=matched.deleted, **common)
            case Strategy.ALL_CHANGED_FILES:
                yield Material(files=self.changes.files, deleted=self.changes.deleted, **common)

    def _review(self, material: Material) -> Review:
        rule = material.rule
        agent = rule.body.review.agent.get(self.platform)
        identity = identify(rule.name, material.paths, self._components(material, agent))
        path = f"{self.shown_folder}/{identity.review_id}.md"
        return Review(material, identity, Task(material.name, f"Review {rule.title}", agent, path))

    def _components(self, material: Material, agent: str | None) -> dict[str, Any]:
        """List everything that matters to a review, each part where no other can be taken for it."""
        body = material.rule.body
        return {
            "rule": {
                "name": material.rule.name,
                "description": body.description,
                "include": list(body.match.include),
                "exclude": list(body.match.exclude),
                "deletions": body.match.deletions,
                "instructions": text_digest(material.rule.instructions),
                "additional_context": body.review.additional_context.model_dump(),
                "command": body.review.precomputed_info_for_reviewer_bash_command,
            },
            "folder": material.rule.folder,
            "strategy": body.review.strategy.value,
            "platform": self.platform,
            "agent": agent,
            "files": {
                **{path: self._digest(path) for path in material.files},
                **dict.fromkeys(material.deleted, DELETED),
            },
            "unchanged files": self._unchanged(material),
            "names of changed files": None if material.changed is None else self._names,
            "reference files": [
                [one.path, one.description, one.problem or text_digest(one.content or "")]
                for one in material.references
            ],
            "precomputed": None if material.precomputed is None else text_digest(material.precomputed),
        }

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            self._digests[path] = content_digest(self.root, path)
        return self._digests[path]

    @cached_property
    def _names(self) -> str:
        return text_digest(json.dumps([self.changes.files, self.changes.deleted]))

    def _unchanged(self, material: Material) -> str | None:
        """Stand for all unchanged files of a rule, which are the same for each of its reviews."""
        place = material.rule.place
        if material.unchanged and place not in self._unchanged_of:
            digests = [(path, self._digest(path)) for path in material.unchanged]
            self._unchanged_of[place] = text_digest(json.dumps([digests, material.unchanged_left_out]))
        return self._unchanged_of.get(place)

    def _references(self, rule: Rule) -> tuple[Reference, ...]:
        found, left = [], MAX_REFERENCE_BYTES
        for wanted in rule.body.review.reference_files:
            path = f"{rule.folder}/{wanted.path}" if rule.folder else wanted.path
            reference = _reference(self.root, path, wanted.path, wanted.description, left)
            left -= len((reference.content or "").encode())
            found.append(reference)
            if reference.problem:
                where = f"rule {rule.name!r} ({rule.place})"
                self.notes.append(f"{where}: reference file {shown(wanted.path)} {reference.problem}")
        return tuple(found)


def _reference(root: Path, path: str, name: str, description: str | None, limit: int) -> Reference:
    try:
        return Reference(name, description, read_regular(path, [root], limit=limit).decode())
    except UnicodeDecodeError:
        problem = "is not UTF-8"
    except FileNotFoundError:
        problem = "does not exist"
    except (PathRefused, OSError) as error:
        problem = why(error)
    return Reference(name, description, None, problem)


def issue(context: PluginContext, plan: Plan) -> None:
    """Write the instructions of all reviews that have to be done, and remove old ones.

    Raises:
        StorageError: They cannot be written.
    """
    folder = ReviewFolder(context.workspace)
    folder.issue((review.identity, review.text) for review in plan.open)
    folder.clean()
