"""Checks all rules for mistakes: unreadable ones, and patterns that would not do what they seem to say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from deepwork.api import Check, Finding, Level, PluginContext, TrustedCommand
from deepwork.errors import DeepWorkError
from deepwork_review.discover import RuleBook, find_files, find_rules
from deepwork_review.formatters import FORMATTERS
from deepwork_review.match import Matcher
from deepwork_review.material import MAX_REFERENCE_BYTES
from deepwork_review.names import printable
from deepwork_review.precomputed import command_of, commands_of
from deepwork_review.project_files import UnusableFile, read_text
from deepwork_review.rules import Rule
from deepwork_review.working_tree import WorkingTree

# Files that are matched before the search looks whether it can stop.
BATCH = 1000

_flaw = partial(Finding, cure="deepwork reviews lint")


async def lint(context: PluginContext) -> tuple[RuleBook, list[Finding]]:
    """Check every rule against all files of the project; a flaw begins with `file:line:` where it concerns a line.

    Raises:
        GitError: git gave no answer.
    """
    root = context.project_root
    tree = await context.git(WorkingTree, root)
    rules = await find_rules(root, tree)
    listing = await find_files(root, tree)
    flaws = [_flaw(Level.ERROR, line) for broken in rules.broken for line in broken.message.splitlines()]
    flaws += [_flaw(Level.WARNING, note) for note in (*rules.notes, *listing.notes) if note]
    for rule in rules.rules:
        for text in await to_thread.run_sync(_flaws, root, rule, listing.files):
            flaws.append(_flaw(Level.WARNING, f"{printable(rule.file)}:{rule.line}: rule {rule.name!r}: {text}"))
    return rules, list(dict.fromkeys(flaws))


def check(context: PluginContext) -> Check:
    """Make the check for `deepwork doctor`: the number of rules, and their flaws."""

    def run() -> Iterator[Finding]:
        try:
            rules, flaws = anyio.run(lint, context)
        except DeepWorkError as error:
            yield Finding(Level.ERROR, error.message, error.hint)
            return
        if not (rules.rules or flaws):
            yield Finding(Level.INFO, "no .deepreview files")
        elif rules.rules:
            yield Finding(Level.OK, f"{len(rules.rules)} review rules")
        yield from flaws

    def commands() -> list[TrustedCommand]:
        with suppress(DeepWorkError):  # `run` reports it
            return commands_of(context)
        return []

    return Check("reviews", run, commands)


def _flaws(root: Path, rule: Rule, files: Sequence[str]) -> list[str]:
    return [*_flaws_of_globs(rule, files), *_flaws_of_review(root, rule)]


def _flaws_of_globs(rule: Rule, files: Sequence[str]) -> Iterator[str]:
    match = rule.body.match
    for glob in match.include:
        if not _any_match(Matcher(rule.folder, [glob]), files):
            yield f"include {glob!r} matches no file"
    included = Matcher(rule.folder, match.include)
    candidates = included.select(files) if match.exclude else []
    for glob in match.exclude:
        if not _any_match(Matcher(rule.folder, [glob]), candidates):
            yield f"exclude {glob!r} excludes nothing that is included"
    if candidates and not rule.matcher().select(candidates):
        yield "the excludes leave no file"


def _flaws_of_review(root: Path, rule: Rule) -> Iterator[str]:
    review = rule.body.review
    for platform in review.agent:
        if platform not in FORMATTERS:
            yield f"agent {platform!r} is for a platform that reviews are not written for"
    for reference in review.reference_files:
        try:
            read_text(root, rule.beside(reference.path), limit=MAX_REFERENCE_BYTES)
        except UnusableFile as error:
            yield f"reference file {reference.path!r} {error}"
    if review.precomputed_info_for_reviewer_bash_command:
        try:
            command_of(root, rule)
        except ValueError as error:
            yield str(error)


def _any_match(matcher: Matcher, files: Sequence[str]) -> bool:
    return any(matcher.select(files[start : start + BATCH]) for start in range(0, len(files), BATCH))
