"""`deepwork review` and `deepwork reviews`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio
import click

from deepwork.api import ConfigError, Level, PluginContext, open_context, visible, visible_lines
from deepwork_review.answers import configured, outcome
from deepwork_review.cache import INSTRUCTION_DAYS, PASS_DAYS, ReviewFolder
from deepwork_review.discover import find_rules
from deepwork_review.formatters import DEFAULT, FORMATTERS, formatter_for
from deepwork_review.lint import lint as look
from deepwork_review.names import shown
from deepwork_review.plan import Plan, issue, make_plan, open_git
from deepwork_review.why import explain

CommandT = TypeVar("CommandT", bound=Callable[..., object])


def _project(command: CommandT) -> CommandT:
    help_ = "Project root directory (default: current directory)."
    option = click.option("--path", "root", default=".", envvar="DEEPWORK_PROJECT", metavar="PATH", help=help_)
    return option(command)


def _platform(command: CommandT) -> CommandT:
    help_ = f"Whose words and agents to use: {', '.join(FORMATTERS)}."
    option = click.option(
        "--instructions-for", "platform", default=DEFAULT, show_default=True, metavar="PLATFORM", help=help_
    )
    return option(command)


def _base(command: CommandT) -> CommandT:
    help_ = "What changes are compared with (default: origin's default branch)."
    return click.option("--base-ref", metavar="REF", help=help_)(command)


def _json(command: CommandT) -> CommandT:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


@click.command(epilog="Example: git diff --name-only -z HEAD~3 | deepwork review --stdin")
@_platform
@_base
@_project
@click.option("--files", "named", multiple=True, metavar="FILE", help="Review this file; can be repeated.")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read files from stdin, a line each, or NUL-separated.")
@_json
def review(
    platform: str, base_ref: str | None, root: str, named: tuple[str, ...], *, from_stdin: bool, as_json: bool
) -> None:
    """List the reviews that changed files need, and write their instructions.

    Without --files or --stdin, all changes against the base are meant: committed, staged, unstaged and untracked.
    """
    context = open_context("review", root, platform=platform)
    files = [*named, *(_read_names() if from_stdin else ())]
    chosen = files if named or from_stdin else None
    plan = anyio.run(partial(make_plan, context, files=chosen, base_ref=base_ref))
    issue(context, plan)
    for line in plan.warnings:
        click.echo(f"Warning: {visible(line)}", err=True)
    text = outcome(plan, platform)
    click.echo(json.dumps(_report(plan, platform), indent=2) if as_json else visible_lines(text))


@click.group(epilog="Example: deepwork reviews lint")
def reviews() -> None:
    """List, check and explain review rules."""


@reviews.command("list")
@click.argument("files", nargs=-1)
@_project
@_json
def list_rules(files: tuple[str, ...], root: str, *, as_json: bool) -> int:
    """List the rules of all .deepreview files, or those that match one of FILES."""
    context = open_context("review", root)
    found = configured(context, anyio.run(_rules, context), files or None)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        for one in found:
            click.echo(f"{_bold(one['name'])}  ({visible(one['defining_file'])})  {visible(_line(one['description']))}")
        if not found:
            click.echo("No rules.", err=True)
    return 1 if any(one["name"].startswith("PARSE_ERROR:") for one in found) else 0


@reviews.command()
@_project
@_json
def lint(root: str, *, as_json: bool) -> int:
    """Check all rules: errors, globs that match nothing, excludes without effect, files that are missing.

    Exits with 1 if there are errors; warnings are none.
    """
    rules, flaws = anyio.run(look, open_context("review", root))
    errors = sum(flaw.level is Level.ERROR for flaw in flaws)
    if as_json:
        findings = [{"level": flaw.level.value, "text": flaw.text} for flaw in flaws]
        click.echo(json.dumps({"rules": len(rules.rules), "findings": findings}, indent=2))
        return 1 if errors else 0
    for flaw in flaws:
        text = visible(flaw.text)
        click.echo(text if flaw.level is Level.ERROR else f"{text} (warning)")
    click.echo(f"{len(rules.rules)} rules checked, {errors or 'no'} errors.", err=True)
    return 1 if errors else 0


@reviews.command()
@click.argument("file")
@_platform
@_base
@_project
@_json
def why(file: str, platform: str, base_ref: str | None, root: str, *, as_json: bool) -> None:
    """Say which rules apply to FILE, and for each review whether it has passed or what has changed since."""
    context = open_context("review", root, platform=platform)
    found = anyio.run(partial(explain, context, file, base_ref=base_ref))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for line in found["warnings"]:
        click.echo(f"Warning: {visible(line)}", err=True)
    if found["note"]:
        click.echo(visible(found["note"]))
    for one in found["reviews"]:
        click.echo(f"{_bold(one['name'])}  ({visible(one['rule'])})\n    {visible(one['state'])}")


@reviews.command()
@_project
@click.option("--older-than", "days", type=click.FloatRange(min=0), metavar="DAYS", help="Remove what is older.")
@click.option("--passes", is_flag=True, help="Remove passes of that age too, so that their reviews are done again.")
def clean(root: str, days: float | None, *, passes: bool) -> None:
    """Remove old instructions and passes; without options those that are removed by themselves too."""
    context = open_context("review", root)
    age = INSTRUCTION_DAYS if days is None else days
    kept = (PASS_DAYS if days is None else days) if passes or days is None else float("inf")
    removed = ReviewFolder(context.workspace).clean(instructions_days=age, pass_days=kept)
    click.echo(f"{removed} files removed.")


async def _rules(context: PluginContext) -> Any:
    return await find_rules(context.project_root, await open_git(context))


def _read_names() -> list[str]:
    if sys.stdin.isatty():
        raise ConfigError("--stdin was given, and stdin is a terminal", hint="Pipe the file names in.")
    content = sys.stdin.buffer.read()
    names = content.split(b"\0") if b"\0" in content else content.splitlines()
    return [os.fsdecode(name) for name in names if name]


def _report(plan: Plan, platform: str) -> dict[str, Any]:
    formatter = formatter_for(platform)
    return {
        "compared": plan.changes.compared,
        "changed": list(map(shown, plan.changes.files)),
        "deleted": list(map(shown, plan.changes.deleted)),
        "tasks": [
            {
                **formatter.fields(one.task),
                "review_id": one.identity.review_id,
                "rule": shown(one.material.rule.place),
                "files": list(map(shown, one.material.paths)),
            }
            for one in plan.open
        ],
        "passed": [one.identity.review_id for one in plan.reviews if one.passed],
        "warnings": plan.warnings,
    }


def _bold(name: str) -> str:
    return click.style(visible(name), bold=True)


def _line(text: str) -> str:
    return " ".join(text.split())
