"""Programs as reviewers: the request as JSON on stdin, a verdict as JSON or SARIF on stdout or as the exit code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from anyio import to_thread

from deepwork.api import (
    NeedsWork,
    Passed,
    PluginContext,
    ReviewRequest,
    ReviewRunner,
    Usage,
    allowed_environment,
    read_verdict,
    run_program,
    same_verdict,
)
from deepwork.builtin.reviewers.sarif_answer import read_sarif
from deepwork.errors import BadVerdict, DeepWorkError, ProgramMissing, RunnerError, RunnerUnavailable
from deepwork.ports.context import CommandVerdict, ReviewCommand
from deepwork.programs.copies import named_files
from deepwork.programs.processes import Completed
from deepwork.programs.programs import find_program

MAX_OUTPUT = 4 * 1024 * 1024
MAX_INLINE_FILES = 5
MAX_QUOTED = 500


class CommandRunner(ReviewRunner):
    """Runs one program for each review, in a folder with copies of the judged files or in the project."""

    def __init__(self, command: ReviewCommand, context: PluginContext) -> None:
        self._command = command
        self._context = context

    async def review(self, request: ReviewRequest) -> Passed | NeedsWork:
        """Ask the program.

        Raises:
            RunnerError: It gave no verdict, or waits for trust.
            ProgramError: It is too slow, or prints too much.
        """
        try:
            async with self._context.prepared(self._command.command, work=request.files) as arguments:
                if arguments is None:
                    raise self._untrusted()
                completed = await run_program(
                    arguments,
                    cwd=request.project_root if self._command.folder == "project" else request.files_root,
                    environment=allowed_environment(self._context.environment, self._command.pass_env),
                    seconds=request.seconds,
                    stdin=json.dumps(as_json(request), ensure_ascii=False).encode("utf-8", "replace"),
                    max_output=MAX_OUTPUT,
                    project=request.project_root,
                    seen=request.seen,
                )
        except ProgramMissing as error:
            raise self._missing(error) from error
        return _READERS[self._command.verdict](completed, request)

    async def unavailable(self, project_root: Path) -> RunnerUnavailable | None:
        """Return why the program cannot run: it waits for trust, or is not there."""
        try:
            async with self._context.prepared(self._command.command) as arguments:
                if arguments is None:
                    return self._untrusted()
                if arguments[0] == self._command.run[0]:  # else it is a file of the project, and was found
                    await to_thread.run_sync(find_program, arguments[0], self._context.environment, project_root)
        except ProgramMissing as error:
            return self._missing(error)
        return None

    async def identity(self, project_root: Path) -> str | None:
        """Return a digest of the command, the files of the project that it names, and its program."""
        return await to_thread.run_sync(self._identity, project_root)

    def _identity(self, project_root: Path) -> str | None:
        run = self._command.run
        try:
            files = named_files(run, project_root)
            program = run[0] if 0 in files else find_program(run[0], self._context.environment, project_root)
            status = None if 0 in files else os.stat(program)
        except (DeepWorkError, OSError):
            return None
        parts = [
            *(run, self._command.verdict, self._command.pass_env, program),
            (status.st_size, status.st_mtime_ns) if status else None,
            sorted((file.path, file.digest) for file in files.values()),
        ]
        return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def _missing(self, error: ProgramMissing) -> RunnerUnavailable:
        cure = f"Ask the user to correct quality_gate.commands.{self._command.name}."
        return RunnerUnavailable(error.message, hint=cure)

    def _untrusted(self) -> RunnerUnavailable:
        is_of_project = self._command.command.needs_trust
        source = "is a command of this project's config.yml" if is_of_project else "runs a file of this project"
        return RunnerUnavailable(
            f"{self._command.name!r} {source}, and the user has not trusted it",
            hint="Ask the user to run `deepwork trust`; it takes effect at once.",
        )


def as_json(request: ReviewRequest) -> dict[str, Any]:
    """Return the JSON object that a program reads on stdin."""
    return {
        "version": 1,
        "job_name": request.job_name,
        "workflow_name": request.workflow_name,
        "step_id": request.step_id,
        "session_id": request.session_id,
        "project_root": str(request.project_root),
        "files_root": str(request.files_root),
        "run_each": ", ".join(task.run_each for task in request.tasks),
        "files": list(request.files),
        "criteria": request.criteria,
        "guidance": request.guidance,
        "notes": request.notes,
        "parameters": request.parameters,
        "payload": request.payload,
        "nonce": request.nonce,
        "how_to_read": request.how_to_read,
        "seconds": request.seconds,
    }


# A shell's codes for a program that could not be run or was not found.
_NOT_RUN = (126, 127)
MAX_SHOWN = 2000


def read_exit_code(completed: Completed, request: ReviewRequest) -> Passed | NeedsWork:
    """Make a verdict on all criteria of how the program has ended, with the end of what it has printed as feedback.

    A shell answers 128 and more when what it has run was killed: that is a failure of the work, such as tests that
    crash. Only the death of the program itself says nothing.

    Raises:
        RunnerError: It was killed, or could not run.
    """
    if completed.returncode < 0 or completed.returncode in _NOT_RUN:
        raise RunnerError(f"the program {completed.ending}: {_quoted_end(completed.stderr or completed.stdout)}")
    if completed.returncode == 0:
        return same_verdict(request.criteria, passed=True)
    verdict = NeedsWork(_printed(completed), exit_code=completed.returncode)
    return replace(verdict, criteria=same_verdict(request.criteria, passed=False).criteria)


def _printed(completed: Completed) -> str:
    parts = [f"The program {completed.ending}."]
    for name, content in (("stdout", completed.stdout), ("stderr", completed.stderr)):
        text = content.decode("utf-8", "backslashreplace").strip()
        if text:
            cut = f"the last {MAX_SHOWN:,} characters of " if len(text) > MAX_SHOWN else ""
            parts.append(f"{cut}{name}:\n{text[-MAX_SHOWN:]}")
    return "\n\n".join(parts)


def read_log(completed: Completed, request: ReviewRequest) -> Passed | NeedsWork:
    """Make a verdict of the SARIF that the program has printed; many linters end with 1 when they have found something.

    Raises:
        RunnerError: It failed, or printed something else.
    """
    if completed.returncode not in (0, 1):
        raise RunnerError(f"the program {completed.ending}: {_quoted_end(completed.stderr or completed.stdout)}")
    return read_sarif(completed.stdout, request)


def read_answer(completed: Completed, _request: ReviewRequest) -> Passed | NeedsWork:
    """Make a verdict of what the program has printed.

    Raises:
        RunnerError: It failed, or printed something else.
    """
    if completed.returncode:
        raise RunnerError(f"the program {completed.ending}: {_quoted_end(completed.stderr or completed.stdout)}")
    try:
        answer = json.loads(completed.stdout.decode())
    except UnicodeDecodeError:
        raise BadVerdict(f"the program printed something that is not UTF-8: {_quoted_end(completed.stdout)}") from None
    except (ValueError, RecursionError):
        raise BadVerdict(f"the program printed no JSON: {_quoted_end(completed.stdout)}") from None
    usage = answer.get("usage") if isinstance(answer, dict) else None
    return read_verdict(answer, _usage(usage) if isinstance(usage, dict) else None)


_READERS: Mapping[CommandVerdict, Callable[[Completed, ReviewRequest], Passed | NeedsWork]] = {
    "json": read_answer,
    "exit_code": read_exit_code,
    "sarif": read_log,
}


def _usage(usage: dict[str, Any]) -> Usage:
    model, cost = usage.get("model"), usage.get("cost_usd")
    return Usage(
        model=model if isinstance(model, str) else None,
        input_tokens=_count(usage.get("input_tokens")),
        output_tokens=_count(usage.get("output_tokens")),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _quoted_end(content: bytes) -> str:
    """Quote the end of what a program has printed: there stands why it failed."""
    text = content[-4 * MAX_QUOTED :].decode("utf-8", "backslashreplace").strip()
    return repr(text[-MAX_QUOTED:]) if text else "it printed nothing"
