"""`deepwork jobs list` and `deepwork jobs check`, as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from deepwork.builtin.authoring.rules import rules
from deepwork.testing import step


@pytest.fixture
def jobs(project):
    """Run `deepwork jobs` in the project; standard output, standard error and exit code."""

    def jobs(*arguments, cwd=None, **environment):
        result = subprocess.run(
            [sys.executable, "-m", "deepwork", "jobs", *arguments],
            cwd=cwd or project.root,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=240,
            check=False,
        )
        assert "Traceback" not in result.stdout + result.stderr
        return result.stdout, result.stderr, result.returncode

    return jobs


@pytest.fixture
def mixed(project):
    """A good job, one with a warning, and one with two errors."""
    project.write_job("good")
    project.write_job("odd", [step("a"), step("b")], {"main": ["a"]})
    project.write(".deepwork/jobs/bad/job.yml", 'name: bad\nversion: "1.0.0"\nsummary: s\nsteps: []\n')
    return project


GOOD = "2 jobs checked, no errors.\n"


def test_check_prints_errors_and_warnings_with_file_and_line_and_fails(mixed, jobs):
    out, err, code = jobs("check")
    assert out.splitlines() == [
        f"{mixed.jobs}/bad/job.yml:1: 'common_job_info_provided_to_all_steps_at_runtime' is missing",
        f"{mixed.jobs}/bad/job.yml:4: steps: should not be empty",
        f"{mixed.jobs}/odd/job.yml:16: step 'b' is in no workflow (warning)",
    ]
    assert err == "3 jobs checked, 1 with errors, 1 warning.\n"
    assert code == 1


def test_check_succeeds_with_warnings_alone(mixed, jobs):
    out, err, code = jobs("check", ".deepwork/jobs/good", ".deepwork/jobs/odd")
    assert out == ".deepwork/jobs/odd/job.yml:16: step 'b' is in no workflow (warning)\n"
    assert err == "2 jobs checked, no errors, 1 warning.\n"
    assert code == 0


def test_check_prints_nothing_to_stdout_when_all_is_well(project, jobs):
    project.write_job("one")
    project.write_job("two")
    assert jobs("check") == ("", GOOD, 0)


@pytest.mark.parametrize("path", ["job.yml", ".", "./job.yml", "../odd", "../odd/job.yml"])
def test_check_takes_a_job_folder_or_its_file_from_anywhere(path, mixed, jobs):
    """The folder `.` is named as it is on disk, so the job's name fits it."""
    out, _, code = jobs("check", path, cwd=mixed.jobs / "odd")
    file = {".": "job.yml", "./job.yml": "job.yml", "../odd": "../odd/job.yml"}.get(path, path)
    assert out == f"{file}:16: step 'b' is in no workflow (warning)\n"
    assert code == 0


def test_check_takes_the_name_of_a_job_of_the_project(project, jobs):
    project.write(".deepwork/jobs/demo/job.yml", "nonsense: 1\n")
    out, _, code = jobs("check", "demo")
    assert code == 1
    assert "demo/job.yml" in out


def test_check_takes_a_folder_of_jobs(mixed, jobs):
    out, err, code = jobs("check", str(mixed.jobs), cwd="/")
    assert len(out.splitlines()) == 3
    assert (err, code) == ("3 jobs checked, 1 with errors, 1 warning.\n", 1)


def test_check_of_an_unknown_name_is_an_error_that_names_the_jobs(project, jobs):
    project.write_job("feature")
    out, err, code = jobs("check", "featur")
    assert (out, code) == ("", 1)
    assert err.startswith("Error: 'featur' is neither a path nor a job of the project; did you mean 'feature'?\n")


@pytest.mark.parametrize(
    ("path", "says"),
    [("no/where", "no/where is not a directory"), ("file.txt", "file.txt is not a directory")],
)
def test_check_of_what_is_not_there_is_an_error(path, says, project, jobs):
    project.write("file.txt")
    assert jobs("check", path) == (f"{says}\n", "1 job checked, 1 with errors.\n", 1)


def test_check_of_a_missing_file_is_an_error(project, jobs):
    project.write("empty/notes.md")
    out, _, code = jobs("check", "empty/job.yml")
    assert (out, code) == ("empty/job.yml not found\n", 1)


def test_check_of_a_project_without_jobs_says_what_is_missing_and_what_creates_it(project, jobs):
    out, err, code = jobs("check")
    assert (out, code) == ("", 1)
    assert err == f"Error: there is no folder {project.jobs}\nHint: `deepwork init` creates it, with a first job.\n"


def test_check_finds_a_file_of_another_name_and_an_empty_folder(project, jobs):
    project.write_job("good")
    project.write(".deepwork/jobs/named/job.yaml", "name: named\n")
    (project.jobs / "nothing").mkdir()
    out, err, code = jobs("check")
    assert out.splitlines() == [
        f"{project.jobs}/named/job.yml not found; rename 'job.yaml' to 'job.yml'",
        f"{project.jobs}/nothing/job.yml not found; the folder is empty",
    ]
    assert (err, code) == ("3 jobs checked, 2 with errors.\n", 1)
    assert jobs("check", ".deepwork/jobs/named")[2] == 1


def test_check_calls_a_missing_instruction_file_an_error_although_the_job_loads(project, jobs):
    (project.write_job("one") / "steps" / "b.md").unlink()
    out, err, code = jobs("check")
    assert out.endswith("step 'b': instructions file 'steps/b.md' does not exist\n")
    assert (err, code) == ("1 job checked, 1 with errors.\n", 1)


def test_check_tells_a_later_job_format_in_one_sentence(project, jobs):
    project.write(".deepwork/jobs/new/job.yml", "name: new\nsummary: s\nstep_arguments: []\nworkflows: {}\n")
    [line], _, code = (lambda out, err, code: (out.splitlines(), err, code))(*jobs("check"))
    assert "job.yml:3: this is a job of DeepWork 0.10 or newer ('step_arguments' shows it)" in line
    assert code == 1


def test_check_says_what_is_allowed_in_words_and_in_the_order_of_lines(project, jobs):
    text = "name: hyphen-job\nversion: 1.0\nsummary: s\nsteps: []\n"
    project.write(".deepwork/jobs/one/job.yml", text)
    lines = jobs("check")[0].splitlines()
    assert [line.partition("job.yml:")[2] for line in lines] == [
        "1: name: should be lower-case letters, digits and '_', beginning with a letter (found 'hyphen-job')",
        "1: 'common_job_info_provided_to_all_steps_at_runtime' is missing",
        "2: version: should be text (found 1.0); put it in quotes",
        "4: steps: should not be empty",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("summary: Fix: the bug", "1: a second ': ' in one line; put the text that contains it in quotes"),
        ("name: a\n\tversion: b", "2: a tab; YAML indents with spaces"),
        ("name: @a", "1: text cannot begin with '@'; put it in quotes"),
    ],
)
def test_check_words_the_mistakes_in_yaml_that_people_make(text, says, project, jobs):
    project.write(".deepwork/jobs/one/job.yml", text)
    assert jobs("check")[0].rstrip().endswith(f"job.yml:{says}")


def test_check_names_the_file_of_a_job_that_cannot_be_read(project, jobs):
    for name in ("one", "two"):
        (project.jobs / name).mkdir(parents=True)
        os.mkfifo(project.jobs / name / "job.yml")
    out, _, code = jobs("check")
    assert out.splitlines() == [
        f"{project.jobs}/{name}/job.yml is a pipe, not a regular file" for name in ("one", "two")
    ]
    assert code == 1


def test_check_prints_json_with_stable_keys(mixed, jobs):
    def finding(job, rule, level, line, message):
        file = f"{mixed.jobs}/{job}/job.yml"
        cure = rules()[rule].cure
        return {"rule": rule, "level": level, "file": file, "line": line, "message": message, "cure": cure}

    out, err, code = jobs("check", "--json")
    report = json.loads(out)
    report["findings"] = [finding for finding in report["findings"] if finding["level"] != "info"]
    assert report == {
        "checked": 3,
        "errors": [
            {
                "job_name": "bad",
                "job_dir": f"{mixed.jobs}/bad",
                "error": f"Failed to load: {mixed.jobs}/bad/job.yml:1: "
                "'common_job_info_provided_to_all_steps_at_runtime' is missing\n"
                f"{mixed.jobs}/bad/job.yml:4: steps: should not be empty",
            }
        ],
        "warnings": [f"{mixed.jobs}/odd/job.yml:16: step 'b' is in no workflow"],
        "findings": [
            finding("bad", "schema", "error", 1, "'common_job_info_provided_to_all_steps_at_runtime' is missing"),
            finding("bad", "schema", "error", 4, "steps: should not be empty"),
            finding("odd", "unused-step", "warning", 16, "step 'b' is in no workflow"),
        ],
    }
    assert err == ""
    assert code == 1


def test_check_looks_at_the_project_of_the_option_or_the_environment(mixed, jobs):
    expected = jobs("check")
    assert jobs("check", "--path", str(mixed.root), cwd="/") == expected
    assert jobs("check", cwd="/", DEEPWORK_PROJECT=str(mixed.root)) == expected


def test_a_wrong_option_is_a_usage_error(jobs):
    out, err, code = jobs("check", "--jsn")
    assert (out, code) == ("", 2)
    assert "No such option '--jsn'" in err


def test_a_project_that_is_not_there_is_an_expected_error(jobs):
    out, err, code = jobs("list", "--path", "/nowhere")
    assert (out, code) == ("", 1)
    assert err.startswith("Error: project root '/nowhere' is not a folder\nHint: ")


def test_a_broken_configuration_is_an_expected_error(project, jobs):
    project.write(".deepwork/config.yml", "quality_gat: {}\n")
    out, err, code = jobs("list")
    assert (out, code) == ("", 1)
    assert "config.yml:1: unknown key 'quality_gat'; did you mean 'quality_gate'?" in err


def test_list_shows_jobs_with_their_sources_shadowed_ones_and_broken_ones(mixed, jobs):
    mixed.write_job("project_tour")
    out, err, _ = jobs("list")
    assert out.splitlines() == [
        "good  (project)  Job good",
        "    main: Does main",
        "odd  (project)  Job odd",
        "    main: Does main",
        "project_tour  (project)  Job project_tour",
        "    main: Does main",
        "deepwork_jobs  (packaged)  Create, repair and improve DeepWork jobs",
        "    new_job: Design a new job with the user, write it, and try it",
        "    repair: Find and mend what is wrong with a job that does not load or does not work",
        "    improve: Learn from a session of a job, and make the job better by it",
        "project_tour  (packaged)  hidden by the job of the same name in project",
        f"broken  Failed to load: {mixed.jobs}/bad/job.yml:1: "
        "'common_job_info_provided_to_all_steps_at_runtime' is missing",
        f"{mixed.jobs}/bad/job.yml:4: steps: should not be empty",
    ]
    assert "odd/job.yml:16: step 'b' is in no workflow" in err


def test_list_prints_json_with_stable_keys(project, jobs):
    project.write_job("project_tour", [step("a")])
    project.write(".deepwork/jobs/bad/job.yml", "- x\n")
    out, err, _ = jobs("list", "--json")
    listing = json.loads(out)
    assert sorted(listing) == ["errors", "jobs", "shadowed"]
    assert listing["jobs"][0] == {
        "source": "project",
        "name": "project_tour",
        "version": "1.0.0",
        "summary": "Job project_tour",
        "job_dir": f"{project.jobs}/project_tour",
        "workflows": [{"name": "main", "summary": "Does main"}],
        "errors": [],
        "warnings": [],
    }
    assert [job["name"] for job in listing["jobs"]] == ["project_tour", "deepwork_jobs"]
    [hidden] = listing["shadowed"]
    assert sorted(hidden) == [
        "errors",
        "hidden_by",
        "job_dir",
        "name",
        "source",
        "summary",
        "version",
        "warnings",
        "workflows",
    ]
    assert (hidden["name"], hidden["source"], hidden["hidden_by"]) == ("project_tour", "packaged", "project")
    assert listing["errors"] == [
        {
            "source": "project",
            "job_name": "bad",
            "job_dir": f"{project.jobs}/bad",
            "error": f"Failed to load: {project.jobs}/bad/job.yml:1: should be a mapping",
        }
    ]
    assert err == ""


def test_list_shows_the_jobs_of_additional_folders(project, jobs, tmp_path):
    project.write_job("extra", folder=tmp_path / "more")
    out, _, code = jobs("list", DEEPWORK_ADDITIONAL_JOBS_FOLDERS=f"{tmp_path / 'more'}:")
    assert "extra  (additional)  Job extra\n" in out
    assert code == 0


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict", "latin-1:strict"])
def test_what_the_terminal_cannot_show_is_escaped(encoding, project, jobs):
    project.write_job("good", summary="Prüfen ✓")
    project.write(b".deepwork/jobs/bad\xff/job.yml".decode(errors="surrogateescape"), "name: bad\n")
    for arguments, expected in ((["list"], 0), (["check"], 1)):
        out, err, code = jobs(*arguments, PYTHONIOENCODING=encoding)
        assert "bad" in out
        assert "bug" not in err
        assert code in (expected, 1)


def test_no_colour_is_written_into_a_pipe(mixed, jobs):
    out, _, _ = jobs("list")
    assert "\x1b" not in out
