"""Everything that authors of plugins may use. What is not in `__all__` is private and may change.

A name is imported when it is used: a command that needs one or two starts without the models and the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepwork.engine.engine import Engine as Engine
    from deepwork.engine.reports import Report as Report
    from deepwork.errors import BadVerdict as BadVerdict
    from deepwork.errors import ConfigError as ConfigError
    from deepwork.errors import CorruptSession as CorruptSession
    from deepwork.errors import DeepWorkError as DeepWorkError
    from deepwork.errors import JobLoadError as JobLoadError
    from deepwork.errors import PathRefused as PathRefused
    from deepwork.errors import ProgramMissing as ProgramMissing
    from deepwork.errors import RunnerError as RunnerError
    from deepwork.errors import RunnerTimeout as RunnerTimeout
    from deepwork.errors import RunnerUnavailable as RunnerUnavailable
    from deepwork.errors import StaleSession as StaleSession
    from deepwork.errors import StorageError as StorageError
    from deepwork.errors import ToolError as ToolError
    from deepwork.errors import UnknownSession as UnknownSession
    from deepwork.gate.verdicts import read_verdict as read_verdict
    from deepwork.gate.verdicts import same_verdict as same_verdict
    from deepwork.gate.verdicts import verdict_schema as verdict_schema
    from deepwork.jobs.parse import parse_job as parse_job
    from deepwork.jobs.reader import JobReader as JobReader
    from deepwork.models import history as history
    from deepwork.models.jobs import Job as Job
    from deepwork.models.jobs import JobFile as JobFile
    from deepwork.models.jobs import Step as Step
    from deepwork.models.jobs import StepOutput as StepOutput
    from deepwork.models.jobs import Workflow as Workflow
    from deepwork.models.reviews import CriterionResult as CriterionResult
    from deepwork.models.reviews import HandedBack as HandedBack
    from deepwork.models.reviews import NeedsWork as NeedsWork
    from deepwork.models.reviews import Passed as Passed
    from deepwork.models.reviews import ReviewRequest as ReviewRequest
    from deepwork.models.reviews import Usage as Usage
    from deepwork.models.reviews import Verdict as Verdict
    from deepwork.models.sessions import Session as Session
    from deepwork.models.sessions import SessionStatus as SessionStatus
    from deepwork.models.sessions import SessionSummary as SessionSummary
    from deepwork.paths.folder import Folder as Folder
    from deepwork.paths.paths import read_regular as read_regular
    from deepwork.paths.workspace import Workspace as Workspace
    from deepwork.ports import things as things
    from deepwork.ports.agent import Agent as Agent
    from deepwork.ports.agent import AgentEvent as AgentEvent
    from deepwork.ports.agent import AgentSpec as AgentSpec
    from deepwork.ports.agent import AgentTask as AgentTask
    from deepwork.ports.agent import Called as Called
    from deepwork.ports.agent import Ended as Ended
    from deepwork.ports.agent import Failed as Failed
    from deepwork.ports.agent import Limited as Limited
    from deepwork.ports.agent import Said as Said
    from deepwork.ports.agent import Spent as Spent
    from deepwork.ports.call import ToolCall as ToolCall
    from deepwork.ports.context import PluginContext as PluginContext
    from deepwork.ports.context import TrustedCommand as TrustedCommand
    from deepwork.ports.inbox import Answerer as Answerer
    from deepwork.ports.inbox import InboxAction as InboxAction
    from deepwork.ports.inbox import InboxItem as InboxItem
    from deepwork.ports.inbox import InboxSource as InboxSource
    from deepwork.ports.job_source import JobSource as JobSource
    from deepwork.ports.records import AgentMail as AgentMail
    from deepwork.ports.records import AgentMessage as AgentMessage
    from deepwork.ports.records import Check as Check
    from deepwork.ports.records import Finding as Finding
    from deepwork.ports.records import HttpApp as HttpApp
    from deepwork.ports.records import InitStep as InitStep
    from deepwork.ports.records import Level as Level
    from deepwork.ports.records import PromptSpec as PromptSpec
    from deepwork.ports.records import ResourceSpec as ResourceSpec
    from deepwork.ports.records import ReviewRunnerSpec as ReviewRunnerSpec
    from deepwork.ports.records import StateStoreSpec as StateStoreSpec
    from deepwork.ports.records import ToolSet as ToolSet
    from deepwork.ports.records import ToolSpec as ToolSpec
    from deepwork.ports.records import TransportSpec as TransportSpec
    from deepwork.ports.review_runner import ReviewRunner as ReviewRunner
    from deepwork.ports.state_store import StateStore as StateStore
    from deepwork.programs.git import Git as Git
    from deepwork.programs.processes import allowed_environment as allowed_environment
    from deepwork.programs.processes import run_program as run_program
    from deepwork.project.access import Project as Project
    from deepwork.project.command_context import open_context as open_context
    from deepwork.project.opened import open_project as open_project
    from deepwork.project.rehearsal import Rehearsal as Rehearsal
    from deepwork.project.settings import NeedsTrust as NeedsTrust
    from deepwork.project.settings import at_most as at_most
    from deepwork.project.settings import same as same
    from deepwork.project.unopened import project_at as project_at
    from deepwork.sessions.manager import standing_in as standing_in
    from deepwork.sessions.standing import WaitingStep as WaitingStep
    from deepwork.sessions.standing import WaitKind as WaitKind
    from deepwork.sessions.standing import waiting_steps as waiting_steps

# The names, by the module below `deepwork` that has them; for type checkers they are imported above.
_NAMES = {
    "ports": "things",
    "engine.engine": "Engine",
    "engine.reports": "Report",
    "errors": (
        "BadVerdict ConfigError CorruptSession DeepWorkError JobLoadError PathRefused ProgramMissing "
        "RunnerError RunnerTimeout RunnerUnavailable StaleSession StorageError ToolError UnknownSession"
    ),
    "gate.verdicts": "read_verdict same_verdict verdict_schema",
    "jobs.parse": "parse_job",
    "jobs.reader": "JobReader",
    "models": "history",
    "models.jobs": "Job JobFile Step StepOutput Workflow",
    "models.reviews": "CriterionResult HandedBack NeedsWork Passed ReviewRequest Usage Verdict",
    "models.sessions": "Session SessionStatus SessionSummary",
    "paths.folder": "Folder",
    "paths.paths": "read_regular",
    "paths.workspace": "Workspace",
    "ports.agent": "Agent AgentEvent AgentSpec AgentTask Called Ended Failed Limited Said Spent",
    "ports.call": "ToolCall",
    "ports.context": "PluginContext TrustedCommand",
    "ports.inbox": "Answerer InboxAction InboxItem InboxSource",
    "ports.job_source": "JobSource",
    "ports.records": (
        "AgentMail AgentMessage Check Finding HttpApp InitStep Level PromptSpec ResourceSpec "
        "ReviewRunnerSpec StateStoreSpec ToolSet ToolSpec TransportSpec"
    ),
    "ports.review_runner": "ReviewRunner",
    "ports.state_store": "StateStore",
    "programs.git": "Git",
    "programs.processes": "allowed_environment run_program",
    "project.access": "Project",
    "project.command_context": "open_context",
    "project.opened": "open_project",
    "project.rehearsal": "Rehearsal",
    "project.settings": "at_most NeedsTrust same",
    "project.unopened": "project_at",
    "sessions.manager": "standing_in",
    "sessions.standing": "waiting_steps WaitingStep WaitKind",
}
_MODULES = {name: f"deepwork.{module}" for module, names in _NAMES.items() for name in names.split()}

# Names that stood here before, and are public in these modules.
_MOVED_NAMES = {
    "commands.person": "at_terminal",
    "documents.document": "Document",
    "documents.load": "read_document",
    "documents.problems": "DocumentError Problem",
    "errors": (
        "ArgumentError EmptyWorkflow GitError ItemChanged JobError JobSourceError MissingInstructions "
        "NameClash NoActiveSession OutputError PersonNeeded PluginError PluginLoadError ProgramError "
        "ProgramFlood ProgramTimeout ReviewExhausted StateError StrictRefusal UnknownItem UnknownJob "
        "UnknownName UnknownOutputs UnknownWorkflow"
    ),
    "models.history": "HistoryEntry",
    "models.jobs": "Review",
    "models.replies": "AbortedWorkflow BeginStep FinishedStep StartedWorkflow WorkflowList",
    "models.reviews": "ReviewTask",
    "models.sessions": "SCHEMA_VERSION StepProgress StepStatus",
    "models.standing": "MAX_HEAD read_head Standing",
    "paths.folder": "FileBeside",
    "paths.locks": "LockHeld",
    "paths.paths": "is_utf8 open_regular resolve_inside",
    "paths.private_folders": "private_folder",
    "paths.state_folder": "StateFolder",
    "paths.user_folders": "user_state_dir",
    "project.opened": "OpenedProject",
    "ports.agent": "FailureKind LimitCause",
    "ports.agent_call": "AgentCall",
    "ports.call": "Caller caller_of ClientInfo",
    "ports.context": "ReviewCommand",
    "ports.inbox": "Inbox InboxContents InboxFailure",
    "ports.records": "InitialProject PageAddress ServedApp Serving",
    "ports.state_store": "SessionReader",
    "programs.processes": "Completed end_marked open_browser running_program RunningProgram",
    "programs.programs": "find_program",
    "programs.work_queue": "Piece WorkQueue",
    "project.stores": "open_store",
    "server.apps": "serve_apps",
    "sessions.standing": "calls_of standing_of step_state waits_of",
    "text": "one_line quoted quoted_lines visible visible_lines",
}
MOVED = {name: f"deepwork.{module}" for module, names in _MOVED_NAMES.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a name at its first use.

    Raises:
        ImportError: The name has moved; the error says where it is.
    """
    if name in MOVED:
        raise ImportError(f"{name!r} has left deepwork.api: write `from {MOVED[name]} import {name}`")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    is_module = name in ("history", "things")
    item = import_module(f"{module}.{name}") if is_module else getattr(import_module(module), name)
    globals()[name] = item
    return item
