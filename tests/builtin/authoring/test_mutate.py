"""`deepwork jobs mutate`: what neither the linter nor the tests of a job notice, and the test that does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deepwork.testing import output, review, step

TEST = """\
version: 1
job: demo
steps:
  - {step: a, expect: {refused: a.md}}
  - {step: a, outputs: {a.md: {a.md: x}}, verdicts: {a.md: {Good: fail}}}
  - {step: a, outputs: {a.md: {a.md: y}}, expect: {reads: a.md}}
expect: {outputs: {a.md: a.md}}
"""


@pytest.fixture
def demo(project):
    """A job of three steps; its test goes to the second."""
    steps = [
        step("a", reviews=[review("a.md")], inputs=[{"name": "topic", "description": "What about"}]),
        step("b", dependencies=["a"], inputs=[{"file": "a.md", "from_step": "a"}], outputs={"all": output("files")}),
        step("c", dependencies=["b"], inputs=[{"file": "all", "from_step": "b"}]),
    ]
    project.write_job("demo", steps, {"main": ["a", ["b"], "c"]})
    project.write(".deepwork/jobs/demo/main.test.yml", TEST)
    return project


@pytest.fixture
def survey(invoke):
    """Run `jobs mutate --json`, and return what it found."""

    def survey(*arguments):
        ended = invoke("jobs", "mutate", "--json", *arguments)
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    return survey


def test_the_same_job_gives_the_same_answer_and_is_not_changed(demo, survey):
    before = {path: path.read_bytes() for path in demo.jobs.rglob("*") if path.is_file()}
    first = survey("demo")
    assert first == survey("demo")
    assert {path: path.read_bytes() for path in demo.jobs.rglob("*") if path.is_file()} == before
    assert {"mutants", "survivors"} <= {*first}
    assert first["mutants"] == first["faults"]["mutants"] + first["changes"]["mutants"]


def test_every_fault_is_found_by_the_linter(demo, survey):
    report = survey("demo")
    assert report["faults"]["lint"] == report["faults"]["mutants"] > 15
    assert [survivor for survivor in report["survivors"] if survivor["kind"] == "fault"] == []


def test_a_survivor_names_its_place_and_a_test_that_kills_it(demo, survey, invoke):
    there = demo.jobs / "demo/criterion_loosened_1.test.yml"
    demo.write(there, TEST)
    survivors = survey("demo")["survivors"]
    assert len(survivors) > 3
    assert len({survivor["into"] for survivor in survivors} - {str(there)}) == len(survivors)
    lines = (demo.jobs / "demo/job.yml").read_text().splitlines()
    for survivor in survivors:
        assert sorted(survivor) == ["after", "file", "into", "kind", "line", "message", "operator", "paste"]
        assert survivor["file"] == f"{demo.jobs}/demo/job.yml"
        assert 0 < survivor["line"] <= len(lines)
        into = Path(survivor["into"])
        lines_of_test = into.read_text().splitlines() if into.exists() else []
        pasted = [*lines_of_test[: survivor["after"]], survivor["paste"], *lines_of_test[survivor["after"] :]]
        into.write_text("\n".join(pasted))
    assert invoke("jobs", "test", "demo").code == 0
    assert survey("demo")["survivors"] == []


def test_a_mutant_that_a_test_notices_does_not_survive(demo, survey):
    def survivors():
        return {(survivor["operator"], survivor["message"]) for survivor in survey("demo")["survivors"]}

    loosened = ("criterion_loosened", "criterion 'Good' of step 'a' asks less: 'Is it good, as far as possible?'")
    assert loosened in survivors()
    demo.write(".deepwork/jobs/demo/main.test.yml", f'{TEST}start: {{reads: "Is it good?"}}\n')
    assert loosened not in survivors()


def test_names_that_yaml_reads_as_other_values_stand_in_quotes(project, survey):
    project.write_job("on", [step("yes", reviews=[review("yes.md")]), step("no")], {"null": ["yes", "no"]})
    survivors = survey("on")["survivors"]
    assert survivors
    for survivor in survivors:
        assert 'job: "on"\nworkflow: "null"\n' in survivor["paste"]


def test_the_sums_have_the_same_keys_whatever_they_are(demo, survey):
    (demo.jobs / "demo/main.test.yml").unlink()
    report = survey("demo")
    assert [[*report[kind]] for kind in ("faults", "changes")] == [["mutants", "lint", "tests"]] * 2


def test_a_red_test_ends_it(demo, invoke):
    demo.write(".deepwork/jobs/demo/main.test.yml", TEST.replace("reads: a.md", "reads: nothing"))
    ended = invoke("jobs", "mutate", "demo")
    assert ended.code == 1
    assert "a test of 'demo' is red as it is" in ended.err


def test_a_job_without_tests_is_told_what_to_write(demo, invoke):
    (demo.jobs / "demo/main.test.yml").unlink()
    code, out, err = invoke("jobs", "mutate", "demo")
    assert code == 0
    assert "no finding and no red test; this test notices it: " in out
    assert "changes of meaning: " in out
    assert "noticed by nobody." in err


def test_a_corpus_is_measured_as_a_whole(demo, survey):
    alone = survey("demo")
    demo.write_job("other", [step("x")])
    both = survey("--corpus", str(demo.jobs))
    assert both["mutants"] > alone["mutants"]
    assert {Path(survivor["file"]).parent.name for survivor in both["survivors"]} == {"demo", "other"}


def test_either_a_job_or_a_corpus_is_named(demo, run):
    assert run("jobs", "mutate").returncode == 2
    assert run("jobs", "mutate", "demo", "--corpus", ".").returncode == 2


def test_a_job_that_names_files_outside_of_its_folder_changes_none_of_them(project, invoke):
    """Neither by an absolute path, nor through a linked folder, nor where job.yml itself is a link in its folder."""
    outside = project.write("outside/a.md", "mine\n")
    folder = project.write_job("demo", [step("a"), step("b"), step("c")], {"main": ["c"]})
    (folder / "linked").symlink_to(outside.parent)
    text = (folder / "job.yml").read_text().replace("steps/a.md", str(outside)).replace("steps/b.md", "linked/a.md")
    (folder / "real.yml").write_text(text)
    (folder / "job.yml").unlink()
    (folder / "job.yml").symlink_to(folder / "real.yml")
    before = {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file()}
    ended = invoke("jobs", "mutate", "demo")
    assert ended.code == 0, ended.err
    assert {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file()} == before


def test_of_a_large_job_some_places_spread_over_it_are_changed_and_the_rest_is_counted(project, survey, monkeypatch):
    monkeypatch.setattr("deepwork.builtin.authoring.mutate.MAX_OF_OPERATOR", 2)
    project.write_job("demo", [step(f"s{number}") for number in range(5)])
    report = survey("demo")
    scores = [score for of_kind in report["operators"].values() for score in of_kind.values()]
    assert max(score["mutants"] for score in scores) == 2
    assert report["untried"] >= 3
    assert {"'s0'", "'s3'"} <= set(re.findall(r"'s\d'", json.dumps(report["survivors"])))


def test_a_job_that_is_too_large_is_refused_at_once(project, invoke):
    project.write_job("demo", [step(f"s{number}", description="x" * 1000) for number in range(300)])
    ended = invoke("jobs", "mutate", "demo")
    assert ended.code == 1
    assert "Error: the job 'demo' is too large to be changed in every way" in ended.err
