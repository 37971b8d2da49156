"""Jobs that tests write in a few words, and the commands run in this process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deepwork.builtin.authoring.new import EXAMPLES
from deepwork.builtin.local_jobs import PACKAGED

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
    rest = {key: value for key, value in {"name": name, **SMALLEST}.items() if key not in data}
    rest["workflows"] = [{"name": "main", "summary": "All of it", **workflow} for workflow in workflows]
    rest["steps"] = steps
    return "\n".join([*lines, yaml.safe_dump(rest, sort_keys=False)]), files


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
def findings(here):
    """Return the findings of `deepwork jobs check --json`."""

    def findings(*arguments):
        return json.loads(here("jobs", "check", "--json", *arguments).out)["findings"]

    return findings


CORPUS = Path(__file__).parents[2] / "data" / "corpus"


def write_corpus(folder: Path) -> list[Path]:
    """Write all jobs into a folder; return their folders."""
    return [_write(folder / file.stem, yaml.safe_load(file.read_text())) for file in sorted(CORPUS.glob("*.yml"))]


def _write(job_dir: Path, short: dict[str, Any]) -> Path:
    (job_dir / "steps").mkdir(parents=True)
    steps = []
    for step_id, step in short["steps"].items():
        (job_dir / f"steps/{step_id}.md").write_text(f"# {_title(step_id)}\n\n{step['do']}\n")
        inputs = [*_inputs(step.get("in", []))]
        steps.append(
            {
                "id": step_id,
                "name": _title(step_id),
                "description": step["do"].partition(".")[0],
                "instructions_file": f"steps/{step_id}.md",
                "dependencies": list(dict.fromkeys(item["from_step"] for item in inputs if "file" in item)),
                "inputs": inputs,
                "outputs": {name: _output(text) for name, text in step["out"].items()},
                "reviews": [
                    {"run_each": run_each, "quality_criteria": criteria}
                    for run_each, criteria in step.get("ask", {}).items()
                ],
            }
        )
    job = {
        "name": job_dir.name,
        "version": "1.0.0",
        "summary": short["summary"],
        "common_job_info_provided_to_all_steps_at_runtime": short["common"],
        "workflows": [{"name": "main", "summary": short["summary"], "steps": short["flow"]}],
        "steps": steps,
    }
    (job_dir / "job.yml").write_text(yaml.safe_dump(job, sort_keys=False, width=1000))
    test = f"version: 1\njob: {job_dir.name}\nworkflow: main\n{short['test']}"
    (job_dir / "main.test.yml").write_text(test)
    return job_dir


def _inputs(texts: list[Any]) -> Iterator[dict[str, str]]:
    for text in texts:
        if isinstance(text, dict):
            [(name, description)] = text.items()
            yield {"name": name, "description": description}
        else:
            file, _, step_id = text.partition(" < ")
            yield {"file": file, "from_step": step_id}


def _output(text: str) -> dict[str, Any]:
    kind, _, rest = text.partition(" ")
    description = rest if kind in ("files", "optional") else text
    return {"type": "files" if kind == "files" else "file", "description": description, "required": kind != "optional"}


def _title(step_id: str) -> str:
    return step_id.replace("_", " ").capitalize()


@pytest.fixture
def corpus(project):
    """Write all jobs of the corpus, the examples and the packaged ones into the project; return their folders."""
    folders = write_corpus(project.jobs)
    for source in (EXAMPLES, PACKAGED):
        for job_dir in sorted(source.iterdir()):
            shutil.copytree(job_dir, project.jobs / job_dir.name)
            folders.append(project.jobs / job_dir.name)
    return folders
