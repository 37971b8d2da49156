"""Runs the commands of rules, whose output reviewers read. A command runs only if the user trusts exactly it."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio
from anyio import to_thread

from deepwork.api import PluginContext, TrustedCommand, run_program
from deepwork.errors import ProgramError
from deepwork_review.discover import RuleBook, find_rules
from deepwork_review.project_files import MissingFile, UnusableFile, read_file
from deepwork_review.rules import Rule
from deepwork_review.working_tree import WorkingTree

SECONDS = 60.0
CONCURRENCY = 8
MAX_OUTPUT = 256 * 1024
MAX_SCRIPT = 4 * 1024 * 1024
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "LOGNAME")


async def precompute(context: PluginContext, rules: Sequence[Rule]) -> tuple[dict[str, str], list[str]]:
    """Run the commands of rules.

    Returns:
        What each has printed, by the rule's place, and a note for each that did not run or failed.
    """
    texts: dict[str, str] = {}
    notes: list[str] = []
    limiter = anyio.CapacityLimiter(CONCURRENCY)

    async def run(rule: Rule) -> None:
        async with limiter:
            texts[rule.place], problem = await _run(context, rule)
        if problem:
            notes.append(f"{rule.label}: {problem}")

    async with anyio.create_task_group() as tasks:
        for rule in rules:
            if rule.body.review.precomputed_info_for_reviewer_bash_command:
                tasks.start_soon(run, rule)
    return texts, sorted(notes)


def command_of(root: Path, rule: Rule) -> TrustedCommand:
    """Return a rule's command, which starts with a script of the project.

    Raises:
        ValueError: The command is empty, or its first word is not a usable script.
    """
    text = rule.body.review.precomputed_info_for_reviewer_bash_command or ""
    words = shlex.split(text)
    if not words:
        raise ValueError("the command is empty")
    script = posixpath.join(rule.folder, words[0])
    try:
        read_file(root, script, limit=MAX_SCRIPT)
    except MissingFile:
        raise ValueError(f"the command {words[0]!r} is not a file beside {rule.file}") from None
    except UnusableFile as error:
        raise ValueError(f"the command {words[0]!r} {error}") from None
    program = os.path.realpath(root / script)
    interpreter = [] if os.access(program, os.X_OK) else ["bash"]
    return TrustedCommand(f"command of rule {rule.name} in {rule.file}", (*interpreter, program, *words[1:]))


def commands_of(context: PluginContext) -> list[TrustedCommand]:
    """Read all rules, and give the commands that they want to run; outside of an event loop."""

    async def find() -> RuleBook:
        return await find_rules(context.project_root, await context.git(WorkingTree))

    commands = []
    for rule in anyio.run(find).rules:
        if rule.body.review.precomputed_info_for_reviewer_bash_command:
            with suppress(ValueError):
                commands.append(command_of(context.project_root, rule))
    return commands


async def _run(context: PluginContext, rule: Rule) -> tuple[str, str | None]:
    """Run the command of a rule; give the text for reviewers, and what the user has to know."""
    try:
        command = await to_thread.run_sync(command_of, context.project_root, rule)
    except ValueError as error:
        return f"(nothing: {error})", str(error)
    try:
        async with context.prepared(command) as arguments:
            if arguments is None:
                text = "(nothing: the user has not trusted this command)"
                return text, "its command was not run; see `deepwork trust`"
            completed = await run_program(
                arguments,
                cwd=context.project_root,
                environment={name: value for name, value in context.environment.items() if name in PASSED_ON},
                seconds=SECONDS,
                max_output=MAX_OUTPUT,
            )
    except ProgramError as error:
        return f"(nothing: {error.message})", error.message
    text = completed.stdout.decode(errors="replace")
    if completed.returncode:
        complaint = completed.stderr.decode(errors="replace").strip()[-2000:]
        return f"{text}\n(the command failed with exit code {completed.returncode})\n{complaint}", "its command failed"
    return text, None
