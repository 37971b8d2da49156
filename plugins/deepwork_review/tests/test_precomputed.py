"""Commands of rules, whose output reviewers read."""

from __future__ import annotations

import pytest


def precomputing(repo, script, command="info.sh 'two words'"):
    repo.rule(folder="src", include=["*.py"], precomputed_info_for_reviewer_bash_command=command)
    repo.write("src/info.sh", script)
    repo.write("src/a.py")


def context_of(repo):
    (file,) = (repo.state / "review_instructions").glob("*.md")
    return file.read_text().partition("## Precomputed Context")[2].partition("## After")[0]


def test_a_command_runs_only_when_the_user_trusts_exactly_it(repo):
    precomputing(repo, 'touch ran; echo "$1 in $PWD; $SECRET"')
    completed = repo.run("review")
    assert "Warning: rule 'rule' (src/.deepreview:1): its command was not run; see `deepwork trust`" in completed.stderr
    assert not (repo.root / "ran").exists()
    assert "the user has not trusted this command" in context_of(repo)
    trusted = repo.run("trust", "--yes")
    assert "review: command of rule rule in src/.deepreview" in trusted.stdout
    assert repo.run("reviews", "clean", "--older-than", "0").stdout == "2 files removed.\n"
    completed = repo.run("review", env={"SECRET": "secret"})
    assert completed.stderr == ""
    assert f"two words in {repo.root}; \n" in context_of(repo)
    repo.write("src/info.sh", "touch ran_again")
    assert "its command was not run" in repo.run("review").stderr
    assert not (repo.root / "ran_again").exists()


def test_a_command_that_fails_is_reported(repo):
    precomputing(repo, "echo some; echo why >&2; exit 3")
    repo.run("review")
    repo.run("trust", "--yes")
    repo.run("reviews", "clean", "--older-than", "0")
    assert "its command failed" in repo.run("review").stderr
    assert "some\n\n(the command failed with exit code 3)\nwhy\n" in context_of(repo)


@pytest.mark.parametrize("command", ["../../etc/passwd", "gone.sh", "$(touch x)", "'unbalanced"])
def test_a_command_that_is_not_a_file_of_the_project_is_reported(repo, command):
    precomputing(repo, "echo", command)
    completed = repo.run("review")
    assert completed.returncode == 0
    assert "Warning: rule 'rule' (src/.deepreview:1): " in completed.stderr
