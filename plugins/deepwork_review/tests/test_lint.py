"""Mistakes in rules, named by `deepwork reviews lint`."""

from __future__ import annotations


def test_lint_names_what_has_no_effect_or_is_missing(repo):
    repo.rule(
        include=["*.py", "*.rb"],
        exclude=["gen/**"],
        agent={"emacs": "x"},
        reference_files=[{"path": "gone.md"}],
        precomputed_info_for_reviewer_bash_command="gone.sh",
    )
    repo.write("a.py")
    completed = repo.run("reviews", "lint")
    assert (completed.returncode, completed.stderr) == (0, "1 rules checked, no errors.\n")
    assert completed.stdout.splitlines() == [
        ".deepreview:1: rule 'rule': include '*.rb' matches no file (warning)",
        ".deepreview:1: rule 'rule': exclude 'gen/**' excludes nothing that is included (warning)",
        ".deepreview:1: rule 'rule': agent 'emacs' is for a platform that reviews are not written for (warning)",
        ".deepreview:1: rule 'rule': reference file 'gone.md' does not exist (warning)",
        ".deepreview:1: rule 'rule': the command 'gone.sh' is not a file beside .deepreview (warning)",
    ]


def test_lint_fails_for_a_broken_file(repo):
    repo.write(".deepreview", "nonsense")
    completed = repo.run("reviews", "lint", "--json")
    assert completed.returncode == 1
    assert '"level": "error"' in completed.stdout
