from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

import anyio
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepwork.api import open_context
from deepwork_review.cache import ReviewFolder
from deepwork_review.plan import issue, make_plan

pytestmark = pytest.mark.anyio

# A project as data: written to a folder, reviewed, changed in one thing, and looked at again.

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
        "names_told": draw(FLAGS),
        "unchanged_told": draw(FLAGS),
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
            "all_changed_filenames": project["names_told"],
            "unchanged_matching_files": project["unchanged_told"],
        },
    }
    if project["command"]:
        review["precomputed_info_for_reviewer_bash_command"] = "say.sh"
    match = {"include": project["include"], "exclude": project["exclude"], "deletions": project["deletions"]}
    other = {"strategy": "individual", "instructions": project["other_rule"]}
    rules = {
        project["name"]: {"description": project["description"], "match": match, "review": review},
        "other": {"description": "o", "match": {"include": ["*.rb"]}, "review": other},
    }
    home.mkdir(parents=True, exist_ok=True)
    (home / ".deepreview").write_text(project["head"] + yaml.safe_dump(rules, sort_keys=False))
    (home / "guide.md").write_text(project["guide"])
    (home / "say.sh").write_text('cat "$(dirname "$0")/said"\n')
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


def look(root, project):
    files = write(root, project)
    context = open_context("review", root)
    if project["command"]:
        anyio.run(partial(make_plan, context, files=files))  # what it asks for, the user trusts
        context.trust.grant(context.trust.refused())
    plan = anyio.run(partial(make_plan, context, files=files))
    issue(context, plan)
    return context, plan


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
    """All reviews are to be done again."""
    return True


def none(_project, _files):
    return False


def when(condition):
    """All of them, if the rule tells of what has changed."""
    return lambda project, _files: condition(project)


def its_own(project, files):
    """Those of the file that has changed."""
    return str(Path(project["folder"]) / first(project)) in files


def of_new_name(project, files):
    """Those of the file that is new, and those that are told all names."""
    return bool({name for name in files if name.endswith(("renamed.py", "zz.py"))}) or project["names_told"]


# What is changed, and which reviews have to be done again for that.
MUTATIONS = {
    "the rule's name": (edit("name", "renamed"), every),
    "its description": (edit("description", "e"), every),
    "its instructions": (edit("instructions", lambda text: f"{text} And more."), every),
    "blanks at their end": (edit("instructions", lambda text: f"{text} "), every),
    "an include": (edit("include", ["**/*.py", "**/*.zig"]), every),
    "an exclude": (edit("exclude", []), every),
    "whether deletions are told": (edit("deletions", lambda on: not on), every),
    "its strategy": (edit("strategy", lambda now: "matches_together" if now == "individual" else "individual"), every),
    "its agent": (edit("agent", {"claude": "another"}), every),
    "whether names are told": (edit("names_told", lambda on: not on), every),
    "whether unchanged files are told": (edit("unchanged_told", lambda on: not on), every),
    "a reference file added": (edit("references", [{"path": "guide.md"}, {"path": "said"}]), every),
    "a reference's description": (edit("references", [{"path": "guide.md", "description": "x"}]), every),
    "the rule's folder": (edit("folder", lambda now: "src/deeper" if now else "src"), every),
    "a command added or removed": (edit("command", lambda on: not on), every),
    "a reference file's content": (edit("guide", "guide!"), when(lambda project: project["references"])),
    "what the command prints": (edit("printed", "13\n"), when(lambda project: project["command"])),
    "an unchanged file's content": (edit("unchanged", "new"), when(lambda project: project["unchanged_told"])),
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
    """Have everything pass, change one thing, and see whether the right reviews are to be done again."""
    change, about = MUTATIONS[mutation]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        context, before = look(root, project)
        for review in before.reviews:
            ReviewFolder(context.workspace).mark(review.identity.review_id, "test", None)
        changed = copy.deepcopy(project)
        change(changed)
        for name in set(project["files"]) - set(changed["files"]):
            (root / project["folder"] / name).unlink()
        _, after = look(root, changed)
        again = [review for review in after.reviews if about(changed, review.material.paths)]
        assert before.reviews
        return [one.identity for one in after.open] == [one.identity for one in again]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(projects(), st.sampled_from(list(MUTATIONS)))
def test_what_matters_is_reviewed_again_and_nothing_else_is(project, mutation):
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
        one, other = review_ids(await agent.instructions())
        await agent.text("mark_review_as_passed", review_id=one)
        assert review_ids(await agent.instructions()) == [other]


async def test_binary_files_are_reviewed_again_when_they_change(repo):
    repo.rule(include=["*.bin"])
    repo.write("a.bin", b"\0\xff1")
    async with repo.reviewer() as agent:
        await agent.pass_all()
        assert "left out" in await agent.instructions()
        repo.write("a.bin", b"\0\xff2")
        assert 'name: "rule review of a.bin"' in await agent.instructions()


async def test_what_cannot_be_read_is_never_taken_for_reviewed(repo):
    repo.rule(include=["odd"])
    os.mkfifo(repo.root / "odd")
    async with repo.reviewer() as agent:
        await agent.pass_all(files=["odd"])
        assert 'name: "rule review of odd"' in await agent.instructions(files=["odd"])


async def test_a_pass_says_who_when_and_what_was_found(repo, review_ids):
    repo.rule(include=["*.py"])
    repo.write("a.py")
    async with repo.reviewer() as agent:
        (review_id,) = review_ids(await agent.instructions())
        told = await agent.text("mark_review_as_passed", review_id=review_id, summary="All fine")
        assert told == f"Review {review_id!r} is recorded as passed."
    record = json.loads((repo.state / "review_instructions" / f"{review_id}.passed").read_text())
    assert record["by"].startswith("mcp ")
    assert record["summary"] == "All fine"
    assert record["at"].endswith("+00:00")


BAD_IDS = ["", "..", ".", "/etc/passwd", "../x", "a\nb", "x" * 5000, "rule--a.py--000000000000", "a\0--000000000000"]


@pytest.mark.parametrize("review_id", BAD_IDS)
async def test_only_ids_that_were_issued_can_be_marked(repo, review_id):
    repo.rule(include=["*.py"])
    repo.write("a.py")
    await repo.ask()
    async with repo.reviewer() as agent:
        refused = await agent.refused("mark_review_as_passed", review_id=review_id)
    assert refused.startswith(f"no review {review_id[:100]!r} was issued here\n")
    assert not list(repo.state.rglob("*.passed"))


async def test_a_review_whose_file_has_changed_since_cannot_be_marked(repo, review_ids):
    repo.rule(include=["*.py"])
    repo.write("a.py")
    async with repo.reviewer() as agent:
        (review_id,) = review_ids(await agent.instructions())
        repo.write("a.py", "changed\n")
        refused = await agent.refused("mark_review_as_passed", review_id=review_id)
    assert refused.startswith(f"'a.py' has changed since review {review_id!r} was issued; nothing was recorded")


async def test_an_empty_pass_of_an_older_version_does_not_count(repo, review_ids):
    repo.rule(include=["*.py"])
    repo.write("a.py")
    (review_id,) = review_ids(await repo.ask())
    repo.write(f".deepwork/tmp/review_instructions/{review_id}.passed", "")
    assert review_ids(await repo.ask()) == [review_id]


async def test_agents_side_by_side_never_remove_each_others_instructions(repo, review_ids):
    repo.rule(include=["*.py"])
    for number in range(20):
        repo.write(f"{number}.py")
    answers = []

    async with repo.reviewer() as agent, anyio.create_task_group() as tasks:
        for number in range(10):

            async def ask(number=number):
                answers.append(await agent.instructions(files=[f"{number}.py", f"{number + 10}.py"]))

            tasks.start_soon(ask)
    for answer in answers:
        for review_id in review_ids(answer):
            text = (repo.state / "review_instructions" / f"{review_id}.md").read_text()
            assert f"`{review_id}`" in text
    assert len(list(repo.state.rglob("*.md"))) == 20


def test_old_instructions_are_removed_and_passes_kept(repo):
    folder = repo.state / "review_instructions"
    old, young = folder / "x--a--000000000000.md", folder / "x--b--000000000000.md"
    kept = folder / "x--a--000000000000.passed"
    for file in (old, young, kept):
        repo.write(file)
    for file in (old, kept):
        os.utime(file, (0, os.stat(file).st_mtime - 8 * 86400))
    assert repo.run("reviews", "clean").stdout == "1 files removed.\n"
    assert sorted(folder.iterdir()) == [kept, young]
    assert repo.run("reviews", "clean", "--older-than", "0", "--passes").stdout == "2 files removed.\n"


async def test_a_folder_that_is_a_link_out_of_the_project_is_refused_and_nothing_is_removed(repo, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.md").write_text("precious")
    os.utime(outside / "precious.md", (0, 0))
    repo.rule(include=["*.py"])
    repo.write("a.py")
    (repo.root / ".deepwork" / "tmp").mkdir(parents=True)
    (repo.root / ".deepwork" / "tmp" / "review_instructions").symlink_to(outside)
    assert "cannot be used" in await repo.refusal()
    assert os.listdir(outside) == ["precious.md"]


def test_why_tells_who_passed_a_review_and_what_has_changed_since(repo, review_ids):
    repo.rule(include=["*.py"])
    repo.rule("other", include=["*.md"])
    repo.write("a.py")
    assert "to be reviewed: it has never passed" in repo.run("reviews", "why", "a.py").stdout

    async def passes():
        async with repo.reviewer() as agent:
            for review_id in review_ids(await agent.instructions()):
                await agent.text("mark_review_as_passed", review_id=review_id, summary="Fine")

    anyio.run(passes)
    told = repo.run("reviews", "why", "a.py").stdout
    assert "rule review of a.py  (.deepreview:1)" in told
    assert ", and nothing has changed since: Fine" in told
    repo.write("a.py", "changed\n")
    assert "this has changed: files: a.py\n" in repo.run("reviews", "why", "a.py").stdout
    (repo.root / ".deepreview").write_text((repo.root / ".deepreview").read_text().replace("Look at rule", "Look"))
    assert "this has changed: files: a.py, rule: instructions\n" in repo.run("reviews", "why", "a.py").stdout


def test_why_tells_of_files_that_have_not_changed_or_that_no_rule_is_about(repo):
    repo.rule("docs", include=["*.md"])
    repo.write("a.py")
    told = repo.run("reviews", "why", "README.md").stdout
    assert told.startswith("README.md has not changed, compared with main (since ")
    assert "docs review of README.md" in told
    assert repo.run("reviews", "why", "a.py").stdout == "No rule applies to a.py.\n"
