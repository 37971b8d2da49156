from __future__ import annotations

import pytest

from deepwork.api import parse_job

# A job with everything that the format knows, and one thing on each line, so that a problem has a line of its own.
FULL = """\
# yaml-language-server: $schema=https://example.org/job.schema.json
name: demo
version: "1.2.3"
summary: A demo
common_job_info_provided_to_all_steps_at_runtime: |
  About the demo
workflows:
  - name: full
    summary: Everything
    agent: general
    steps:
      - collect
      - [charts, text]
  - name: short
    summary: A part
    steps:
      - collect
steps:
  - id: collect
    name: Collect
    description: Collect the figures
    instructions_file: steps/collect.md
    inputs:
      - name: quarter
        description: Which quarter
    outputs:
      figures.csv:
        type: file
        description: One row a region
        required: true
    reviews: []
  - id: charts
    name: Draw
    description: Draw the charts
    instructions_file: steps/charts.md
    dependencies:
      - collect
    inputs:
      - file: figures.csv
        from_step: collect
    outputs:
      charts:
        type: files
        description: PNG files
        required: false
    reviews:
      - run_each: charts
        quality_criteria:
          Readable: Are the axes labelled?
        additional_review_guidance: ""
    hooks:
      after_agent:
        - script: check.sh
      before_tool:
        - prompt: Think first
      before_prompt:
        - prompt_file: think.md
    stop_hooks:
      - prompt: Is it done?
    exposed: true
    hidden: false
    agent: writer
  - id: text
    name: Write
    description: Write the text
    instructions_file: steps/text.md
    outputs: {}
    reviews: []
"""


@pytest.fixture(scope="session")
def full():
    """The text of a job file with everything that the format knows."""
    return FULL


@pytest.fixture
def load(tmp_path):
    """Write a job file into a folder, with the instructions that `FULL` names, and parse it there."""

    def load(content, folder="demo"):
        job_dir = tmp_path / folder
        (job_dir / "steps").mkdir(parents=True, exist_ok=True)
        for name in ("collect", "charts", "text", "a", "b"):
            (job_dir / "steps" / f"{name}.md").write_text(f"Do {name}\n")
        (job_dir / "job.yml").write_bytes(content if isinstance(content, bytes) else content.encode())
        return parse_job(job_dir)

    return load
