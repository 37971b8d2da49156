"""`deepwork init`."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files

import click

from deepwork.cli.connect import mcp_json
from deepwork.cli.project import path_option
from deepwork.cli.schema import MODELS, schema_text
from deepwork.config import resolve_root
from deepwork.errors import ConfigError
from deepwork.workspace import Workspace, open_folder

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
        with open_folder(workspace.home, inside=workspace.root):
            for name, what in _make(workspace).items():
                click.echo(f"{what:8} .deepwork/{name}")
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from None
    click.echo(
        "\nNext: connect your agent. For Claude Code, put this into .mcp.json in the project's folder:\n\n"
        f"{mcp_json()}\n\n"
        f'Then ask it: "Start the {SAMPLE} job with deepwork."'
    )


def _make(workspace: Workspace) -> dict[str, str]:
    """Write what is missing; schemas are ours, so older ones are replaced."""
    done = {
        "config.yml": "kept" if workspace.config_file.exists() else "created",
        f"jobs/{SAMPLE}": "kept" if (workspace.home / "jobs" / SAMPLE).exists() else "created",
    }
    if done["config.yml"] == "created":
        workspace.config_file.write_text(CONFIG, encoding="utf-8")
    if done[f"jobs/{SAMPLE}"] == "created":
        with as_file(files("deepwork") / "packaged_jobs" / SAMPLE) as source:
            shutil.copytree(source, workspace.home / "jobs" / SAMPLE)
    (workspace.home / "schema").mkdir(exist_ok=True)
    for kind in MODELS:
        file = workspace.home / "schema" / f"{kind}.schema.json"
        text = schema_text(kind)
        before = file.read_text(encoding="utf-8") if file.exists() else None
        done[f"schema/{file.name}"] = "created" if before is None else "kept" if before == text else "updated"
        if before != text:
            file.write_text(text, encoding="utf-8")
    return done
