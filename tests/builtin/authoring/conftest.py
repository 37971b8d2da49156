"""Jobs that tests write in a few words, and the commands run in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from job_corpus import write_corpus

SMALLEST: dict[str, Any] = {
    "version": "1.0.0",
    "summary": "An example",
    "common_job_info_provided_to_all_steps_at_runtime": "Be brief.",
}


def completed(text: str, name: str = "example") -> tuple[str, dict[str, str]]:
    """Fill in what an example leaves out; return the text of its job.yml, and its instruction files."""
    try:
        data = yaml.safe_load(text)
        steps = [
            {
                "name": step["id"].title(),
                "description": f"Do {step['id']}",
                "instructions_file": f"steps/{step['id']}.md",
                "outputs": {f"{step['id']}.md": {"type": "file", "description": "The text", "required": True}},
                "reviews": [],
                **step,
            }
            for step in data.pop("steps", [{"id": "write"}])
        ]
    except yaml.YAMLError:
        return text, {}
    files = {step["instructions_file"]: f"Do {step['id']}.\n" for step in steps}
    files |= {path: data.pop(path) for path in [*data] if path.endswith(".md")}
    workflows = data.pop("workflows", [{"steps": [step["id"] for step in steps]}])
    # Whole lines stay as they are written, with their comments.
    lines = [line for line in text.splitlines() if line.partition(":")[0] in data]
    job = {key: value for key, value in {"name": name, **SMALLEST}.items() if key not in data}
    job["workflows"] = [{"name": "main", "summary": "All of it", **workflow} for workflow in workflows]
    job["steps"] = steps
    return "\n".join([*lines, yaml.safe_dump(job, sort_keys=False)]), files


@pytest.fixture
def write_example(project):
    """Write an example as a job of the project; return its folder."""

    def write(text: str, name: str = "example") -> Path:
        content, files = completed(text, name)
        folder = project.jobs / name
        for path, instructions in files.items():
            if instructions is not None:
                project.write(folder / path, instructions)
        project.write(folder / "job.yml", content)
        return folder

    return write


@pytest.fixture
def findings(invoke):
    """Return the findings of `deepwork jobs check --json`."""

    def findings(*arguments):
        return json.loads(invoke("jobs", "check", "--json", *arguments).out)["findings"]

    return findings


@pytest.fixture
def corpus(project):
    """Write all jobs of the corpus, the examples and the packaged ones into the project; return their folders."""
    return write_corpus(project.jobs)
