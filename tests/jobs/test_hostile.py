"""Job files that somebody made to do harm, or broke by accident."""

from __future__ import annotations

import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwork.api import Job, JobLoadError, JobReader
from deepwork.builtin.local_jobs import FolderJobs
from deepwork.jobs.catalogue import Catalogue
from deepwork.jobs.parse import parse_content

TOOLS = Path(__file__).parents[2] / "tools"
SHAPES = runpy.run_path(str(TOOLS / "hostile_jobs.py"))

PIECES = [
    "",
    " ",
    "\n",
    "  - ",
    ": ",
    "&a ",
    "*a",
    "<<: *a",
    "!!int ",
    "{",
    "[",
    "]",
    "'",
    "|",
    "%",
    "---\n",
    "\t",
    "\0",
]
FOLDER = Path("/jobs/demo")


@pytest.mark.parametrize("name", [*SHAPES["BOMBS"], *SHAPES["WIDE"]])
def test_a_bomb_is_refused_in_time_and_harms_no_other_job(name, project):
    """Limits are generous here, for busy machines; the command `figures.py bombs` measures them exactly."""
    content = {**SHAPES["BOMBS"], **SHAPES["WIDE"]}[name]()
    project.write_job("good")
    project.write(".deepwork/jobs/bomb/job.yml", content)
    start = time.process_time()
    listing = Catalogue([FolderJobs("project", 0, [JobReader(project.jobs)])]).list()
    assert time.process_time() - start < 5
    assert [job.name for _, job in listing.jobs] == ["good"]
    [(_, error)] = listing.errors
    assert error.job_name == "bomb"
    assert str(project.jobs / "bomb" / "job.yml") in error.message
    assert len(error.message) < 25_000


@settings(max_examples=300)
@given(st.data())
def test_any_change_of_a_job_file_leaves_a_job_or_an_error_that_names_the_file(full, data):
    start = data.draw(st.integers(0, len(full)))
    end = data.draw(st.integers(start, min(start + 60, len(full))))
    new = data.draw(st.one_of(st.sampled_from(PIECES), st.text(max_size=20)))
    result = parse_content((full[:start] + new + full[end:]).encode(errors="surrogatepass"), FOLDER)
    assert isinstance(result, Job | JobLoadError)
    if isinstance(result, JobLoadError):
        for line in result.message.removeprefix("Failed to load: ").splitlines():
            assert line.startswith(f"{FOLDER / 'job.yml'}:")
            assert "cannot be read (" not in line  # what is said of an exception that nobody expected


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_job_or_an_error_that_names_the_file(content):
    result = parse_content(content, FOLDER)
    assert isinstance(result, JobLoadError)
    assert str(FOLDER / "job.yml") in result.message


def test_hundreds_of_mutated_files_break_nothing():
    """A short run of the figure, as a process, with the files and the seed of the long one."""
    command = [sys.executable, str(TOOLS / "figures.py"), "mutations", "--count", "300"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    _, mutations, errors = process.stdout.splitlines()
    assert "0 exceptions, good job listed 300 times" in mutations
    assert mutations.endswith("ok")
    assert errors.endswith("ok")


def test_the_tools_keep_within_their_tokens():
    process = subprocess.run(
        [sys.executable, str(TOOLS / "figures.py"), "tokens"], capture_output=True, text=True, timeout=240, check=True
    )
    _, read, whole = process.stdout.splitlines()
    assert read.endswith("ok"), read
    assert whole.endswith("ok"), whole
