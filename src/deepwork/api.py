"""Everything that authors of plugins may use. What is not in `__all__` is private and may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepwork.documents.document import Document
from deepwork.documents.load import read_document
from deepwork.documents.problems import DocumentError, Problem
from deepwork.engine.engine import Engine
from deepwork.engine.reports import Report
from deepwork.errors import (
    ArgumentError,
    BadVerdict,
    ConfigError,
    CorruptSession,
    DeepWorkError,
    EmptyWorkflow,
    GitError,
    JobError,
    JobLoadError,
    JobSourceError,
    MissingInstructions,
    NameClash,
    NoActiveSession,
    OutputError,
    PathRefused,
    PersonNeeded,
    PluginError,
    PluginLoadError,
    ProgramError,
    ProgramFlood,
    ProgramMissing,
    ProgramTimeout,
    ReviewExhausted,
    RunnerError,
    RunnerTimeout,
    RunnerUnavailable,
    StaleSession,
    StateError,
    StorageError,
    StrictRefusal,
    ToolError,
    UnknownItem,
    UnknownJob,
    UnknownName,
    UnknownOutputs,
    UnknownSession,
    UnknownWorkflow,
)
from deepwork.files.folder import FileBeside, Folder
from deepwork.files.git import Git
from deepwork.files.locks import LockHeld
from deepwork.files.paths import is_utf8, open_regular, read_regular, resolve_inside
from deepwork.files.private_folders import private_folder
from deepwork.files.processes import Completed, allowed_environment, open_browser, run_program
from deepwork.files.programs import find_program
from deepwork.files.state_folder import StateFolder
from deepwork.files.user_folders import user_state_dir
from deepwork.files.work_queue import Piece, WorkQueue
from deepwork.files.workspace import Workspace
from deepwork.gate.verdicts import read_verdict, same_verdict, verdict_schema
from deepwork.jobs.parse import parse_job
from deepwork.jobs.reader import JobReader
from deepwork.models import history
from deepwork.models.history import HistoryEntry
from deepwork.models.jobs import Job, JobFile, Review, Step, StepOutput, Workflow
from deepwork.models.replies import (
    AbortedWorkflow,
    BeginStep,
    FinishedStep,
    StartedWorkflow,
    WorkflowList,
)
from deepwork.models.reviews import (
    CriterionResult,
    HandedBack,
    NeedsWork,
    Passed,
    ReviewRequest,
    ReviewTask,
    Usage,
    Verdict,
)
from deepwork.models.sessions import (
    SCHEMA_VERSION,
    Session,
    SessionStatus,
    SessionSummary,
    StepProgress,
    StepStatus,
)
from deepwork.models.standing import MAX_HEAD, Standing, read_head
from deepwork.ports.call import Caller, ClientInfo, ToolCall, caller_of
from deepwork.ports.context import PluginContext, ReviewCommand, TrustedCommand
from deepwork.ports.inbox import (
    Answerer,
    Inbox,
    InboxAction,
    InboxContents,
    InboxFailure,
    InboxItem,
    InboxSource,
)
from deepwork.ports.job_source import JobSource
from deepwork.ports.records import (
    AgentMail,
    AgentMessage,
    Check,
    Finding,
    HttpApp,
    Level,
    PageAddress,
    PromptSpec,
    ResourceSpec,
    ReviewRunnerSpec,
    StateStoreSpec,
    ToolSet,
    ToolSpec,
)
from deepwork.ports.review_runner import ReviewRunner
from deepwork.ports.state_store import SessionReader, StateStore
from deepwork.project.contexts import open_context
from deepwork.project.person import at_terminal
from deepwork.project.settings import NeedsTrust, at_most, same
from deepwork.project.stores import open_store
from deepwork.sessions.manager import standing_in
from deepwork.sessions.standing import standing_of, step_state
from deepwork.text.foreign import one_line, quoted, quoted_lines, visible, visible_lines

if TYPE_CHECKING:
    from deepwork.server.apps import serve_apps

__all__ = [
    "MAX_HEAD",
    "SCHEMA_VERSION",
    "AbortedWorkflow",
    "AgentMail",
    "AgentMessage",
    "Answerer",
    "ArgumentError",
    "BadVerdict",
    "BeginStep",
    "Caller",
    "Check",
    "ClientInfo",
    "Completed",
    "ConfigError",
    "CorruptSession",
    "CriterionResult",
    "DeepWorkError",
    "Document",
    "DocumentError",
    "EmptyWorkflow",
    "Engine",
    "FileBeside",
    "Finding",
    "FinishedStep",
    "Folder",
    "Git",
    "GitError",
    "HandedBack",
    "HistoryEntry",
    "HttpApp",
    "Inbox",
    "InboxAction",
    "InboxContents",
    "InboxFailure",
    "InboxItem",
    "InboxSource",
    "Job",
    "JobError",
    "JobFile",
    "JobLoadError",
    "JobReader",
    "JobSource",
    "JobSourceError",
    "Level",
    "LockHeld",
    "MissingInstructions",
    "NameClash",
    "NeedsTrust",
    "NeedsWork",
    "NoActiveSession",
    "OutputError",
    "PageAddress",
    "Passed",
    "PathRefused",
    "PersonNeeded",
    "Piece",
    "PluginContext",
    "PluginError",
    "PluginLoadError",
    "Problem",
    "ProgramError",
    "ProgramFlood",
    "ProgramMissing",
    "ProgramTimeout",
    "PromptSpec",
    "Report",
    "ResourceSpec",
    "Review",
    "ReviewCommand",
    "ReviewExhausted",
    "ReviewRequest",
    "ReviewRunner",
    "ReviewRunnerSpec",
    "ReviewTask",
    "RunnerError",
    "RunnerTimeout",
    "RunnerUnavailable",
    "Session",
    "SessionReader",
    "SessionStatus",
    "SessionSummary",
    "StaleSession",
    "Standing",
    "StartedWorkflow",
    "StateError",
    "StateFolder",
    "StateStore",
    "StateStoreSpec",
    "Step",
    "StepOutput",
    "StepProgress",
    "StepStatus",
    "StorageError",
    "StrictRefusal",
    "ToolCall",
    "ToolError",
    "ToolSet",
    "ToolSpec",
    "TrustedCommand",
    "UnknownItem",
    "UnknownJob",
    "UnknownName",
    "UnknownOutputs",
    "UnknownSession",
    "UnknownWorkflow",
    "Usage",
    "Verdict",
    "WorkQueue",
    "Workflow",
    "WorkflowList",
    "Workspace",
    "allowed_environment",
    "at_most",
    "at_terminal",
    "caller_of",
    "find_program",
    "history",
    "is_utf8",
    "one_line",
    "open_browser",
    "open_context",
    "open_regular",
    "open_store",
    "parse_job",
    "private_folder",
    "quoted",
    "quoted_lines",
    "read_document",
    "read_head",
    "read_regular",
    "read_verdict",
    "resolve_inside",
    "run_program",
    "same",
    "same_verdict",
    "serve_apps",
    "standing_in",
    "standing_of",
    "step_state",
    "user_state_dir",
    "verdict_schema",
    "visible",
    "visible_lines",
]


def __getattr__(name: str) -> Any:
    """Give `serve_apps`: importing it imports the server, which no other name here does."""
    if name == "serve_apps":
        from deepwork.server.apps import serve_apps

        return serve_apps
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
