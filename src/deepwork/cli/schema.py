"""`deepwork schema`: the JSON Schemas of the files that people write."""

from __future__ import annotations

import json
from typing import Any

import click
from pydantic import BaseModel

from deepwork.cli.key_descriptions import CONFIG, JOB
from deepwork.cli.terminal import say_text
from deepwork.models.jobs import JobFile
from deepwork.project.config import Config

MODELS: dict[str, type[BaseModel]] = {"config": Config, "job": JobFile}


@click.command(epilog="`deepwork init` writes both to .deepwork/schema/, where the files' first lines name them.")
@click.argument("kind", type=click.Choice([*MODELS]))
def schema(kind: str) -> None:
    """Print the JSON Schema of job.yml or config.yml, with which editors complete and check these files."""
    say_text(schema_text(kind).removesuffix("\n"))


def schema_text(kind: str) -> str:
    """Return the schema of a kind of file, as in `.deepwork/schema/<kind>.schema.json`."""
    schema: dict[str, Any] = MODELS[kind].model_json_schema()
    descriptions = {**JOB, **CONFIG}
    for name, model in {**schema.get("$defs", {}), MODELS[kind].__name__: schema}.items():
        for key, field in model.get("properties", {}).items():
            field["description"] = descriptions[name][key]
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"
