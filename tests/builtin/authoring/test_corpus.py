"""Jobs of `tests/data/corpus`, the examples and the packaged jobs: what the workbench finds in them, and what not."""

from __future__ import annotations

import json

import pytest

from deepwork.builtin.authoring.lint import lint


def test_good_jobs_have_no_errors_and_no_warnings(corpus):
    assert len(corpus) == 47
    findings = [finding for job_dir in corpus for finding in lint(job_dir)]
    assert [finding.at for finding in findings if finding.level != "info"] == []


def test_the_tests_of_all_jobs_are_green(corpus, invoke):
    assert invoke("jobs", "test").err == "46 tests, all green.\n"


@pytest.mark.slow
def test_faults_are_found_by_the_linter_and_changes_of_meaning_by_tests(corpus, invoke, project):
    survey = json.loads(invoke("jobs", "mutate", "--json", "--corpus", project.jobs).out)
    faults, changes = survey["faults"], survey["changes"]
    assert min(faults["mutants"], changes["mutants"]) >= 500
    assert faults["lint"] / faults["mutants"] >= 0.85
    assert changes["tests"] / changes["mutants"] >= 0.80
    assert (len(survey["operators"]["fault"]), len(survey["operators"]["change"])) == (12, 8)
