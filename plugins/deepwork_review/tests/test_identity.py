from __future__ import annotations

import copy
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

import anyio
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwork.api import open_context
from deepwork.testing import DeepworkProject
from deepwork_review.plan import make_plan

pytestmark = pytest.mark.anyio

# A project as data: it is written to a folder, reviewed, changed in one thing, and reviewed again.

CONTENTS = st.sampled_from(["", "a", "b", "ab", "a\nb\n", "\0\xff", "x" * 1000])
FLAGS = st.booleans()


@st.composite
def projects(draw):
    names = draw(
        st.lists(st.sampled_from(["a.py", "b.py", "sub/c.py", "sub/d e.py", "日.py"]), min_size=2, unique=True)
    )
    return {
        "folder": draw(st.sampled_from(["", "src"])),
        "name": draw(st.sampled_from(["rule", "Rule-2"])),
        "strategy": draw(st.sampled_from(["individual", "matches_together", "all_changed_files"])),
        "lists_changed": draw(FLAGS),
        "lists_unchanged": draw(FLAGS),
        "deletions": draw(FLAGS),
        "instructions": draw(st.sampled_from(["Look.", "Look closely.\n"])),
        "agent": draw(st.sampled_from([{}, {"claude": "expert"}, {"generic": "other"}])),
        "references": draw(st.sampled_from([[], [{"path": "guide.md"}]])),
        "command": draw(FLAGS),
        "files": {name: draw(CONTENTS) for name in names},
        "other_rule": draw(st.sampled_from(["Elsewhere.", "Somewhere."])),
        "head": "",
        "printed": "12\n",
        "guide": "guide",
        "unchanged": "old",
        "description": "d",
        "include": ["**/*.py"],
        "exclude": ["**/never.py"],
        "programs": [],
        "links": [],
    }


def write(root: Path, project):
    shutil.rmtree(root / "src", ignore_errors=True)
    home = root / project["folder"]
    review = {
        "strategy": project["strategy"],
        "instructions": project["instructions"],
        "agent": project["agent"],
        "reference_files": project["references"],
        "additional_context": {
            "all_changed_filenames": project["lists_changed"],
            "unchanged_matching_files": project["lists_unchanged"],
        },
    }
    if project["command"]:
        review["precomputed_info_for_reviewer_bash_command"] = "say.sh"
    match = {"include": project["include"], "exclude": project["exclude"], "deletions": project["deletions"]}
    second_review = {"strategy": "individual", "instructions": project["other_rule"]}
    rules = {
        project["name"]: {"description": project["description"], "match": match, "review": review},
        "other": {"description": "o", "match": {"include": ["*.rb"]}, "review": second_review},
    }
    home.mkdir(parents=True, exist_ok=True)
    (home / ".deepreview").write_text(project["head"] + yaml.safe_dump(rules, sort_keys=False))
    (home / "guide.md").write_text(project["guide"])
    (home / "say.sh").write_text(f'cat "{home / "said"}"\n')
    (home / "said").write_text(project["printed"])
    (home / "unchanged.py").write_text(project["unchanged"])
    for name, content in project["files"].items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        if name in project["links"]:
            file.symlink_to("unchanged.py" if "/" not in name else "../unchanged.py")
        else:
            file.write_text(content)
            file.chmod(0o755 if name in project["programs"] else 0o644)
    return [str(Path(project["folder"]) / name) for name in project["files"]]


def plan_of(root, project):
    files = write(root, project)
    context = open_context("review", root)
    if project["command"]:
        DeepworkProject(root).trust()
    plan = anyio.run(partial(make_plan, context, files=files))
    plan.issue()
    return plan


def first(project):
    return min(project["files"])


def edit(key, value):
    def change(project):
        project[key] = value(project[key]) if callable(value) else value

    return change


def edit_first(change):
    def mutate(project):
        project["files"][first(project)] = change(project["files"][first(project)])

    return mutate


def mark_first(key):
    return lambda project: project[key].append(first(project))


def rename(project):
    project["files"]["renamed.py"] = project["files"].pop(first(project))


def every(_project, _files):
    """All reviews have to be done again."""
    return True


def none(_project, _files):
    """No review has to be done again."""
    return False


def when(condition):
    """All reviews have to be done again, if the rule includes what has changed."""
    return lambda project, _files: condition(project)


def its_own(project, files):
    """The reviews of the file that has changed have to be done again."""
    return str(Path(project["folder"]) / first(project)) in files


def of_new_name(project, files):
    """The reviews of the new file have to be done again, and the reviews that list all changed files."""
    return bool({name for name in files if name.endswith(("renamed.py", "zz.py"))}) or project["lists_changed"]


# What is changed, and which reviews have to be done again because of that.
MUTATIONS = {
    "the rule's name": (edit("name", "renamed"), every),
    "its description": (edit("description", "e"), every),
    "its instructions": (edit("instructions", lambda text: f"{text} And more."), every),
    "blanks at their end": (edit("instructions", lambda text: f"{text} "), every),
    "an include": (edit("include", ["**/*.py", "**/*.zig"]), every),
    "an exclude": (edit("exclude", []), every),
    "whether deletions are reviewed": (edit("deletions", lambda on: not on), every),
    "its strategy": (edit("strategy", lambda old: "matches_together" if old == "individual" else "individual"), every),
    "its agent": (edit("agent", {"claude": "another"}), every),
    "whether changed files are listed": (edit("lists_changed", lambda on: not on), every),
    "whether unchanged files are listed": (edit("lists_unchanged", lambda on: not on), every),
    "a reference file added": (edit("references", [{"path": "guide.md"}, {"path": "said"}]), every),
    "a reference's description": (edit("references", [{"path": "guide.md", "description": "x"}]), every),
    "the rule's folder": (edit("folder", lambda old: "src/deeper" if old else "src"), every),
    "a command added or removed": (edit("command", lambda on: not on), every),
    "a reference file's content": (edit("guide", "guide!"), when(lambda project: project["references"])),
    "what the command prints": (edit("printed", "13\n"), when(lambda project: project["command"])),
    "an unchanged file's content": (edit("unchanged", "new"), when(lambda project: project["lists_unchanged"])),
    "a file's content": (edit_first(lambda text: f"{text}!"), its_own),
    "its last line end": (edit_first(lambda text: f"{text}\n"), its_own),
    "a file made a program": (mark_first("programs"), its_own),
    "a file made a link": (mark_first("links"), its_own),
    "a file's name": (rename, of_new_name),
    "another changed file": (lambda project: project["files"].update({"zz.py": "new"}), of_new_name),
    "nothing but file times": (lambda project: None, none),
    "the line of the rule": (edit("head", "# a comment\n\n"), none),
    "another rule": (edit("other_rule", "Look elsewhere."), none),
    "the agent of another platform": (lambda project: project["agent"].update({"generic": "somebody else"}), none),
}


def is_sound(project, mutation):
    """Let everything pass, change one thing, and see whether the right reviews have to be done again."""
    change, about = MUTATIONS[mutation]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        before = plan_of(root, project)
        for review in before.reviews:
            before.folder.mark(review.identity.review_id, "test", None)
        changed = copy.deepcopy(project)
        change(changed)
        for name in set(project["files"]) - set(changed["files"]):
            (root / project["folder"] / name).unlink()
        after = plan_of(root, changed)
        again = [review for review in after.reviews if about(changed, review.material.paths)]
        assert before.reviews
        return [review.identity for review in after.pending] == [review.identity for review in again]


@pytest.mark.parametrize("mutation", MUTATIONS)
@settings(max_examples=3)
@given(project=projects())
def test_only_reviews_that_a_change_concerns_are_due_again(project, mutation):
    assert is_sound(project, mutation)


async def test_text_that_moves_from_one_file_to_the_next_is_reviewed_again(repo):
    repo.rule(strategy="matches_together", include=["*.py"])
    repo.write("a.py", "left")
    repo.write("b.py", "right")
    async with repo.reviewer() as agent:
        await agent.pass_all()
        assert "No review tasks to execute." in await agent.instructions()
        repo.write("a.py", "leftr")
        repo.write("b.py", "ight")
        assert "rule review of 2 files" in await agent.instructions()


async def test_two_rules_of_one_name_on_one_file_are_two_reviews(repo, review_ids):
    repo.rule(folder="src", include=["*.py"])
    repo.rule(include=["src/*.py"])
    repo.write("src/a.py")
    async with repo.reviewer() as agent:
        first_id, second_id = review_ids(await agent.instructions())
        await agent.text("mark_review_as_passed", review_id=first_id)
        assert review_ids(await agent.instructions()) == [second_id]


async def test_binary_files_are_reviewed_again_when_they_change(repo):
    repo.rule(include=["*.bin"])
    repo.write("a.bin", b"\0\xff1")
    async with repo.reviewer() as agent:
        await agent.pass_all()
        assert "left out" in await agent.instructions()
        repo.write("a.bin", b"\0\xff2")
        assert 'name: "rule review of a.bin"' in await agent.instructions()


async def test_a_file_that_cannot_be_read_never_counts_as_reviewed(repo):
    repo.rule(include=["pipe"])
    os.mkfifo(repo.root / "pipe")
    async with repo.reviewer() as agent:
        await agent.pass_all(files=["pipe"])
        assert 'name: "rule review of pipe"' in await agent.instructions(files=["pipe"])
