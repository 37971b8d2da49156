"""What a rule's command tells reviewers. It runs only where the user trusts exactly this command."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import anyio

from deepwork.api import PathRefused, PluginContext, ProgramError, read_regular, run_program
from deepwork_review.rules import Rule, why

SECONDS = 60.0
AT_ONCE = 8
MAX_OUTPUT = 256 * 1024
MAX_SCRIPT = 4 * 1024 * 1024
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "LOGNAME")


async def precompute(context: PluginContext, rules: Sequence[Rule]) -> tuple[dict[str, str], list[str]]:
    """Run the commands of rules, and give what each has printed by the rule's place, and what users have to know."""
    texts: dict[str, str] = {}
    notes: list[str] = []
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def run(rule: Rule) -> None:
        async with limiter:
            texts[rule.place], problem = await _run(context, rule)
        if problem:
            notes.append(f"rule {rule.name!r} ({rule.place}): {problem}")

    async with anyio.create_task_group() as tasks:
        for rule in rules:
            if rule.body.review.precomputed_info_for_reviewer_bash_command:
                tasks.start_soon(run, rule)
    return texts, sorted(notes)


def command_of(root: Path, rule: Rule) -> tuple[list[str], str]:
    """Split a rule's command into a script of the project with its arguments, and digest the script.

    Raises:
        ValueError: It names no such file.
    """
    written = rule.body.review.precomputed_info_for_reviewer_bash_command or ""
    words = shlex.split(written)
    if not words:
        raise ValueError("the command is empty")
    try:
        script = posixpath.join(rule.folder, words[0])
        content = read_regular(script, [root], limit=MAX_SCRIPT)
    except FileNotFoundError:
        raise ValueError(f"the command {words[0]!r} is no file beside {rule.file}") from None
    except (PathRefused, OSError) as error:
        raise ValueError(f"the command {words[0]!r} {why(error)}") from None
    program = os.path.realpath(root / script)
    start = [program] if os.access(program, os.X_OK) else ["bash", program]
    return [*start, *words[1:]], sha256(content).hexdigest()


async def _run(context: PluginContext, rule: Rule) -> tuple[str, str | None]:
    try:
        arguments, digest = command_of(context.project_root, rule)
    except ValueError as error:
        return f"(nothing: {error})", str(error)
    label = f"command of rule {rule.name} in {rule.file}"
    written = rule.body.review.precomputed_info_for_reviewer_bash_command
    if not context.trusts(label, {"command": written, "sha256 of the script": digest}):
        return "(nothing: the user has not trusted this command)", "its command was not run; see `deepwork trust`"
    try:
        done = await run_program(
            arguments,
            cwd=context.project_root,
            environment=_environment(context.environment),
            seconds=SECONDS,
            max_output=MAX_OUTPUT,
        )
    except ProgramError as error:
        return f"(nothing: {error.message})", error.message
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-2000:]
        return f"{text}\n(the command failed with exit code {done.returncode})\n{said}", "its command failed"
    return text, None


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in KEPT if name in environment}
