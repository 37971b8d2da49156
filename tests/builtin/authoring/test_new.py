"""`deepwork jobs new`, `show` and `graph`."""

from __future__ import annotations

import json
import re

import click
import pytest

from deepwork.builtin.authoring.new import EXAMPLE_NAMES
from deepwork.testing import review, step

LIST = """# Onboard: a "colleague"

Some text.

- Create accounts: mail & chat
- [ ] Invite to 'standup' {soon}
1. 3 days later, ask #how it goes
- Create accounts: again
"""


@pytest.fixture
def make_job(project, invoke):
    """Make a job, and see that it is clean, can be tried, and has a green test."""

    def make_job(name, *options):
        code, out, err = invoke("jobs", "new", name, *options)
        assert (code, err) == (0, f"Next: deepwork jobs try {name}, deepwork jobs test {name}\n")
        assert out.startswith(f"Created {project.jobs}/{name}: ")
        report = json.loads(invoke("jobs", "check", name, "--json").out)
        assert (report["errors"], report["findings"]) == ([], [])
        assert invoke("jobs", "try", name, "--yes").code == 0
        ended = invoke("jobs", "test", name)
        assert (ended.code, ended.err) == (0, "1 test, all green.\n")
        return ended.out

    return make_job


@pytest.mark.parametrize("example", EXAMPLE_NAMES)
def test_each_example_is_clean_can_be_tried_and_its_test_reaches_all_of_it(example, make_job):
    reached = make_job("mine", "--from", example)
    counts = re.findall(r"(\d+) of (\d+)", reached)
    assert len(counts) == 4
    assert all(reached_count == total for reached_count, total in counts)


def test_a_job_of_named_steps_is_clean_can_be_tried_and_tested(make_job, invoke):
    make_job("weekly", "--summary", 'Report: the "week"', "--step", "draft:report.md", "--step", "send:sent: to all")
    assert "input   report.md  of draft" in invoke("jobs", "show", "weekly").out


def test_the_items_of_a_list_become_steps(project, make_job, invoke):
    project.write("steps.md", LIST)
    make_job("onboard", "--from", "steps.md")
    out = invoke("jobs", "show", "onboard").out
    assert out.startswith('onboard 1.0.0  Onboard: a "colleague"\n')
    assert [line.split()[1] for line in out.splitlines() if re.match(r"    \d\.", line)] == [
        "create_accounts_mail",
        "invite_to_standup",
        "step_3_days_later",
        "create_accounts_again",
    ]


def test_names_that_yaml_reads_as_other_values_and_very_long_words_are_taken(project, make_job):
    make_job("null", "--summary", "Yes", "--step", "true:no", "--step", "on:1.0", "--step", "off:null")
    project.write("words.md", f"- No\n- x 2\n- x\n- x\n- {'word' * 200}\n")
    make_job("on", "--from", "words.md")
    make_job("yes", "--from", "release")


def test_at_a_terminal_a_step_that_is_wrong_is_asked_for_again(project, invoke):
    answers = "nothing\nReport the week\ndraft\ndraft:report.md\ndraft:other.md\nsend:sent.md\n\n"
    ended = invoke("jobs", "new", "weekly", answer=answers)
    assert ended.code == 0
    assert "'draft' is not ID:OUTPUT" in ended.out + ended.err
    assert "a step id is used twice: draft, draft" in ended.out + ended.err
    assert json.loads(invoke("jobs", "check", "weekly", "--json").out)["findings"] == []


def test_nothing_is_left_of_a_job_that_cannot_be_written(project, invoke):
    ended = invoke("jobs", "new", "mine", "--summary", "x", "--step", f"a{'b' * 300}:out.md")
    assert ended.code == 1
    assert "cannot be written" in ended.err
    assert not (project.jobs / "mine").exists()


def test_at_a_terminal_it_asks(project, invoke):
    answers = "nothing\nReport the week\ndraft:report.md\nsend:sent.md\n\n"
    assert invoke("jobs", "new", "weekly", answer=answers).code == 0
    assert "1. draft" in invoke("jobs", "show", "weekly").out
    assert invoke("jobs", "new", "fix", answer="bug_fix\n").code == 0
    assert "reproduce" in invoke("jobs", "show", "fix").out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["With Space", "--from", "release"], "is no name: lower-case letters"),
        (["mine", "--summary", "x"], "Give --from, or --summary and at least one --step"),
        (["mine", "--summary", "x", "--step", "draft"], "'draft' is not ID:OUTPUT"),
        (["mine", "--summary", "x", "--step", "a:x", "--step", "a:y"], "a step id is used twice: a, a"),
        (["mine", "--from", "release", "--step", "a:x"], "Choose one of --from and --step."),
    ],
)
def test_wrong_usage_creates_nothing(arguments, says, run, project):
    ended = run("jobs", "new", *arguments)
    assert ended.returncode == 2
    assert says in re.sub(r"\s+", " ", ended.stderr)
    assert not project.jobs.exists()


def test_a_job_that_is_there_is_not_touched(project, invoke):
    folder = project.write_job("mine")
    before = (folder / "job.yml").read_text()
    ended = invoke("jobs", "new", "mine", "--from", "release")
    assert ended.code == 1
    assert f"there is a job 'mine' already: {folder}" in ended.err
    assert (folder / "job.yml").read_text() == before


def test_a_job_that_is_made_while_it_asks_is_not_touched(project, invoke, monkeypatch):
    prompt = click.prompt

    def meanwhile(*words, **options):
        project.write_job("mine")
        return prompt(*words, **options)

    monkeypatch.setattr(click, "prompt", meanwhile)
    ended = invoke("jobs", "new", "mine", answer="release\n")
    assert ended.code == 1
    assert "there is a job 'mine' already" in ended.err
    assert "name: mine" in (project.jobs / "mine/job.yml").read_text()


@pytest.mark.parametrize(("name", "says"), [("nowhere.md", "nowhere.md"), ("empty.md", "has no list items")])
def test_a_file_that_gives_no_steps_is_an_error(name, says, project, invoke):
    project.write("empty.md", "# Nothing\n")
    ended = invoke("jobs", "new", "mine", "--from", name)
    assert ended.code == 1
    assert says in ended.err


def test_show_names_inputs_outputs_reviews_and_who_reviews(project, invoke):
    project.write_job(
        "demo",
        [
            step("a", inputs=[{"name": "topic", "description": "What about"}], reviews=[review("a.md")]),
            step("b", dependencies=["a"], inputs=[{"file": "a.md", "from_step": "a"}]),
            step("c"),
        ],
        {"main": [["a", "b"]]},
    )
    assert invoke("jobs", "show", "demo").out.splitlines() == [
        "demo 1.0.0  Job demo",
        "  workflow main  Does main",
        "    1. at the same time:",
        "       - a  A",
        "         input   topic  from the user: What about",
        "         output  a.md  (file) A file",
        "         review  a.md  by self: Good",
        "       - b  B",
        "         input   a.md  of a",
        "         output  b.md  (file) A file",
        "  in no workflow",
        "    - c  C",
        "      output  c.md  (file) A file",
    ]
    project.write(
        ".deepwork/config.yml",
        "quality_gate: {commands: {tests: {run: [true]}}, runner: tests}\n".replace("true", "'true'"),
    )
    assert "by tests: Good" in invoke("jobs", "show", "demo").out
    project.write(".deepwork/config.yml", "quality_gate: {enabled: false}\n")
    project.trust()
    assert "by nobody: the quality gate is off: Good" in invoke("jobs", "show", "demo").out


@pytest.fixture
def large(project):
    """A job of forty steps with long names, some of them in groups."""
    steps = [step(f"step_{number}", name=f"{number} " + "very long name " * 9) for number in range(40)]
    ids = [item["id"] for item in steps]
    project.write_job("large", steps, {"main": [ids[0], ids[1:4], *ids[4:38], ids[38:]]})


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_graph_fits_the_terminal(columns, large, invoke, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = invoke("jobs", "graph", "large").out.splitlines()
    assert max(map(len, lines)) <= columns
    assert sum("step_" in line for line in lines) == 40
    assert [line[2] for line in lines[1:8]] == ["●", "│", "┌", "├", "└", "│", "●"]


def test_mermaid_joins_each_entry_to_the_next_and_no_members_of_a_group(large, invoke):
    out = invoke("jobs", "graph", "large", "--mermaid").out
    edges = {tuple(edge) for edge in re.findall(r"w0_(\w+) --> w0_(\w+)", out)}
    assert {("step_0", f"step_{number}") for number in (1, 2, 3)} <= edges
    assert {(f"step_{number}", "step_4") for number in (1, 2, 3)} <= edges
    assert ("step_1", "step_2") not in edges
    assert len(edges) == 3 + 3 + 33 + 2
    assert out.count('["step_') == 40


def test_a_name_in_mermaid_ends_no_label(project, invoke):
    project.write_job("demo", [step("a", name='x"] --> y["#quot;')])
    out = invoke("jobs", "graph", "demo", "--mermaid").out
    assert re.search(r'^    w0_a\["a: [\w #;-]*"\]$', out, re.MULTILINE)


def test_mermaid_of_two_large_groups_stays_small_enough_to_be_drawn(project, invoke):
    steps = [step(f"s{number}") for number in range(120)]
    ids = [item["id"] for item in steps]
    project.write_job("demo", steps, {"main": [ids[:60], ids[60:]]})
    edges = set(re.findall(r"w0_(\w+) --> w0_(\w+)", invoke("jobs", "graph", "demo", "--mermaid").out))
    assert edges == {("s0", later) for later in ids[60:]} | {(former, "s60") for former in ids[:60]}
