"""The tables of the reference: they list everything that exists, and nothing else."""

from __future__ import annotations

import inspect
import json
import re
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import click
import pytest
from fastmcp import Client
from pydantic import BaseModel

import deepwork.errors
import deepwork.hookspecs
import deepwork.models.replies as replies
from deepwork import api
from deepwork.builtin.http import limits as bounds
from deepwork.builtin.http import sessions, shares
from deepwork.cli.main import COMMANDS, main
from deepwork.documents import limits as documents
from deepwork.engine import reports as arguments
from deepwork.models import jobs
from deepwork.models.history import DETAILS, EventKind
from deepwork.models.outputs import MAX_PATHS
from deepwork.models.reviews import CriterionResult, ReviewResult, ReviewTask
from deepwork.models.sessions import SessionSummary
from deepwork.models.standing import Standing
from deepwork.ports import records
from deepwork.ports.agent import Agent, AgentSpec, AgentTask, Called, Ended, Failed, Limited, Said, Spent
from deepwork.ports.agent_call import AgentCall
from deepwork.ports.call import ClientInfo
from deepwork.ports.inbox import Answer, Inbox, InboxContents, InboxFailure
from deepwork.ports.proofs import Proven, Prover, Trial
from deepwork.project.config import CommandSection, Config, RouteSection
from deepwork.project.project import Project
from deepwork.server import frames
from deepwork.sessions.definition import MAX_INSTRUCTIONS

sys.path.append(str(Path(__file__).parents[2] / "tools"))
from signatures import public_names

SOURCES = sorted((Path(deepwork.errors.__file__).parent).rglob("*.py"))
SOURCE = "\n".join(path.read_text() for path in SOURCES)
REFUSAL = re.compile(r"Refusal\(\s*(\d+),\s*f?\"(.*?)\"")
TOOLS = ["get_workflows", "start_workflow", "finished_step", "abort_workflow"]
HOOKS = {name: hook for name, hook in vars(deepwork.hookspecs).items() if name.startswith("deepwork_")}
ERRORS = {
    name: error
    for name, error in vars(deepwork.errors).items()
    if inspect.isclass(error) and issubclass(error, deepwork.errors.DeepWorkError)
}
REPLIES = [
    *(shape for shape in vars(replies).values() if inspect.isclass(shape) and replies.Reply in shape.__mro__[1:]),
    ReviewResult,
    CriterionResult,
]
RECORDS = [
    AgentSpec,
    AgentTask,
    Said,
    Called,
    Spent,
    Limited,
    Failed,
    Ended,
    api.StateStoreSpec,
    api.ReviewRunnerSpec,
    api.ToolSet,
    api.ToolSpec,
    api.ResourceSpec,
    api.PromptSpec,
    api.AgentMail,
    records.ClaimKeeper,
    api.AgentMessage,
    api.HttpApp,
    api.TransportSpec,
    api.InitStep,
    records.InitialProject,
    AgentCall,
    records.Serving,
    records.ServedApp,
    records.PageAddress,
    api.Answerer,
    api.InboxItem,
    api.InboxAction,
    Answer,
    InboxContents,
    InboxFailure,
    api.Check,
    api.Finding,
    ReviewTask,
    api.Passed,
    api.NeedsWork,
    api.HandedBack,
    api.CriterionResult,
    api.Usage,
    ClientInfo,
    Proven,
    Trial,
]
PORTS = [
    Prover,
    Agent,
    api.JobSource,
    api.StateStore,
    api.ReviewRunner,
    api.InboxSource,
    Inbox,
    api.ReviewRequest,
    api.PluginContext,
    api.ToolCall,
    api.Folder,
    api.Workspace,
]
JOB_TABLES = {
    "Top level": jobs.JobFile,
    "Workflow": jobs.Workflow,
    "Step": jobs.Step,
    "Output": jobs.StepOutput,
    "Input parameter": jobs.UserInput,
    "Input file": jobs.FileInput,
    "Review": jobs.Review,
    "Hooks": jobs.Hooks,
    "Hook action": jobs.HookAction,
}


def members(port: type) -> set[str]:
    annotated = {name for kind in port.__mro__ for name in getattr(kind, "__annotations__", {})}
    return {name for name in {*vars(port), *annotated} if not name.startswith("_")}


def keys(model: type[BaseModel], prefix: str = "") -> dict[str, str]:
    """Return every dotted key of the configuration with its default as JSON."""
    defaults = {}
    for name, about in model.model_fields.items():
        if inspect.isclass(about.annotation) and issubclass(about.annotation, BaseModel):
            defaults |= keys(about.annotation, f"{prefix}{name}.")
        else:
            defaults[prefix + name] = json.dumps(about.default)
    return defaults


def parts(message: str) -> list[str]:
    """Split a message of a table at what varies in it."""
    return [part.strip() for part in message.split("…") if part.strip()]


def commands(command: click.Command = main, name: str = "deepwork") -> list[str]:
    """Name a command of the core and all below it."""
    context = click.Context(command)
    groups = command.list_commands(context) if isinstance(command, click.Group) else ()
    below = COMMANDS if command is main else groups
    below_each = [commands(command.get_command(context, child), f"{name} {child}") for child in below]
    return [name, *(name_below for names in below_each for name_below in names)]


@pytest.mark.anyio
async def test_every_tool_is_listed_with_its_hints(project, reference):
    async with Client(project.server()) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
    rows = reference("tools").rows("Tools")
    assert [*rows] == [*tools] == TOOLS
    for name, (_, hints) in rows.items():
        real = tools[name].annotations
        expected = [
            word
            for word, is_so in (
                ("read-only", real.read_only_hint),
                ("destructive", real.destructive_hint),
                ("idempotent", real.idempotent_hint),
            )
            if is_so
        ]
        assert hints == ", ".join(expected)


@pytest.mark.anyio
async def test_every_parameter_of_a_tool_is_listed(project, reference):
    async with Client(project.server()) as client:
        tools = await client.list_tools()
    for tool in tools:
        schema = tool.input_schema
        title = f"Parameters of {tool.name}"
        rows = reference("tools").rows(title) if schema["properties"] else {}
        assert rows.keys() == schema["properties"].keys()
        required = {name for name, cells in rows.items() if cells[1] == "yes"}
        assert required == set(schema.get("required", []))


@pytest.mark.anyio
async def test_every_resource_is_listed(project, reference):
    async with Client(project.server()) as client:
        templates = {template.uri_template: template.mime_type for template in await client.list_resource_templates()}
        assert not await client.list_resources()
    rows = reference("tools").rows("Coming back")
    assert {uri: cells[0].strip("`") for uri, cells in rows.items()} == templates


@pytest.mark.parametrize("shape", REPLIES, ids=lambda shape: shape.__name__)
def test_every_field_of_a_reply_is_listed(shape, reference):
    assert [*reference("tools").rows(shape.__name__)] == [*shape.model_fields]


def test_every_notice_of_the_table_exists(reference):
    for notice in reference("tools").rows("Notices"):
        for part in parts(notice):
            assert part in SOURCE, part


def test_the_limits_of_calls_are_those_of_the_code(reference):
    rows = [cells[-1] for cells in reference("tools").lines("Limits")]
    assert rows == [
        f"{arguments.MAX_TEXT_BYTES // 1024} KiB each",
        f"{arguments.MAX_NAME_BYTES // 1024} KiB each",
        f"{MAX_PATHS:,}",
        "4,096 bytes",
        f"{MAX_INSTRUCTIONS // 1024**2} MiB",
        f"{frames.MAX_LINE // 1024**2} MiB",
        f"{bounds.MAX_BODY // 1024**2} MiB",
    ]


def test_the_bounds_of_http_are_those_of_the_code(page):
    rows = [cells[1] for cells in page("docs/explanation/security-model.md").lines("What is bounded")]
    assert rows == [
        f"{bounds.MAX_HEADERS // 1024} KiB",
        str(bounds.HEADER_SECONDS),
        f"{bounds.MAX_BODY // 1024**2} MiB",
        str(bounds.BODY_SECONDS),
        str(bounds.MAX_CONNECTIONS),
        str(shares.MAX_GETS_OF_PRINCIPAL),
        str(shares.MAX_CALLS_OF_PRINCIPAL),
        str(bounds.MAX_WAITING),
        f"{bounds.MAX_SESSIONS:,}",
        str(sessions.MAX_OF_PRINCIPAL),
        str(bounds.MAX_SOCKETS),
        str(shares.MAX_SOCKETS_OF_PRINCIPAL),
        f"{bounds.MAX_FRAME // 1024**2} MiB",
        str(bounds.WRITE_SECONDS),
    ]


def test_every_refusal_of_http_is_listed(reference):
    listed = {(status, text.strip("`")) for status, text, _ in reference("errors").lines("Answers of HTTP") if text}
    raised = {(status, re.sub(r"{.*?}", "…", text)) for status, text in REFUSAL.findall(SOURCE)}
    assert listed == raised


def test_every_frame_of_the_table_is_answered_so(reference):
    for frame, request_id, code, message in reference("errors").lines("Frames that are not messages"):
        with pytest.raises(frames.BadFrame) as refused:
            frames.read_frame(frame.strip("`").encode())
        answer = refused.value.answer()
        assert (answer.id, answer.error.code) == (json.loads(request_id), int(code)), frame
        assert re.fullmatch(re.escape(message.strip("`")).replace("…", ".+"), answer.error.message), frame
    with pytest.raises(frames.BadFrame) as refused:
        frames.read_frame(b" " * (frames.MAX_LINE + 1))
    message_of_long_line = refused.value.answer().error.message
    assert f"`{message_of_long_line}`" in reference("errors").section("Frames that are not messages")


@pytest.mark.parametrize("title", JOB_TABLES)
def test_every_key_of_a_job_file_is_listed(title, reference):
    rows = reference("job-yml").rows(title)
    model = JOB_TABLES[title]
    assert [*rows] == [*model.model_fields]
    required = {name for name, about in model.model_fields.items() if about.is_required()}
    assert {name for name, cells in rows.items() if cells[1] == "yes"} == required


def test_every_model_of_a_job_file_has_a_table():
    models = {kind for kind in vars(jobs).values() if inspect.isclass(kind) and jobs.JobFilePart in kind.__mro__[1:]}
    assert models == set(JOB_TABLES.values())


@pytest.mark.parametrize("title", ["Errors", "Warnings"])
def test_the_messages_about_job_files_are_those_of_the_code(title, reference):
    for message in reference("job-yml").rows(title):
        for part in parts(message):
            assert part in SOURCE, part


def test_the_limits_of_files_are_those_of_the_code(reference):
    rows = [cells[-1] for cells in reference("job-yml").lines("What a file may be")]
    assert rows == [
        f"{documents.MAX_BYTES // 1024**2} MiB",
        f"{documents.MAX_BYTES:,}",
        f"{documents.MAX_NODES:,}",
        str(documents.MAX_DEPTH),
        str(documents.MAX_NUMBER),
        str(documents.MAX_DIRECTIVES),
    ]


def test_every_job_source_of_the_core_is_listed_with_its_rank(project, reference):
    sources = Project(project.root).catalogue.sources
    assert [*reference("job-yml").rows("Where jobs are found")] == [source.name for source in sources]
    ranks = ", ".join(f"`{source.name}` {source.rank}" for source in sources)
    assert f"{ranks}; default {api.JobSource.rank} " in reference("hooks").rows("JobSource")["rank"][0] + " "


def test_every_key_of_the_configuration_is_listed_with_its_default(reference):
    rows = reference("configuration").rows("Keys")
    assert {name: cells[1].strip("`") for name, cells in rows.items()} == keys(Config)


@pytest.mark.parametrize("section", [CommandSection, RouteSection], ids=lambda section: section.__name__)
def test_every_key_of_a_reviewer_is_listed(section, reference):
    title = {"CommandSection": "A command that reviews", "RouteSection": "A route"}[section.__name__]
    rows = reference("configuration").rows(title)
    assert [*rows] == [*section.model_fields]
    required = {name for name, about in section.model_fields.items() if about.is_required()}
    assert {name for name, cells in rows.items() if cells[1] == "yes"} == required


def test_every_option_of_serve_is_listed_with_its_variable(reference):
    rows = reference("configuration").rows("Options of serve")
    listed = {re.findall("`(--[a-z-]+)`", cells[0])[0]: name for name, cells in rows.items()}
    serve = main.get_command(click.Context(main), "serve")
    options = {
        option.opts[0]: option.envvar for option in serve.documented_params() if isinstance(option, click.Option)
    }
    assert listed == options | {"--no-plugin": "DEEPWORK_NO_PLUGINS"}


def test_every_variable_that_the_code_reads_is_listed(reference):
    page = reference("configuration")
    listed = {*page.rows("Options of serve"), *page.rows("Other variables")}
    read = set(re.findall(r"\"((?:DEEPWORK|XDG)_[A-Z_]*[A-Z]|NO_COLOR)\"", SOURCE))
    assert read <= listed
    assert set(page.rows("Other variables")) <= read


def test_every_command_has_its_heading_and_its_help(reference):
    page = reference("cli")
    listed = [block.about for block in page.blocks("help")]
    assert sorted(listed) == sorted(commands())
    assert [heading for heading in page.headings if heading.startswith("deepwork ")] == listed[1:]


def test_every_error_has_its_heading(reference):
    page = reference("errors")
    assert {heading for heading in page.headings if heading in ERRORS} == ERRORS.keys()
    tree = next(page.blocks("sketch")).text
    assert set(re.findall(r"\w+", tree)) == ERRORS.keys()
    for line in tree.splitlines()[1:]:
        name = re.findall(r"\w+", line)[0]
        assert len(ERRORS[name].__mro__) - len(deepwork.errors.DeepWorkError.__mro__) == line.index("─") // 4 + 1, name


def test_every_hook_has_its_heading_with_its_exact_arguments(reference):
    listed = [heading for heading in reference("hooks").headings if heading.startswith("deepwork_")]
    assert listed == [f"{name}({', '.join(inspect.signature(hook).parameters)})" for name, hook in HOOKS.items()]


def test_every_hook_has_an_example(reference):
    assert [block.about for block in reference("hooks").blocks("example")] == [*HOOKS]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_field_of_a_record_is_listed(record, reference):
    names = (
        [field.name for field in fields(record)] if is_dataclass(record) else [*inspect.signature(record).parameters]
    )
    assert [*reference("hooks").rows(record.__name__)] == names


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.__name__)
def test_every_member_of_a_port_is_listed(port, reference):
    assert reference("hooks").rows(port.__name__).keys() == members(port)


def test_every_function_of_the_api_is_listed_with_its_signature(reference):
    functions = {name: item for name, item in public_names().items() if inspect.isfunction(item)}
    signatures = {name: inspect.signature(function) for name, function in functions.items()}
    bare = {
        name: signature.replace(
            parameters=[parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()],
            return_annotation=signature.empty,
        )
        for name, signature in signatures.items()
    }
    listed = reference("hooks").rows("What deepwork.api has besides")
    assert {*listed} == {f"{name}{signature}" for name, signature in bare.items()}


def test_every_name_of_the_api_is_in_the_reference(reference):
    text = "".join(reference(name).prose for name in ("hooks", "errors", "tools", "job-yml"))
    assert [name for name in public_names() if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("kind", EventKind)
def test_every_key_of_every_kind_of_history_entry_is_listed(reference, kind):
    fields = DETAILS[kind].model_fields.items()
    listed = reference("history").rows(kind) if fields else {}
    assert {*listed} == {field.alias or name for name, field in fields}
    assert kind in reference("history").headings


def test_every_key_of_a_listed_session_is_listed(reference):
    listed = [name for name, field in SessionSummary.model_fields.items() if not field.exclude]
    assert [*reference("cli").rows("deepwork sessions list")] == listed


def test_every_key_of_a_standing_is_listed(reference):
    keys = [field.name for field in fields(Standing)]
    assert [*reference("history").rows("Where a session stands")] == keys
