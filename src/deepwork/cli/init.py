"""`deepwork init`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path

import click

from deepwork.cli.costs import measure_costs
from deepwork.cli.extended import ExtendedCommand, parsed_rest
from deepwork.cli.plugin_commands import loaded_features, loaded_plugins
from deepwork.cli.schema import MODELS, schema_text
from deepwork.commands.options import exact_path_option
from deepwork.commands.terminal import say, say_text
from deepwork.errors import ConfigError, UnknownName
from deepwork.loading.manager import PluginManager
from deepwork.loading.selection import by_name
from deepwork.paths.folder import Folder
from deepwork.paths.workspace import Workspace
from deepwork.ports.records import InitialProject, InitStep
from deepwork.programs.stdout import stdout_on_stderr
from deepwork.project.config import resolve_root
from deepwork.project.project import Project
from deepwork.text import visible

SAMPLE = "project_tour"
PROMPT = f'"Start the {SAMPLE} job with deepwork."'
# What every agent needs. Other sets cost many tokens, and serve planning and tracking.
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


def _with_steps(params: Sequence[click.Parameter]) -> list[click.Parameter]:
    """Return parameters with the options of the features' steps below `--path`."""
    options = [option for step in _steps(loaded_features()) for option in step.options]
    return [params[0], *options, *params[1:]]


def _steps(plugins: PluginManager) -> list[InitStep]:
    answers = plugins.ask("deepwork_init_steps", InitStep).demand()
    return [provided.item for provided in by_name("step of init", answers, lambda step: step.name).values()]


@click.command(cls=ExtendedCommand, extended=_with_steps, epilog="Example: deepwork init --client claude")
@exact_path_option
@click.option(
    "--tools",
    metavar="NAME,…",
    help="The tool sets that agents get, as tools.sets of the new configuration (default: core and review, and asks).",
)
def init(root: str, tools: str | None) -> int:
    """Prepare a project: .deepwork/ with a commented configuration and a sample job, and clients connected.

    Existing files are kept as they are, so it is safe to run it again.
    """
    steps, acts = _opened_steps(click.get_current_context(), root)
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
        raise ConfigError(f"{error.filename or workspace.shown(workspace.home)}: {error.strerror}") from None
    for name, state in states.items():
        say(f"{state:8} .deepwork/{name}")
    if sets:
        say(f"tools    {', '.join(sets)}; tools.sets in .deepwork/config.yml adds others of `deepwork plugins --cost`")
    project = InitialProject(workspace.root, PROMPT)
    code = max([act(project) for act in acts], default=0)
    if not any(step.tells_next for step in steps):
        say_text(f"\nNext: have your agent start `deepwork serve --path {workspace.root}`, then ask it: {PROMPT}")
    return code


def _opened_steps(context: click.Context, root: str) -> tuple[list[InitStep], list[Callable[[InitialProject], int]]]:
    """Parse the options of all steps, and open each."""
    plugins = loaded_plugins(root)
    steps = _steps(plugins)
    values = parsed_rest(context, [option for step in steps for option in step.options], plugins).params
    return steps, [step.open({option.name or "": values[option.name] for option in step.options}) for step in steps]


def _tool_sets(root: Path, names: str | None) -> list[str]:
    """Return the tool sets that agents of a new project get: named ones, the user's choice, or the usual.

    Raises:
        DeepWorkError: A named set is not installed, or a plugin keeps the sets from being listed.
    """
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
    say_text("\nTools cost an agent tokens with every request. These sets are installed:", err=True)
    with stdout_on_stderr():
        costs = measure_costs(project, engine)
    for cost in costs:
        say(f"  {cost.name}: {cost.tools} tools, about {cost.tokens:,} tokens", err=True)
    sets: list[str] = click.prompt(
        "Serve which? Names with commas between", default=",".join(usual), value_proc=chosen, err=True
    )
    return sets


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
    is_new = not has_sample and _copy_sample(workspace.home / "jobs" / SAMPLE)
    states[f"jobs/{SAMPLE}"] = "created" if is_new else "kept"
    with Folder.open(workspace.home / "schema", inside=workspace.root) as schema:
        for kind in MODELS:
            name = f"{kind}.schema.json"
            states[f"schema/{name}"] = _write(schema, name, schema_text(kind), replace=True)
    return states


def _copy_sample(folder: Path) -> bool:
    """Copy the sample job, or leave nothing of it: a part would be kept the next time. False if it is there."""
    try:
        folder.mkdir()
    except FileExistsError:  # another `deepwork init` makes it
        return False
    with as_file(files("deepwork") / "packaged_jobs" / SAMPLE) as source:
        try:
            for file in filter(Path.is_file, source.rglob("*")):
                target = folder / file.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read_bytes())
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return True


def _write(folder: Folder, name: str, text: str, *, replace: bool) -> str:
    exists = name in folder.names()
    if exists and not (replace and _differs(folder, name, text)):
        return "kept"
    if exists:
        folder.remove(name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, 0o666, dir_fd=folder.descriptor)
    except FileExistsError:  # another `deepwork init` has made it meanwhile
        return "kept"
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except BaseException:
        folder.remove(name)
        raise
    return "updated" if exists else "created"


def _differs(folder: Folder, name: str, text: str) -> bool:
    try:
        return folder.read(name) != text.encode()
    except OSError:
        return True  # a link, for instance
