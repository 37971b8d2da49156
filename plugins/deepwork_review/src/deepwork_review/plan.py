"""From a change to the reviews that it needs, and which of them have passed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import anyio
from anyio import to_thread

from deepwork.api import PluginContext
from deepwork.errors import ToolError
from deepwork.text import visible
from deepwork_review.changed import Changes, changed_files, named_files
from deepwork_review.discover import RuleBook, find_files, find_rules
from deepwork_review.formatters import DEFAULT, Formatter, Task, formatter_for
from deepwork_review.identity import Identifier, Identity
from deepwork_review.instructions import render
from deepwork_review.material import Material, MaterialReader, RuleMatch, match_rules
from deepwork_review.precomputed import precompute
from deepwork_review.review_folder import PassRecord, ReviewFolder
from deepwork_review.settings import ReviewSettings
from deepwork_review.working_tree import WorkingTree


@dataclass(frozen=True)
class PlannedReview:
    """One review that a change needs, and the record of its pass if it has passed."""

    material: Material
    identity: Identity
    task: Task
    record: PassRecord | None

    @property
    def text(self) -> str:
        """Its instructions."""
        return render(self.material, self.identity.review_id)


@dataclass(frozen=True)
class Plan:
    """All reviews that a change needs.

    Attributes:
        folder: Where reviews are recorded.
        formatter: Writes lists of reviews for the agent's platform.
        rules: The rules of the project, and the files that are broken.
        changes: What has changed.
        reviews: In the order of their rules, then of files.
        notes: What was left out or may be wrong.
    """

    folder: ReviewFolder
    formatter: Formatter
    rules: RuleBook
    changes: Changes
    reviews: tuple[PlannedReview, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def pending(self) -> list[PlannedReview]:
        """The reviews that have not passed yet."""
        return [review for review in self.reviews if review.record is None]

    @property
    def warnings(self) -> list[str]:
        """Broken files first, a line for each problem, then everything else."""
        problems = [line for file in self.rules.broken for line in file.message.split("\n")]
        return [visible(line) for line in (*problems, *self.rules.notes, *self.changes.notes, *self.notes)]

    def issue(self) -> None:
        """Write the instructions of all pending reviews, and remove old ones.

        Raises:
            StorageError: They cannot be written.
        """
        self.folder.issue((review.identity, review.text) for review in self.pending)
        self.folder.clean()


async def make_plan(context: PluginContext, *, files: Sequence[str] | None = None, base_ref: str | None = None) -> Plan:
    """Plan the reviews of the files that are named, or else of everything that has changed.

    Raises:
        ToolError: The platform is unknown, the files or the base cannot be used, or git gives no answer.
    """
    formatter = formatter_for(context.platform or DEFAULT)
    folder, root = ReviewFolder(context), context.project_root
    tree = await context.git(WorkingTree, root)
    rules, changes = await _rules_and_changes(context, tree, files, base_ref)
    if not rules.rules or not (changes.files or changes.deleted):
        return Plan(folder, formatter, rules, changes)
    matches = await to_thread.run_sync(match_rules, rules.rules, changes)
    needs_all = any(match.rule.body.review.additional_context.unchanged_matching_files for match in matches)
    listing = await find_files(root, tree) if needs_all else None
    texts, command_notes = await precompute(context, [match.rule for match in matches])
    reader = MaterialReader(root, changes, listing.files if listing else (), texts)
    identifier = Identifier(root, changes, formatter.platform)
    reviews = await to_thread.run_sync(_reviews, reader, matches, identifier, formatter, folder)
    notes = [
        *command_notes,
        *(f"{match.rule.label}: {match.gave_up}" for match in matches if match.gave_up),
        *reader.notes,
        *_unreviewed_deletions(changes, matches),
    ]
    return Plan(folder, formatter, rules, changes, tuple(reviews), tuple(notes))


async def _rules_and_changes(
    context: PluginContext, tree: WorkingTree | None, files: Sequence[str] | None, base_ref: str | None
) -> tuple[RuleBook, Changes]:
    root = context.project_root
    if files is not None:
        return await find_rules(root, tree), await to_thread.run_sync(named_files, root, files)
    if tree is None:
        raise ToolError("this project is not in a git repository, so what has changed is unknown; name the files")
    base = base_ref or context.settings(ReviewSettings).base
    rules: list[RuleBook] = []

    async def find() -> None:
        rules.append(await find_rules(root, tree))

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(find)
            changes = await changed_files(tree, base)
    except* ToolError as group:
        raise group.exceptions[0] from None
    return rules[0], changes


def _reviews(
    reader: MaterialReader,
    matches: Iterable[RuleMatch],
    identifier: Identifier,
    formatter: Formatter,
    folder: ReviewFolder,
) -> list[PlannedReview]:
    """Make each review once, also where two rules demand the same."""
    materials: dict[str, tuple[Material, Identity]] = {}
    for match in matches:
        for material in reader.materials(match):
            identity = identifier.identify(material)
            materials.setdefault(identity.digest, (material, identity))
    records = folder.records_of(identity for _, identity in materials.values())
    return [
        PlannedReview(material, identity, _task(material, identity, formatter, folder), records.get(digest))
        for digest, (material, identity) in materials.items()
    ]


def _task(material: Material, identity: Identity, formatter: Formatter, folder: ReviewFolder) -> Task:
    rule = material.rule
    agent = rule.body.review.agent.get(formatter.platform)
    path = f"{folder.relative_path}/{identity.review_id}.md"
    return Task(material.name, f"Review {rule.title}", agent, path)


def _unreviewed_deletions(changes: Changes, matches: Iterable[RuleMatch]) -> Iterator[str]:
    reviewed = {path for match in matches for path in match.deleted}
    count = len(set(changes.deleted) - reviewed)
    if count:
        files = f"{count} deleted file{'s' if count > 1 else ''}"
        yield f"{files} reviewed by no rule: only rules with `match.deletions: true` are asked about deletions"
