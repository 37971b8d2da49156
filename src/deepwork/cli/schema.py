"""`deepwork schema`: the JSON Schemas of the files that people write."""

from __future__ import annotations

import json
from typing import Any

import click
from pydantic import BaseModel

from deepwork.commands.terminal import say_text
from deepwork.models.job_tests import JobTest
from deepwork.models.jobs import JobFile
from deepwork.project.config import Config

MODELS: dict[str, type[BaseModel]] = {"config": Config, "job": JobFile}
KINDS: dict[str, type[BaseModel]] = {**MODELS, "test": JobTest}


@click.command(
    epilog="`deepwork init` writes the first two to .deepwork/schema/, where the files' first lines name them."
)
@click.argument("kind", type=click.Choice([*KINDS]))
def schema(kind: str) -> None:
    """Print the JSON Schema of job.yml, config.yml or *.test.yml, for completion and checks in editors."""
    say_text(schema_text(kind).removesuffix("\n"))


def schema_text(kind: str) -> str:
    """Return the schema of a kind of file, as in `.deepwork/schema/<kind>.schema.json`."""
    schema: dict[str, Any] = KINDS[kind].model_json_schema()
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"
