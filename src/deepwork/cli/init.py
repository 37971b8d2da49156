"""`deepwork init`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path

import click

from deepwork.cli.connect import connect_client, place_of
from deepwork.cli.options import exact_path_option
from deepwork.cli.schema import MODELS, schema_text
from deepwork.cli.terminal import say, say_error, say_text
from deepwork.clients.overview import overview
from deepwork.clients.table import CLIENTS, Client
from deepwork.errors import ConfigError, DeepWorkError, UnknownName
from deepwork.files.folder import Folder
from deepwork.files.workspace import Workspace
from deepwork.loading.faults import stdout_on_stderr
from deepwork.project.config import resolve_root
from deepwork.text.foreign import visible
from deepwork.text.suggest import nearest

SAMPLE = "project_tour"
PROMPT = f'"Start the {SAMPLE} job with deepwork."'
NONE = "none"
# What every agent needs. Other sets cost many tokens, and are for those who plan or track work with them.
USUAL_SETS = ("core", "review")

CONFIG = """\
# yaml-language-server: $schema=schema/config.schema.json
# Settings of DeepWork for this project. Everything is optional; what is commented out is the default.
version: "1.0"

# quality_gate:
#   enabled: true
#   runner: null          # null: the agent has its work reviewed by a sub-agent; or the name of an installed runner
#   timeout: 120          # seconds for one external review, plus 30 for each file above five
#   max_attempts: 3       # failed external reviews after which a step is stuck
#   strict: false         # true: only you can skip a review, not the agent
#   commands:             # a gate that is a program: docs/how-to/let-tests-decide.md
#     tests: {run: [make, test], verdict: exit_code, folder: project}

# state:
#   store: json           # sessions as files in .deepwork/tmp

tools:
  sets: {SETS}  # the tools that agents get, which cost tokens in every request: see `deepwork plugins --cost`
#   prefix: {}            # {SET: PREFIX} puts PREFIX before the names of a set's tools

# plugins:
#   block: []             # plugins or distributions that are not loaded
#   require: []           # plugins without which the server does not start
#   settings: {}          # {PLUGIN: {…}}
"""


@click.command(epilog="Example: deepwork init --client claude")
@exact_path_option
@click.option(
    "--client",
    "client_name",
    metavar="NAME",
    help="Connect this client, as `deepwork connect NAME` does (default: asks which of those that are here).",
)
@click.option("--no-hooks", is_flag=True, help="Connect without the hooks that remind the agent.")
@click.option(
    "--tools",
    metavar="NAME,…",
    help="The tool sets that agents get, as tools.sets of the new configuration (default: core and review, and asks).",
)
def init(root: str, client_name: str | None, no_hooks: bool, tools: str | None) -> int:
    """Prepare a project: .deepwork/ with a commented configuration and a sample job, and clients connected.

    Existing files are kept as they are, so it is safe to run it again.
    """
    client = _client(client_name) if client_name else None
    workspace = Workspace(resolve_root(root))
    is_configured = os.path.lexists(workspace.config_file)
    if tools is not None and is_configured:
        raise ConfigError(
            f"{workspace.shown(workspace.config_file)} exists, and is kept as it is",
            hint=f"Set tools.sets: [{visible(tools)}] there.",
        )
    try:
        workspace.prepare_state_dir()
        sets = [] if is_configured else _tool_sets(workspace.root, tools)
        states = _write_files(workspace, CONFIG.replace("{SETS}", f"[{', '.join(sets)}]"))
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from None
    for name, state in states.items():
        say(f"{state:8} .deepwork/{name}")
    if sets:
        say(f"tools    {', '.join(sets)}; tools.sets in .deepwork/config.yml adds others of `deepwork plugins --cost`")
    hooks = False if no_hooks else None
    if client:
        connect_client(place_of(client, workspace.root), hooks=hooks)
        say_text(f"\nNext: ask your agent: {PROMPT}")
        return 0
    return _connect_those_here(workspace.root, hooks=hooks)


def _tool_sets(root: Path, names: str | None) -> list[str]:
    """Return the tool sets that agents of a new project get: those named, those that the user chooses, or the usual.

    Raises:
        DeepWorkError: A set that was named is not installed, or a plugin keeps the sets from being listed.
    """
    from deepwork.cli.costs import measure_costs
    from deepwork.project.project import Project

    with stdout_on_stderr():
        project = Project(root)
        engine = project.engine(None)
        installed = [provided.item.name for provided in project.tool_sets(engine).items]

    def chosen(answer: str) -> list[str]:
        sets = [name.strip() for name in answer.split(",") if name.strip()]
        try:
            project.chosen_tool_sets(engine, sets)
        except (UnknownName, ConfigError) as error:
            raise click.BadParameter(error.message, param_hint="--tools") from None
        return sets

    if names is not None:
        return chosen(names)
    usual = project.config.tools.sets or [name for name in USUAL_SETS if name in installed]
    if not sys.stdin.isatty() or len(installed) <= len(usual):
        return usual
    say("\nTools cost an agent tokens with every request. These sets are installed:", err=True)
    with stdout_on_stderr():
        costs = measure_costs(project, engine)
    for cost in costs:
        say(f"  {cost.name}: {cost.tools} tools, about {cost.tokens:,} tokens", err=True)
    sets: list[str] = click.prompt(
        "Serve which? Names with commas between", default=",".join(usual), value_proc=chosen, err=True
    )
    return sets


def _connect_those_here(root: Path, *, hooks: bool | None) -> int:
    """Connect the clients of this machine that the user chooses; without a terminal none."""
    found = {state.client.name: state.client for state in overview(root, os.environ) if state.word == "found"}
    chosen = _chosen(found) if found and sys.stdin.isatty() else []
    failed = False
    for client in chosen:
        try:
            connect_client(place_of(client, root), hooks=hooks)
        except DeepWorkError as error:
            say_error(error)
            failed = True
    if chosen:
        say_text(f"\nNext: ask your agent: {PROMPT}")
    elif found:
        lines = "\n".join(f"  deepwork connect {name}" for name in found)
        say_text(f"\nNext: connect your agent:\n{lines}\nThen ask it: {PROMPT}")
    else:
        say_text(
            "\nNext: connect your agent, for example with `deepwork connect claude`; `deepwork connect` lists the "
            f"clients.\nThen ask it: {PROMPT}"
        )
    return int(failed)


def _chosen(found: Mapping[str, Client]) -> list[Client]:
    """Ask which of these clients are connected; all of them, if the answer is empty."""
    titles = ", ".join(f"{name} ({client.title})" for name, client in found.items())
    say(f"\nHere are: {titles}", err=True)

    def clients(answer: str) -> list[Client]:
        names = [name.strip() for name in answer.split(",") if name.strip()]
        unknown = next((name for name in names if name not in found), None)
        if unknown is not None and names != [NONE]:
            raise click.BadParameter(f"{visible(unknown)} is not one of {', '.join(found)}")
        return [found[name] for name in found if name in names]

    chosen: list[Client] = click.prompt(
        f"Connect which? Names with commas between, or {NONE}", default=",".join(found), value_proc=clients, err=True
    )
    return chosen


def _client(name: str) -> Client:
    if name not in CLIENTS:
        raise ConfigError(f"no client {name!r}{nearest(name, [*CLIENTS])}")
    return CLIENTS[name]


def _write_files(workspace: Workspace, config: str) -> dict[str, str]:
    """Write what is missing, replace outdated schemas, and say what happened to each file. No link is followed."""
    states = {}
    with Folder.open(workspace.home, inside=workspace.root) as home:
        states["config.yml"] = _write(home, "config.yml", config, replace=False)
        for name in ("jobs", "schema"):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=home.descriptor)
    with Folder.open(workspace.home / "jobs", inside=workspace.root) as jobs:
        has_sample = SAMPLE in jobs.names()
    states[f"jobs/{SAMPLE}"] = "kept" if has_sample else "created"
    if not has_sample:
        with as_file(files("deepwork") / "packaged_jobs" / SAMPLE) as source:
            shutil.copytree(source, workspace.home / "jobs" / SAMPLE)
    with Folder.open(workspace.home / "schema", inside=workspace.root) as schema:
        for kind in MODELS:
            name = f"{kind}.schema.json"
            states[f"schema/{name}"] = _write(schema, name, schema_text(kind), replace=True)
    return states


def _write(folder: Folder, name: str, text: str, *, replace: bool) -> str:
    exists = name in folder.names()
    if exists and not (replace and _differs(folder, name, text)):
        return "kept"
    if exists:
        folder.remove(name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o666, dir_fd=folder.descriptor), "w", encoding="utf-8") as file:
        file.write(text)
    return "updated" if exists else "created"


def _differs(folder: Folder, name: str, text: str) -> bool:
    try:
        return folder.read(name) != text.encode()
    except OSError:
        return True  # a link, for instance
