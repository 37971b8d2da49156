"""`deepwork init`."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path

import click

from deepwork.cli.connect import mcp_json
from deepwork.cli.project import path_option
from deepwork.config import resolve_root
from deepwork.errors import ConfigError
from deepwork.workspace import Workspace, open_folder

SAMPLE = "project_tour"

CONFIG = """\
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
        with open_folder(workspace.home, inside=workspace.root):
            for name, made in (
                ("config.yml", _write_config(workspace)),
                (f"jobs/{SAMPLE}", _copy_sample(workspace)),
            ):
                click.echo(f"{'created' if made else 'kept   '}  .deepwork/{name}")
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from None
    click.echo(
        "\nNext: connect your agent. For Claude Code, put this into .mcp.json in the project's folder:\n\n"
        f"{mcp_json()}\n\n"
        f'Then ask it: "Start the {SAMPLE} job with deepwork."'
    )


def _write_config(workspace: Workspace) -> bool:
    try:
        with workspace.config_file.open("x", encoding="utf-8") as file:
            file.write(CONFIG)
    except FileExistsError:
        return False
    return True


def _copy_sample(workspace: Workspace) -> bool:
    target: Path = workspace.home / "jobs" / SAMPLE
    if target.exists():
        return False
    with as_file(files("deepwork") / "packaged_jobs" / SAMPLE) as source:
        shutil.copytree(source, target)
    return True
