"""Job files that were made to do harm, or broken by accident."""

from __future__ import annotations

import random
import re
import runpy
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwork.api import Job, JobLoadError, JobReader
from deepwork.builtin.local_jobs import PACKAGED, FolderJobs
from deepwork.jobs.catalogue import Catalogue
from deepwork.jobs.parse import JobReading

SHAPES = runpy.run_path(str(Path(__file__).with_name("hostile_jobs.py")))

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
    """The limit is generous, for busy machines."""
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
    result = JobReading.of((full[:start] + new + full[end:]).encode(errors="surrogatepass"), FOLDER).result
    assert isinstance(result, Job | JobLoadError)
    if isinstance(result, JobLoadError):
        for line in result.message.removeprefix("Failed to load: ").splitlines():
            assert line.startswith(f"{FOLDER / 'job.yml'}:")
            assert "cannot be read (" not in line  # the text for unexpected exceptions


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_job_or_an_error_that_names_the_file(content):
    result = JobReading.of(content, FOLDER).result
    assert isinstance(result, JobLoadError)
    assert str(FOLDER / "job.yml") in result.message


def test_of_mutated_files_each_is_a_job_or_an_error_with_its_line_and_the_job_beside_it_stays(project):
    project.write(".deepwork/jobs/good/job.yml", SHAPES["good_job"]())
    file = project.write(".deepwork/jobs/mutated/job.yml")
    originals = [SHAPES["big_job"](), *(path.read_text() for path in sorted(PACKAGED.glob("*/job.yml")))]
    catalogue = Catalogue([FolderJobs("project", 0, [JobReader(project.jobs)])])
    for number in range(300):
        chance = random.Random(number)
        mutate = SHAPES["MUTATORS"][number % len(SHAPES["MUTATORS"])]
        file.write_bytes(mutate(chance.choice(originals), chance))
        listing = catalogue.list()
        assert isinstance(catalogue.find("good"), Job), number
        assert "good" in [job.name for _, job in listing.jobs], number
        for _, error in listing.errors:
            lines = error.message.removeprefix("Failed to load: ").splitlines()
            assert all(line.startswith(str(file)) for line in lines), number
            # Only a file without any content has no line to point at.
            bare = re.sub(rb"(?m)^\s*(#.*|---|\.\.\.)?$", b"", file.read_bytes()).strip(b"\xef\xbb\xbf\0\r\n ")
            assert re.match(rf"{re.escape(str(file))}:\d+: ", lines[0]) or not bare, number
