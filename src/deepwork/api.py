"""Everything that authors of plugins may use. What is not in `__all__` is private and may change.

A name is imported when it is used: a command that needs one or two starts without the models and the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# One name a line would fill three pages.
# fmt: off
if TYPE_CHECKING:
    from deepwork.engine.engine import Engine
    from deepwork.engine.reports import Report
    from deepwork.errors import (
        BadVerdict, ConfigError, CorruptSession, DeepWorkError, JobLoadError, PathRefused, ProgramMissing,
        RunnerError, RunnerTimeout, RunnerUnavailable, StaleSession, StorageError, ToolError, UnknownSession,
    )
    from deepwork.gate.verdicts import read_verdict, same_verdict, verdict_schema
    from deepwork.jobs.parse import JobReading, parse_job
    from deepwork.jobs.reader import JobReader
    from deepwork.models import history
    from deepwork.models.jobs import Job, JobFile, Step, StepOutput, Workflow
    from deepwork.models.reviews import CriterionResult, HandedBack, NeedsWork, Passed, ReviewRequest, Usage, Verdict
    from deepwork.models.sessions import Session, SessionStatus, SessionSummary
    from deepwork.paths.folder import Folder
    from deepwork.paths.paths import read_regular
    from deepwork.paths.workspace import Workspace
    from deepwork.ports import things
    from deepwork.ports.agent import (
        Agent, AgentEvent, AgentSpec, AgentTask, Called, Ended, Failed, Limited, Said, Spent,
    )
    from deepwork.ports.call import ToolCall
    from deepwork.ports.context import PluginContext, TrustedCommand
    from deepwork.ports.inbox import Answerer, InboxAction, InboxItem, InboxSource
    from deepwork.ports.job_source import JobSource
    from deepwork.ports.records import (
        AgentMail, AgentMessage, Check, Finding, HttpApp, InitStep, Level, PromptSpec, ResourceSpec, ReviewRunnerSpec,
        StateStoreSpec, ToolSet, ToolSpec, TransportSpec,
    )
    from deepwork.ports.review_runner import ReviewRunner
    from deepwork.ports.state_store import StateStore
    from deepwork.programs.git import Git
    from deepwork.programs.processes import allowed_environment, run_program
    from deepwork.project.access import Project
    from deepwork.project.command_context import open_context
    from deepwork.project.opened import open_project
    from deepwork.project.rehearsal import Rehearsal
    from deepwork.project.settings import NeedsTrust, at_most, same
    from deepwork.project.unopened import project_at
    from deepwork.sessions import standing
    from deepwork.sessions.manager import standing_in
    from deepwork.sessions.memory_store import MemoryStore

__all__ = [
    "Agent", "AgentEvent", "AgentMail", "AgentMessage", "AgentSpec", "AgentTask", "Answerer", "BadVerdict", "Called",
    "Check", "ConfigError", "CorruptSession", "CriterionResult", "DeepWorkError", "Ended", "Engine", "Failed",
    "Finding", "Folder", "Git", "HandedBack", "HttpApp", "InboxAction", "InboxItem", "InboxSource", "InitStep", "Job",
    "JobFile", "JobLoadError", "JobReader", "JobReading", "JobSource", "Level", "Limited", "MemoryStore",
    "NeedsTrust", "NeedsWork", "Passed", "PathRefused", "PluginContext", "ProgramMissing", "Project", "PromptSpec",
    "Rehearsal", "Report", "ResourceSpec", "ReviewRequest", "ReviewRunner", "ReviewRunnerSpec", "RunnerError",
    "RunnerTimeout", "RunnerUnavailable", "Said", "Session", "SessionStatus", "SessionSummary", "Spent",
    "StaleSession", "StateStore", "StateStoreSpec", "Step", "StepOutput", "StorageError", "ToolCall", "ToolError",
    "ToolSet", "ToolSpec", "TransportSpec", "TrustedCommand", "UnknownSession", "Usage", "Verdict", "Workflow",
    "Workspace", "allowed_environment", "at_most", "history", "open_context", "open_project", "parse_job",
    "project_at", "read_regular", "read_verdict", "run_program", "same", "same_verdict", "standing", "standing_in",
    "things", "verdict_schema",
]
# fmt: on

# The same names, by the module below `deepwork` that has them: where each is imported from at its first use.
_NAMES = {
    "ports": "things",
    "engine.engine": "Engine",
    "engine.reports": "Report",
    "errors": (
        "BadVerdict ConfigError CorruptSession DeepWorkError JobLoadError PathRefused ProgramMissing "
        "RunnerError RunnerTimeout RunnerUnavailable StaleSession StorageError ToolError UnknownSession"
    ),
    "gate.verdicts": "read_verdict same_verdict verdict_schema",
    "jobs.parse": "JobReading parse_job",
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
    "sessions": "standing",
    "sessions.manager": "standing_in",
    "sessions.memory_store": "MemoryStore",
}
_MODULES = {name: f"deepwork.{module}" for module, names in _NAMES.items() for name in names.split()}

# Names that stood here before, and are public in these modules.
_MOVED_NAMES = {
    "commands.person": "at_terminal",
    "documents.document": "Document",
    "documents.load": "read_document",
    "documents.problems": "DocumentError Problem",
    "engine.pieces": "Pieces",
    "errors": (
        "ArgumentError EmptyWorkflow GitError ItemChanged JobError JobSourceError MissingInstructions "
        "NameClash NoActiveSession OutputError PersonNeeded PluginError PluginLoadError ProgramError "
        "GateCannotFail MountsRefused RunnerLimited "
        "ProgramFlood ProgramTimeout ReviewExhausted StateError StrictRefusal UnknownItem UnknownJob "
        "UnknownName UnknownOutputs UnknownWorkflow"
    ),
    "models.history": "HistoryEntry",
    "models.jobs": "Review",
    "models.replies": "AbortedWorkflow BeginStep FinishedStep StartedWorkflow WorkflowList",
    "models.reviews": "ReviewTask Waiting",
    "models.sessions": "SCHEMA_VERSION StepProgress StepStatus",
    "models.standing": "MAX_HEAD read_head Standing WaitingStep WaitKind",
    "paths.folder": "FileBeside",
    "paths.locks": "LockHeld",
    "paths.paths": "is_utf8 open_regular resolve_inside",
    "paths.private_folders": "private_folder",
    "paths.state_folder": "StateFolder",
    "ports.proofs": "Proven Prover Trial",
    "paths.user_folders": "user_state_dir",
    "project.opened": "OpenedProject",
    "ports.agent": "FailureKind LimitCause",
    "ports.agent_call": "AgentCall",
    "ports.call": "Caller caller_of ClientInfo",
    "ports.context": "ReviewCommand",
    "ports.inbox": "Answer Inbox InboxContents InboxFailure",
    "ports.records": "ClaimKeeper InitialProject PageAddress ServedApp Serving UnlistedTool",
    "ports.state_store": "SessionReader",
    "programs.marked": "end_marked",
    "programs.processes": "Completed open_browser running_program RunningProgram",
    "programs.programs": "find_program",
    "programs.resets": "reset_time",
    "programs.work_queue": "Piece WorkQueue",
    "project.stores": "open_store",
    "server.apps": "serve_apps",
    "sessions.lines": "moves",
    "sessions.standing": "calls_of standing_of step_state waiting_steps waits_of",
    "text": "one_line quoted quoted_lines visible visible_lines",
}
MOVED = {name: f"deepwork.{module}" for module, names in _MOVED_NAMES.items() for name in names.split()}


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
    is_module = name in ("history", "standing", "things")
    item = import_module(f"{module}.{name}") if is_module else getattr(import_module(module), name)
    globals()[name] = item
    return item
