"""Every error that DeepWork expects. What is not in this tree is a bug of ours."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path


class DeepWorkError(Exception):
    """An expected error: shown to people and agents without a traceback.

    Args:
        message: What is wrong, the offending value, and what would be right.
        hint: One command, call or configuration line that helps.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Message and hint, as an agent reads them."""
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class ConfigError(DeepWorkError):
    """A configuration file, environment variable or option that cannot be used."""


class PathRefused(DeepWorkError):
    """A path that leaves its folder, or is not a regular file."""


class ProgramError(DeepWorkError):
    """A program that was run gave no result."""


class ProgramMissing(ProgramError):
    """The program cannot be started."""


class ProgramTimeout(ProgramError):
    """The program did not end in time, and was killed with all programs that it had started."""


class ProgramFlood(ProgramError):
    """The program printed more than it may, and was killed."""


class MountsRefused(ProgramError):
    """The system lets no program see files otherwise than they are."""


class PluginError(DeepWorkError):
    """Something is wrong with an installed plugin, or with the selection of plugins."""


class PluginLoadError(PluginError):
    """A plugin that cannot be imported, or whose hook failed."""


class NameClash(PluginError):
    """Two plugins offer the same name."""


class UnknownName(PluginError):
    """A store, runner or tool set that no installed plugin offers."""


class JobError(DeepWorkError):
    """Something is wrong with a job."""


class JobLoadError(JobError):
    """A job file that cannot be used. Collected and returned beside the good jobs, not raised.

    Args:
        message: Every problem of the file, a line each, as `file:line: message`.
        job_name: Name of the job's folder.
        job_dir: The job's folder.
    """

    def __init__(self, message: str, *, job_name: str, job_dir: Path) -> None:
        super().__init__(message)
        self.job_name = job_name
        self.job_dir = job_dir


class JobSourceError(JobLoadError):
    """A job source that cannot be read as a whole. Collected beside the jobs of the other sources.

    Args:
        message: What is wrong.
        job_name: Name of the source.
        job_dir: Has no meaning here.
        hint: What helps.
    """

    def __init__(self, message: str, *, job_name: str, job_dir: Path, hint: str | None = None) -> None:
        super().__init__(message, job_name=job_name, job_dir=job_dir)
        self.hint = hint


class ToolError(DeepWorkError):
    """A call that cannot be carried out; the agent can correct it."""


class UnknownJob(ToolError):
    """No job of that name, or one whose file is broken."""


class UnknownWorkflow(ToolError):
    """The job has no workflow of that name."""


class EmptyWorkflow(ToolError):
    """The workflow has no steps."""


class MissingInstructions(ToolError):
    """The instruction file of a step that is to begin cannot be read."""


class ArgumentError(ToolError):
    """An argument of the wrong shape or size."""


class ItemChanged(ArgumentError):
    """What waits for a person has changed since they saw it."""


class OutputError(ToolError):
    """Submitted outputs that do not fit what the step declares."""


class UnknownOutputs(OutputError):
    """Submitted outputs that the step does not declare.

    Args:
        message: What is wrong.
        names: The outputs.
        hint: What to do.
    """

    def __init__(self, message: str, names: Sequence[str] = (), *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.names = tuple(names)


class ReviewExhausted(ToolError):
    """The last permitted review attempt failed."""


class UnknownItem(ToolError):
    """Nothing of that id waits for a person."""


class GitError(ToolError):
    """git gave no answer, so nothing may be concluded from it."""


class StrictRefusal(ToolError):
    """A strict quality gate does not allow this."""


class PersonNeeded(ToolError):
    """Only a person may do this, and the caller cannot be told to be one."""


class RunnerError(ToolError):
    """A review runner gave no verdict."""


class RunnerUnavailable(RunnerError):
    """The runner cannot work: its program is missing, not logged in, or waits for trust."""


class GateCannotFail(RunnerUnavailable):
    """The gate passed the work, and also passed it when it was broken; so its pass says nothing."""


class RunnerLimited(RunnerError):
    """The runner is refused by its vendor for a time.

    Args:
        cause: What the vendor says.
        until: When the limit ends, if that is known.
        hint: What helps.
    """

    def __init__(self, cause: str, *, until: dt.datetime | None = None, hint: str | None = None) -> None:
        end = f" until {until.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC" if until else ""
        super().__init__(f"limited{end}: {cause}", hint=hint)
        self.until = until


class RunnerTimeout(RunnerError):
    """The runner gave no verdict in time."""


class BadVerdict(RunnerError):
    """The answer of a runner is not a verdict."""


class StateError(ToolError):
    """A call that does not fit the state of the sessions."""


class NoActiveSession(StateError):
    """No session was named and none is on the stack."""


class UnknownSession(StateError):
    """No session has that id, or it has ended.

    Args:
        message: What is wrong.
        hint: What helps.
        principal: The owner of a session of another workspace: only they are told where that is.
    """

    def __init__(self, message: str, *, hint: str | None = None, principal: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.principal = principal


class StaleSession(StateError):
    """Another caller has changed the session since it was read."""


class CorruptSession(StateError):
    """A stored session that cannot be read."""


class StorageError(StateError):
    """The store could not read or write; nothing was changed."""
