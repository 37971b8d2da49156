"""What the strategies of the kit make is what the core reads."""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import given, settings

from deepwork.api import Job, parse_job
from deepwork.testing.strategies import jobs


@settings(max_examples=30)
@given(definition=jobs())
def test_the_strategy_for_jobs_makes_files_that_the_core_can_read(definition, tmp_path_factory):
    folder = Path(tmp_path_factory.mktemp("jobs"), definition.name)
    for step in definition.steps:
        (folder / step.instructions_file).parent.mkdir(parents=True, exist_ok=True)
        (folder / step.instructions_file).write_text("Do it\n")
    content = yaml.safe_dump(definition.model_dump(exclude_defaults=True), allow_unicode=True)
    (folder / "job.yml").write_text(content, encoding="utf-8")
    job = parse_job(folder)
    assert isinstance(job, Job), job
    assert (job.definition, job.warnings) == (definition, ())
