"""`deepwork review` and `deepwork reviews`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio
import click

from deepwork.api import Level, open_context
from deepwork.commands.options import json_option, path_option
from deepwork.commands.terminal import Styled, say, say_json, say_text
from deepwork.errors import ConfigError
from deepwork.text import one_line
from deepwork_review.explanation import explain
from deepwork_review.formatters import DEFAULT, FORMATTERS
from deepwork_review.lint import lint as find_flaws
from deepwork_review.names import printable
from deepwork_review.plan import Plan, make_plan
from deepwork_review.replies import configured_rules, review_list
from deepwork_review.review_folder import INSTRUCTION_DAYS, PASS_DAYS, ReviewFolder

# More than any description of a rule may have.
MAX_DESCRIPTION = 1000

CommandT = TypeVar("CommandT", bound=Callable[..., object])


def _platform(command: CommandT) -> CommandT:
    help_ = f"Whose words and agents to use: {', '.join(FORMATTERS)}."
    option = click.option(
        "--instructions-for", "platform", default=DEFAULT, show_default=True, metavar="PLATFORM", help=help_
    )
    return option(command)


def _base(command: CommandT) -> CommandT:
    help_ = "What changes are compared with (default: origin's default branch)."
    return click.option("--base-ref", metavar="REF", help=help_)(command)


@click.command(epilog="Example: git diff --name-only -z HEAD~3 | deepwork review --stdin")
@_platform
@_base
@path_option
@click.option("--files", "named", multiple=True, metavar="FILE", help="Review this file; can be repeated.")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read files from stdin, a line each, or NUL-separated.")
@json_option
def review(
    platform: str, base_ref: str | None, root: str, named: tuple[str, ...], *, from_stdin: bool, as_json: bool
) -> None:
    """List the reviews that changed files need, and write their instructions.

    Without --files or --stdin, these are all changes against the base: committed, staged, unstaged and untracked.
    """
    context = open_context("review", root, platform=platform)
    files = [*named, *(_read_names() if from_stdin else ())]
    chosen = files if named or from_stdin else None
    plan = anyio.run(partial(make_plan, context, files=chosen, base_ref=base_ref))
    plan.issue()
    _warn(plan.warnings)
    text = review_list(plan)
    if as_json:
        say_json(_report(plan))
    else:
        say_text(text)


@click.group(epilog="Example: deepwork reviews lint")
def reviews() -> None:
    """List, check and explain review rules."""


@reviews.command("list")
@click.argument("files", nargs=-1)
@path_option
@json_option
def list_rules(files: tuple[str, ...], root: str, *, as_json: bool) -> int:
    """List the rules of all .deepreview files, or those for FILES."""
    rules = anyio.run(configured_rules, open_context("review", root), files or None)
    if as_json:
        say_json(rules)
    else:
        for rule in rules:
            description = one_line(rule["description"], MAX_DESCRIPTION)
            say(Styled(rule["name"], bold=True), f"  ({rule['defining_file']})  {description}")
        if not rules:
            say("No rules.", err=True)
    return 1 if any(rule["name"].startswith("PARSE_ERROR:") for rule in rules) else 0


@reviews.command()
@path_option
@json_option
def lint(root: str, *, as_json: bool) -> int:
    """Check the rules of all .deepreview files.

    It finds errors, globs that match nothing, excludes without effect, and files that are missing.

    Exits with 1 if there are errors; warnings do not count.
    """
    rules, flaws = anyio.run(find_flaws, open_context("review", root))
    errors = sum(flaw.level is Level.ERROR for flaw in flaws)
    if as_json:
        findings = [{"level": flaw.level.value, "text": flaw.text} for flaw in flaws]
        say_json({"rules": len(rules.rules), "findings": findings})
        return 1 if errors else 0
    for flaw in flaws:
        say(flaw.text if flaw.level is Level.ERROR else f"{flaw.text} (warning)")
    say(f"{len(rules.rules)} rules checked, {errors or 'no'} errors.", err=True)
    return 1 if errors else 0


@reviews.command()
@click.argument("file")
@_platform
@_base
@path_option
@json_option
def why(file: str, platform: str, base_ref: str | None, root: str, *, as_json: bool) -> None:
    """Show which rules apply to FILE, and where each review stands.

    Of each review it says whether it has passed, or what has changed since.
    """
    context = open_context("review", root, platform=platform)
    explanation = anyio.run(partial(explain, context, file, base_ref=base_ref))
    if as_json:
        say_json(explanation)
        return
    _warn(explanation["warnings"])
    if explanation["note"]:
        say(explanation["note"])
    for entry in explanation["reviews"]:
        say(Styled(entry["name"], bold=True), f"  ({entry['rule']})")
        say(f"    {entry['state']}")


@reviews.command()
@path_option
@click.option("--older-than", "days", type=click.FloatRange(min=0), metavar="DAYS", help="Remove what is older.")
@click.option("--passes", is_flag=True, help="Remove passes of that age too, so that their reviews are done again.")
def clean(root: str, days: float | None, *, passes: bool) -> None:
    """Remove old instructions and passes.

    Without options, it removes only what every review removes anyway.
    """
    folder = ReviewFolder(open_context("review", root))
    if days is None:
        removed = folder.clean(instruction_days=INSTRUCTION_DAYS, pass_days=PASS_DAYS)
    else:
        removed = folder.clean(instruction_days=days, pass_days=days if passes else float("inf"))
    say(f"{removed} files removed.")


def _warn(warnings: list[str]) -> None:
    for line in warnings:
        say(f"Warning: {line}", err=True)


def _read_names() -> list[str]:
    if sys.stdin.isatty():
        raise ConfigError("--stdin needs input, but stdin is a terminal", hint="Pipe the file names in.")
    content = sys.stdin.buffer.read()
    names = content.split(b"\0") if b"\0" in content else content.splitlines()
    return [os.fsdecode(name) for name in names if name]


def _report(plan: Plan) -> dict[str, Any]:
    return {
        "compared": plan.changes.compared,
        "changed": list(map(printable, plan.changes.files)),
        "deleted": list(map(printable, plan.changes.deleted)),
        "tasks": [
            {
                **plan.formatter.fields(review.task),
                "review_id": review.identity.review_id,
                "rule": printable(review.material.rule.place),
                "files": list(map(printable, review.material.paths)),
            }
            for review in plan.pending
        ],
        "passed": [review.identity.review_id for review in plan.reviews if review.record],
        "warnings": plan.warnings,
    }
