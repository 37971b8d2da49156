"""The replies of the tools."""

from __future__ import annotations

from collections.abc import Sequence

from anyio import to_thread

from deepwork.api import PluginContext
from deepwork.errors import ArgumentError, PathRefused, ToolError
from deepwork.text import visible
from deepwork_review.changed import relative_path
from deepwork_review.discover import RuleBook, find_rules
from deepwork_review.names import printable
from deepwork_review.plan import Plan, make_plan
from deepwork_review.working_tree import WorkingTree


async def needed_reviews(context: PluginContext, files: Sequence[str] | None) -> str:
    """Plan the reviews of a change, write their instructions, and list the pending ones.

    Warnings come first, because they limit what the list means.

    Raises:
        ToolError: Nothing may be concluded, or the files cannot be used.
    """
    plan = await make_plan(context, files=files)
    await to_thread.run_sync(plan.issue)
    warnings = "".join(f"WARNING: {line}\n" for line in plan.warnings)
    return f"{warnings}\n{review_list(plan)}" if warnings else review_list(plan)


def review_list(plan: Plan) -> str:
    """List the pending reviews of a plan, or return the reason why none is pending.

    Raises:
        ToolError: Nothing may be concluded: no rule could be read, or the changes are not known.
    """
    changes, passed_count = plan.changes, len(plan.reviews) - len(plan.pending)
    changed_count = len(changes.files) + len(changes.deleted)
    if not plan.rules.rules:
        if plan.rules.broken:
            raise ToolError("\n- ".join(["no rules could be read:", *plan.warnings]), hint="`deepwork reviews lint`")
        return "No .deepreview configuration files found."
    if not changed_count:
        if not changes.complete:
            raise ToolError(
                "\n- ".join(["it is not known what has changed, so a review may be due:", *map(visible, changes.notes)])
            )
        return f"No changed files detected, compared with {changes.compared}."
    if not plan.reviews:
        return f"No rules matched the {_count(changed_count, 'changed file')}, compared with {changes.compared}."
    passed = ""
    if passed_count:
        verb = "has passed and is" if passed_count == 1 else "have passed and are"
        passed = f"{_count(passed_count, 'review')} {verb} left out: nothing that matters has changed since."
    if not plan.pending:
        return f"No review tasks to execute. {passed}"
    text = plan.formatter.text([review.task for review in plan.pending])
    return f"{text}\n{passed}\n" if passed else text


async def configured_rules(context: PluginContext, files: Sequence[str] | None) -> list[dict[str, str]]:
    """Read all rules, and list them, or only the rules that match one of the files.

    Broken files are always in the list: without them the rest would pass for all rules.

    Raises:
        ArgumentError: A path lies outside of the project.
        GitError: git gave no answer.
    """
    tree = await context.git(WorkingTree)
    rules = await find_rules(context.project_root, tree)
    return await to_thread.run_sync(_rule_list, context, rules, files)


def _rule_list(context: PluginContext, rules: RuleBook, files: Sequence[str] | None) -> list[dict[str, str]]:
    paths = None if files is None else sorted(_relative_path(context, name) for name in files)
    usable = [
        {"name": rule.name, "description": rule.body.description, "defining_file": printable(rule.place)}
        for rule in rules.rules
        if paths is None or rule.matcher().select(paths)
    ]
    broken = [
        {
            "name": f"PARSE_ERROR:{printable(file.file)}",
            "description": file.message,
            "defining_file": printable(file.file),
        }
        for file in rules.broken
    ]
    return [*usable, *broken]


def _relative_path(context: PluginContext, name: str) -> str:
    try:
        return relative_path(context.project_root, name)
    except PathRefused as error:
        raise ArgumentError(f"only_rules_matching_files: {printable(name)} {error.message}") from None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"
