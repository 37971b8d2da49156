"""`deepwork review` and `deepwork reviews`, as people and programs use them."""

from __future__ import annotations

import json
import sys

import anyio
import pytest

pytestmark = pytest.mark.anyio


def test_the_command_reviews_files_that_are_named_or_come_from_stdin(repo):
    repo.rule(include=["*.py"])
    for name in ("a.py", "b c.py", "d\ne.py"):
        repo.write(name)
    named = json.loads(repo.run("review", "--files", "a.py", "--files", "b c.py", "--json").stdout)
    assert [task["files"] for task in named["tasks"]] == [["a.py"], ["b c.py"]]
    lines = json.loads(repo.run("review", "--stdin", "--json", stdin="a.py\nb c.py\n").stdout)
    assert lines["tasks"] == named["tasks"]
    nul = json.loads(repo.run("review", "--stdin", "--json", stdin="a.py\0d\ne.py\0").stdout)
    assert [task["files"] for task in nul["tasks"]] == [["a.py"], [r"$'d\x0ae.py'"]]
    generic = repo.run("review", "--instructions-for", "generic").stdout
    assert generic.startswith("Have each of these reviews done")


async def test_the_command_never_waits_on_a_pipe(repo):
    repo.rule(include=["*.py"])
    repo.write("a.py")
    with anyio.fail_after(240):
        process = await anyio.open_process(
            [sys.executable, "-m", "deepwork", "review"], cwd=repo.root
        )  # stdin stays open
        async with process:
            output = b"".join([chunk async for chunk in process.stdout])
    assert b'name: "rule review of a.py"' in output


def test_the_command_fails_when_nothing_can_be_concluded(repo):
    assert repo.run("review").returncode == 0
    repo.write(".deepreview", "nonsense")
    completed = repo.run("review")
    assert (completed.returncode, completed.stdout) == (1, "")
    assert "Error: no rules could be read:" in completed.stderr
    repo.write("src/.deepreview", "r: {description: d, match: {include: [x]}, review: {strategy: individual, instruc")
    assert repo.run("review", "--instructions-for", "emacs").returncode == 1


EVIL = "x\x1b[31m\x07\x9b2J\u202e\u200b"


def test_what_a_terminal_would_obey_is_shown_escaped_and_given_to_programs_as_it_is(repo):
    repo.write(f"{EVIL}.md")
    repo.rule(include=["*.md"], description=EVIL)
    repo.rule("empty", folder=EVIL, include=["*.nothing"], reference_files=[{"path": EVIL}])
    for command in (["review"], ["reviews", "list"], ["reviews", "lint"], ["reviews", "why", f"{EVIL}.md"], ["doctor"]):
        completed = repo.run(*command)
        assert all(
            line.isprintable() for line in (completed.stdout + completed.stderr).replace("\t", "").splitlines()
        ), command
    assert r"(.deepreview:1)  x\x1b[31m\x07\x9b2J\u202e\u200b" in repo.run("reviews", "list").stdout
    assert EVIL in [rule["description"] for rule in json.loads(repo.run("reviews", "list", "--json").stdout)]


def test_rules_are_listed(repo):
    repo.rule(include=["*.py"], description="About\n Python")
    completed = repo.run("reviews", "list")
    assert (completed.returncode, completed.stdout) == (0, "rule  (.deepreview:1)  About Python\n")
    assert repo.run("reviews", "list", "x.md").stderr == "No rules.\n"
    repo.write("src/.deepreview", "nonsense")
    completed = repo.run("reviews", "list", "--json")
    assert completed.returncode == 1
    assert json.loads(completed.stdout)[1]["name"] == "PARSE_ERROR:src/.deepreview"
