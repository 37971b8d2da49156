"""`deepwork init`."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from importlib.resources import as_file, files

import click

from deepwork.cli.connect import mcp_json
from deepwork.cli.options import path_option
from deepwork.cli.schema import MODELS, schema_text
from deepwork.cli.terminal import say, say_text
from deepwork.errors import ConfigError
from deepwork.files.durable import read_in
from deepwork.files.paths import open_folder
from deepwork.files.workspace import Workspace
from deepwork.project.config import resolve_root

SAMPLE = "project_tour"

CONFIG = """\
# yaml-language-server: $schema=schema/config.schema.json
# Settings of DeepWork for this project. Everything is optional; what is set here is the default.
version: "1.0"

# quality_gate:
#   enabled: true
#   runner: null          # null: the agent has its work reviewed by a sub-agent; or the name of an installed runner
#   timeout: 120          # seconds for one external review, plus 30 for each file above five
#   max_attempts: 3       # failed external reviews after which a step is stuck

# state:
#   store: json           # sessions as files in .deepwork/tmp

# tools:
#   sets: [core]          # serve only these; without this line every installed set
#   prefix: {}            # {SET: PREFIX} puts PREFIX before the names of a set's tools

# plugins:
#   block: []             # plugins or distributions that are not loaded
#   require: []           # plugins without which the server does not start
#   settings: {}          # {PLUGIN: {…}}
"""


@click.command(epilog="Then connect your agent; the last lines printed say how.")
@path_option
def init(root: str) -> None:
    """Prepare a project: .deepwork/ with a commented configuration and a sample job.

    Files that exist are kept as they are, so running it again does no harm.
    """
    workspace = Workspace(resolve_root(root))
    try:
        workspace.prepare_state_dir()
        done = _make(workspace)
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from None
    for name, what in done.items():
        say(f"{what:8} .deepwork/{name}")
    say_text(
        "\nNext: connect your agent. For Claude Code, put this into .mcp.json in the project's folder:\n\n"
        f"{mcp_json()}\n\n"
        f'Then ask it: "Start the {SAMPLE} job with deepwork."'
    )


def _make(workspace: Workspace) -> dict[str, str]:
    """Write what is missing; schemas are ours, so older ones are replaced. No link is written through."""
    done = {}
    with open_folder(workspace.home, inside=workspace.root) as home:
        done["config.yml"] = _write(home, "config.yml", CONFIG, replace=False)
        for name in ("jobs", "schema"):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=home)
    with open_folder(workspace.home / "jobs", inside=workspace.root) as jobs:
        there = SAMPLE in os.listdir(jobs)
    done[f"jobs/{SAMPLE}"] = "kept" if there else "created"
    if not there:
        with as_file(files("deepwork") / "packaged_jobs" / SAMPLE) as source:
            shutil.copytree(source, workspace.home / "jobs" / SAMPLE)
    with open_folder(workspace.home / "schema", inside=workspace.root) as schema:
        for kind in MODELS:
            name = f"{kind}.schema.json"
            done[f"schema/{name}"] = _write(schema, name, schema_text(kind), replace=True)
    return done


def _write(folder: int, name: str, text: str, *, replace: bool) -> str:
    there = name in os.listdir(folder)
    if there and not (replace and _differs(folder, name, text)):
        return "kept"
    if there:
        os.unlink(name, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o666, dir_fd=folder), "w", encoding="utf-8") as file:
        file.write(text)
    return "updated" if there else "created"


def _differs(folder: int, name: str, text: str) -> bool:
    try:
        return read_in(folder, name) != text.encode()
    except OSError:
        return True  # a link, say
