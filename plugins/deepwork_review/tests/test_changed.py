from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.anyio

UNUSUAL_NAMES = [
    "two words.py",
    "new\nline.py",
    "日本.py",
    "-rf.py",
    'quo"te.py',
    "back\\slash.py",
    "tab\t.py",
    b"caf\xe9.py",
]


async def test_committed_staged_unstaged_and_untracked_files_are_each_reviewed_once(repo, reviewed):
    repo.rule(include=["*.py"])
    repo.write("unstaged.py")
    repo.write("both.py")
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    repo.git("checkout", "-q", "-b", "next")
    repo.write("committed.py")
    repo.commit()
    repo.write("staged.py")
    repo.write("both.py", "staged\n")
    repo.git("add", "-A")
    repo.write("both.py", "and changed again\n")
    repo.write("unstaged.py", "changed\n")
    repo.write("untracked.py")
    answer = await repo.ask()
    assert reviewed(repo.root, answer) == ["both.py", "committed.py", "staged.py", "unstaged.py", "untracked.py"]


async def test_ignored_files_are_not_reviewed(repo):
    repo.rule(include=["*.py"])
    repo.write(".gitignore", "made.py\n")
    repo.write("made.py")
    assert (await repo.ask()).startswith("No rules matched the 2 changed files, compared with main (since ")


@pytest.mark.parametrize("state", ["committed", "staged", "untracked"])
async def test_every_name_that_git_allows_is_reviewed_once(repo, reviewed, state):
    repo.rule(include=["*.py"])
    for name in UNUSUAL_NAMES:
        descriptor = os.open(os.path.join(os.fsencode(repo.root), os.fsencode(name)), os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, os.fsencode(name))
        os.close(descriptor)
    if state != "untracked":
        repo.git("add", "-A")
    if state == "committed":
        repo.commit()
    answer = await repo.ask()
    assert reviewed(repo.root, answer) == sorted(
        [
            *("two words.py", "日本.py", "-rf.py", 'quo"te.py', "back\\slash.py"),
            *(r"$'new\x0aline.py'", r"$'tab\x09.py'", r"$'caf\xe9.py'"),
        ]
    )


async def test_a_renamed_file_is_reviewed_under_its_new_name(repo, reviewed):
    repo.rule(include=["*.py"])
    repo.write("old.py", "x = 1\n" * 20)
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    repo.git("checkout", "-q", "-b", "next")
    repo.git("mv", "old.py", "new.py")
    repo.write("copy.py", "x = 1\n" * 20)
    answer = await repo.ask()
    assert reviewed(repo.root, answer) == ["copy.py", "new.py"]
    assert "WARNING: 1 deleted file reviewed by no rule" in answer


async def test_a_deletion_is_reviewed_by_a_rule_that_asks_for_it(repo, review_ids):
    repo.rule("asks", include=["*.md"], deletions=True)
    repo.rule("does_not", include=["*.md"])
    repo.git("rm", "-q", "README.md")
    answer = await repo.ask()
    (review_id,) = review_ids(answer)
    text = (repo.state / "review_instructions" / f"{review_id}.md").read_text()
    assert "## Deleted Files\n\n- README.md\n" in text
    assert "## Files to Review" not in text


async def test_a_project_below_the_root_of_its_repository_sees_its_own_changes_only(repo, repo_at, reviewed):
    below = repo_at(repo.root / "packages" / "one")
    below.rule(include=["**/*.py"])
    below.write("src/tracked.py")
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")
    repo.git("checkout", "-q", "-b", "next")
    below.write("src/tracked.py", "changed\n")
    below.write("src/untracked.py")
    repo.write("outside.py")
    repo.git("mv", "README.md", "packages/one/moved.py")
    assert reviewed(below.root, await below.ask()) == ["moved.py", "src/tracked.py", "src/untracked.py"]


async def test_a_linked_worktree_is_reviewed_and_one_inside_is_left_out(repo, repo_at, reviewed):
    repo.rule(include=["*.py", "**/*.py"])
    repo.commit()
    repo.git("worktree", "add", "-q", "-b", "other", str(repo.root / "trees" / "other"))
    tree = repo_at(repo.root / "trees" / "other")
    tree.write("new.py")
    assert reviewed(tree.root, await tree.ask()) == ["new.py"]
    answer = await repo.ask()
    assert "WARNING: trees/other/ is a repository of its own and was left out" in answer
    assert "new.py" not in answer
    async with repo.reviewer() as agent:
        assert [rule["defining_file"] for rule in await agent.configured()] == [".deepreview:1"]


async def test_a_submodule_is_left_out_with_a_note(repo, repo_at, tmp_path):
    module = repo_at(tmp_path / "module").init()
    module.write("inner.py")
    module.commit()
    repo.rule(include=["**/*.py"])
    repo.git("submodule", "--quiet", "add", str(module.root), "sub")
    repo.commit()
    answer = await repo.ask()
    assert "WARNING: submodule sub has changed and was left out: review it in its own repository" in answer
    assert "WARNING: changes inside of submodules are not looked at: sub" in answer
    assert "No rules matched" in answer


async def test_content_that_is_only_staged_is_pointed_out(repo):
    repo.rule(include=["*.md"])
    repo.write("README.md", "staged\n")
    repo.git("add", "-A")
    repo.write("README.md")
    answer = await repo.ask()
    assert "README.md is staged with other content than it has in the working tree" in answer
    assert 'name: "rule review of README.md"' in answer


async def test_in_a_repository_without_a_commit_everything_has_changed(tmp_path, repo_at, reviewed):
    repo = repo_at(tmp_path / "new").init()
    repo.rule(include=["*.py"])
    repo.write("staged.py")
    repo.git("add", "staged.py")
    repo.write("untracked.py")
    assert reviewed(repo.root, await repo.ask()) == ["staged.py", "untracked.py"]


async def test_the_base_is_origins_default_branch(repo, repo_at, tmp_path, reviewed):
    repo.git("checkout", "-q", "-b", "trunk", "main")
    repo.rule(include=["*.py"])
    repo.commit()
    repo.git("clone", "-q", str(repo.root), str(tmp_path / "clone"))
    clone = repo_at(tmp_path / "clone")
    clone.write("new.py")
    clone.commit()
    answer = await clone.ask()
    assert reviewed(clone.root, answer) == ["new.py"]
    nothing = clone.run("review", "--base-ref", "HEAD").stdout
    assert nothing.startswith("No changed files detected, compared with HEAD (since ")


async def test_a_base_in_the_configuration_is_used(repo, reviewed):
    repo.rule(include=["*.py"])
    repo.write("one.py")
    repo.commit()
    repo.git("tag", "here")
    repo.write("two.py")
    repo.commit()
    assert reviewed(repo.root, await repo.ask()) == ["one.py", "two.py"]
    repo.write(".deepwork/config.yml", "plugins: {settings: {review: {base: here}}}\n")
    assert reviewed(repo.root, await repo.ask()) == ["two.py"]


async def test_a_shallow_clone_never_looks_unchanged(repo, repo_at, tmp_path):
    repo.rule(include=["*.py"])
    for number in range(3):
        repo.write(f"{number}.py")
        repo.commit()
    repo.git("checkout", "-q", "main")
    url = f"file://{repo.root}"
    repo.git("clone", "-q", "--depth", "1", "--branch", "work", url, str(tmp_path / "branch"))
    refused = await repo_at(tmp_path / "branch").refusal()
    assert "it is not known what has changed, so a review may be due:" in refused
    assert "git fetch --unshallow" in refused
    repo.git("clone", "-q", "--depth", "1", url, str(tmp_path / "default"))
    default = repo_at(tmp_path / "default")
    default.rule(include=["*.py"])
    default.git("add", ".deepreview")
    default.git("commit", "-q", "-m", "rules")
    default.git("update-ref", "refs/remotes/origin/main", "HEAD")
    refused = await default.refusal()
    assert "this is a shallow clone" in refused


async def test_in_a_shallow_clone_what_is_known_is_reviewed_with_a_warning(repo, repo_at, tmp_path):
    repo.rule(include=["*.py"])
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.git("clone", "-q", "--depth", "1", "--branch", "work", f"file://{repo.root}", str(tmp_path / "clone"))
    clone = repo_at(tmp_path / "clone")
    clone.write("new.py")
    answer = await clone.ask()
    assert answer.startswith("WARNING: there is no default branch")
    assert 'name: "rule review of new.py"' in answer


async def test_without_a_default_branch_nothing_is_called_unchanged(repo):
    repo.git("branch", "-q", "-D", "main")
    repo.rule(include=["*.py"])
    repo.commit()
    refused = await repo.refusal()
    assert "Only uncommitted changes are covered, commits of this branch are NOT" in refused


async def test_an_unrelated_history_is_an_error(repo):
    repo.git("checkout", "-q", "--orphan", "island")
    repo.rule(include=["*.py"])
    repo.commit()
    assert "no commit is known in which this branch left 'main'" in await repo.refusal()


@pytest.mark.parametrize(
    "ref",
    ["--output=canary", "-c", "--outpu=canary", "--upload-pack=touch canary", "@{-1}", "HEAD:../x", "a..b", "a b"],
)
def test_a_base_that_could_be_an_option_or_more_than_a_commit_is_refused(repo, ref):
    repo.rule()
    completed = repo.run("review", f"--base-ref={ref}")
    assert (completed.returncode, completed.stdout) == (1, "")
    assert completed.stderr == f"Error: the base {ref!r} is not the name of a branch, tag or commit\n"
    assert not list(repo.root.rglob("canary"))


def test_an_unknown_base_is_refused(repo):
    repo.rule()
    completed = repo.run("review", "--base-ref", "release")
    assert completed.returncode == 1
    assert "Error: the base 'release' is not known to this repository" in completed.stderr


async def test_a_broken_repository_is_an_error_and_not_an_empty_answer(repo):
    repo.rule()
    repo.write(".git/HEAD", "nonsense")
    assert "git cannot use this repository" in await repo.refusal()


async def test_outside_of_git_the_files_have_to_be_named(project, repo_at):
    folder = repo_at(project.root)
    folder.rule(include=["*.py"])
    folder.write("a.py")
    assert "this project is not in a git repository" in await folder.refusal()
    assert 'name: "rule review of a.py"' in await folder.ask(files=["a.py"])


async def test_named_files_are_normalised_contained_and_missing_ones_are_named(repo, reviewed):
    repo.rule(include=["**/*.py"])
    repo.write("src/a.py")
    repo.write("b.py")
    (repo.root / "out.py").symlink_to("/etc/passwd")
    names = ["./src/../src/a.py", str(repo.root / "b.py"), "b.py", "gone.py", "../x.py", "/etc/passwd", "out.py", "src"]
    answer = await repo.ask(files=names)
    assert reviewed(repo.root, answer) == ["b.py", "src/a.py"]
    assert "WARNING: gone.py does not exist and was left out" in answer
    assert "WARNING: src is a folder and was left out; name its files" in answer
    for name in ("../x.py", "/etc/passwd", "out.py"):
        assert f"WARNING: {name} lies outside of the project and was left out" in answer


async def test_naming_only_files_that_cannot_be_reviewed_is_an_error(repo):
    repo.rule()
    refused = await repo.refusal(files=["gone.py"])
    assert refused == "files: none can be reviewed\ngone.py does not exist and was left out"


async def test_an_empty_list_of_files_is_no_changed_file_and_no_error(repo):
    repo.rule()
    assert await repo.ask(files=[]) == "No changed files detected, compared with an empty list of files."
