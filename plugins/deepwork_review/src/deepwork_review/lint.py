"""What is wrong in rules that can be read, and in those that cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import anyio
from anyio import to_thread

from deepwork.api import Check, DeepWorkError, Finding, Level, PathRefused, PluginContext, read_regular
from deepwork_review.discover import RuleBook, find_files, find_rules
from deepwork_review.formatters import FORMATTERS
from deepwork_review.match import Matcher
from deepwork_review.names import shown
from deepwork_review.plan import MAX_REFERENCE_BYTES, open_git
from deepwork_review.precomputed import command_of
from deepwork_review.rules import Rule, why

# Files between two looks whether one has matched.
SOME = 1000


@dataclass(frozen=True)
class Flaw:
    """One thing that is wrong; `text` begins with `file:line:` where it concerns a line."""

    level: Level
    text: str


async def lint(context: PluginContext) -> tuple[RuleBook, list[Flaw]]:
    """Look at every rule, against all files of the project.

    Raises:
        GitError: git gave no answer.
    """
    root, git = context.project_root, await open_git(context)
    rules = await find_rules(root, git)
    listing = await find_files(root, git)
    flaws = [Flaw(Level.ERROR, line) for broken in rules.broken for line in broken.message.splitlines()]
    flaws += [Flaw(Level.WARNING, note) for note in (*rules.notes, *listing.notes) if note]
    for rule in rules.rules:
        for text in await to_thread.run_sync(_flaws, context, rule, listing.files):
            flaws.append(Flaw(Level.WARNING, f"{shown(rule.file)}:{rule.line}: rule {rule.name!r}: {text}"))
    return rules, list(dict.fromkeys(flaws))


def check(context: PluginContext) -> Check:
    """Make the check for `deepwork doctor`: what is broken, and how much there is."""

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
        for flaw in flaws:
            yield Finding(flaw.level, flaw.text, "deepwork reviews lint")

    return Check("reviews", run)


def _flaws(context: PluginContext, rule: Rule, files: Sequence[str]) -> list[str]:
    return [*_flaws_of_globs(rule, files), *_flaws_of_review(context, rule)]


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
    if candidates and not Matcher(rule.folder, match.include, match.exclude).select(candidates):
        yield "the excludes leave no file"


def _flaws_of_review(context: PluginContext, rule: Rule) -> Iterator[str]:
    review = rule.body.review
    for platform in review.agent:
        if platform not in FORMATTERS:
            yield f"agent {platform!r} is for a platform that reviews are not written for"
    for reference in review.reference_files:
        path = f"{rule.folder}/{reference.path}" if rule.folder else reference.path
        try:
            read_regular(path, [context.project_root], limit=MAX_REFERENCE_BYTES).decode()
        except FileNotFoundError:
            yield f"reference file {reference.path!r} does not exist"
        except UnicodeDecodeError:
            yield f"reference file {reference.path!r} is not UTF-8"
        except (PathRefused, OSError) as error:
            yield f"reference file {reference.path!r} {why(error)}"
    if review.precomputed_info_for_reviewer_bash_command:
        try:
            command_of(context.project_root, rule)
        except ValueError as error:
            yield str(error)


def _any_match(matcher: Matcher, files: Sequence[str]) -> bool:
    return any(matcher.select(files[start : start + SOME]) for start in range(0, len(files), SOME))
