"""Writes out the jobs of `tests/data/corpus`, whose README explains them: `python tests/job_corpus.py FOLDER`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from deepwork.builtin.authoring.new import EXAMPLES
from deepwork.builtin.local_jobs import PACKAGED

CORPUS = Path(__file__).parent / "data" / "corpus"


def write_corpus(folder: Path) -> list[Path]:
    """Write all jobs of the corpus, the examples and the packaged ones into a folder; return their folders."""
    jobs = [_write(folder / file.stem, yaml.safe_load(file.read_text())) for file in sorted(CORPUS.glob("*.yml"))]
    for source in (EXAMPLES, PACKAGED):
        jobs += [shutil.copytree(job_dir, folder / job_dir.name) for job_dir in sorted(source.iterdir())]
    return jobs


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


if __name__ == "__main__":
    for job in write_corpus(Path(sys.argv[1])):
        click.echo(job)
