"""What the tools answer, from what was found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from anyio import to_thread

from deepwork.api import ArgumentError, PathRefused, PluginContext, ToolError
from deepwork_review.changed import inside
from deepwork_review.discover import RuleBook, find_rules
from deepwork_review.formatters import DEFAULT, formatter_for
from deepwork_review.names import shown
from deepwork_review.plan import Plan, issue, make_plan, matcher_of, open_git


async def instructions(context: PluginContext, files: list[str] | None) -> str:
    """Plan the reviews, write their instruction files, and say which are to be done."""
    plan = await make_plan(context, files=files)
    await to_thread.run_sync(issue, context, plan)
    return answer(plan, context.platform or DEFAULT)


async def rules_for(context: PluginContext, files: list[str] | None) -> list[dict[str, str]]:
    """Read the rules anew and list them."""
    rules = await find_rules(context.project_root, await open_git(context))
    return await to_thread.run_sync(configured, context, rules, files)


def answer(plan: Plan, platform: str) -> str:
    """Write what an agent reads: everything that limits the answer first.

    Raises:
        ToolError: Nothing may be concluded, for no rule could be read or the changes are not known.
    """
    warnings = "".join(f"WARNING: {line}\n" for line in plan.warnings)
    return f"{warnings}\n{outcome(plan, platform)}" if warnings else outcome(plan, platform)


def outcome(plan: Plan, platform: str) -> str:
    """Write the answer itself, without warnings.

    Raises:
        ToolError: Nothing may be concluded.
    """
    changes, skipped = plan.changes, len(plan.reviews) - len(plan.open)
    count = len(changes.files) + len(changes.deleted)
    if not plan.rules.rules:
        if plan.rules.broken:
            raise ToolError("\n".join(["no rules could be read:", *plan.warnings]), hint="`deepwork reviews lint`")
        return "No .deepreview configuration files found."
    if not count:
        if not changes.complete:
            raise ToolError("\n".join(["what has changed cannot be told, so no review is ruled out:", *changes.notes]))
        return f"No changed files detected, compared with {changes.compared}."
    if not plan.reviews:
        return f"No rules matched the {_count(count, 'changed file')}, compared with {changes.compared}."
    left_out = ""
    if skipped:
        verb = "has passed and is" if skipped == 1 else "have passed and are"
        left_out = f"{_count(skipped, 'review')} {verb} left out: nothing that matters has changed since."
    if not plan.open:
        return f"No review tasks to execute. {left_out}"
    text = formatter_for(platform).text([review.task for review in plan.open])
    return f"{text}\n{left_out}\n" if left_out else text


def configured(context: PluginContext, rules: RuleBook, files: Iterable[str] | None) -> list[dict[str, Any]]:
    """List rules, and broken files among them, so that nobody takes a part for the whole.

    Raises:
        ArgumentError: A path lies outside of the project.
    """
    paths = None if files is None else sorted(_inside(context, name) for name in files)
    found = [
        {"name": rule.name, "description": rule.body.description, "defining_file": shown(rule.place)}
        for rule in rules.rules
        if paths is None or matcher_of(rule).select(paths)
    ]
    broken = [
        {"name": f"PARSE_ERROR:{shown(one.file)}", "description": one.message, "defining_file": shown(one.file)}
        for one in rules.broken
    ]
    return [*found, *broken]


def _inside(context: PluginContext, name: str) -> str:
    try:
        return inside(context.project_root, name)
    except PathRefused as error:
        raise ArgumentError(f"only_rules_matching_files: {shown(name)} {error.message}") from None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"
