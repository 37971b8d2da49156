"""`deepwork inbox review` and comments in a file: what a person writes in an editor becomes comments on lines."""

from __future__ import annotations

import json
import os
import time
from hashlib import sha256

import anyio
import pytest

from deepwork.api import Answerer, project_at
from deepwork.builtin.people.comments_file import read_text
from deepwork.errors import ArgumentError
from deepwork.paths.contents import Contents
from deepwork.paths.user_folders import user_state_dir
from deepwork.testing import review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}
WRITTEN = """\
Good on the whole
# this is left out
a.md:2 must Why two?
    and why here
a.md:1-2 could: One line
```suggestion
# One and two
```
other.md:1 is no file of this work
"""


@pytest.fixture
async def waits(project):
    """A project whose step `a` waits for a person, with its agent."""
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md", "One\nTwo\x1b[31m\n")
    async with project.agent(external_runner="person") as agent:
        agent.session_id = (await agent.start())["session_id"]
        await agent.finish(DONE)
        yield agent


@pytest.fixture
def editor(monkeypatch, tmp_path):
    """Have the user's editor write a text."""

    def write(text):
        (tmp_path / "written").write_text(text)
        script = tmp_path / "editor"
        script.write_text(f'#!/bin/sh\ncp "{tmp_path}/written" "$1"\ntouch -d "1 minute" "$1"\n')
        script.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(script))
        monkeypatch.setenv("VISUAL", str(script))
        monkeypatch.setenv("PAGER", "cat")

    return write


def test_what_is_written_is_comments_and_what_was_said_of_the_whole():
    answer = read_text(WRITTEN, ["a.md"])
    assert answer.text == "Good on the whole"
    assert answer.comments == [
        {"file": "a.md", "line": 2, "text": "Why two?\n    and why here", "must": True},
        {
            "file": "a.md",
            "line": 1,
            "end_line": 2,
            "text": "One line\nother.md:1 is no file of this work",
            "must": False,
            "suggestion": "# One and two\n",
        },
    ]


@pytest.mark.parametrize("text", ["```suggestion\nx\n```\n", "a.md:1 No\n```suggestion\nx\n"])
def test_a_suggestion_without_a_comment_or_an_end_is_refused(text):
    with pytest.raises(ArgumentError, match="line "):
        read_text(text, ["a.md"])


async def test_a_person_reads_the_work_and_comments_on_it_in_their_editor(waits, at_terminal, editor):
    editor(WRITTEN)
    output, code = await at_terminal("inbox", "review", waits.session_id)
    assert code == 0, output
    assert "     1  One\n     2  Two\\x1b[31m\n" in output
    reply = await waits.finish(DONE)
    assert "Good on the whole" in reply["feedback"]
    assert [comment["line"] for comment in reply["comments"]] == [2, 1]
    assert "+# One and two" in reply["comments"][1]["suggestion"]


async def test_an_empty_file_changes_nothing(waits, at_terminal, editor, stored):
    editor("# nothing\n\n")
    before = stored()
    output, code = await at_terminal("inbox", "review", waits.session_id)
    assert (code, "nothing was changed" in output) == (0, True)
    assert stored() == before


async def test_what_was_written_in_vain_is_kept(waits, at_terminal, editor):
    editor("a.md:9 No\n")
    output, code = await at_terminal("inbox", "review", waits.session_id)
    assert code == 1
    assert "is not in attempt 1" in output
    draft = anyio.Path(next(word for word in output.split() if "review-" in word).rstrip("."))
    assert await draft.read_text() == "a.md:9 No\n"
    await draft.unlink()


async def test_what_cannot_be_read_as_comments_is_kept_too(waits, at_terminal, editor):
    written = "a.md:2 Two?\n```suggestion\nThree\n"
    editor(written)
    output, code = await at_terminal("inbox", "review", waits.session_id)
    assert code == 1
    assert "does not end with" in output
    draft = anyio.Path(next(word for word in output.split() if "review-" in word).rstrip("."))
    assert await draft.read_text() == written
    await draft.unlink()


async def test_what_looks_like_secrets_is_not_on_the_screen(project, at_terminal, editor):
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md", "api_key = 'abcdefgh1234'\n")
    async with project.agent(external_runner="person") as agent:
        session_id = (await agent.start())["session_id"]
        await agent.finish(DONE)
        editor("a.md:1 must Take it out\n")
        output, code = await at_terminal("inbox", "review", session_id)
        assert code == 0
        assert "looks as if it held secrets" in output
        assert "abcdefgh1234" not in output
        assert [comment["line"] for comment in (await agent.finish(DONE))["comments"]] == [1]


@pytest.mark.parametrize(("replacement", "new"), [("", []), ("\n", ["+"]), ("Three\n\n", ["+Three", "+"])])
async def test_a_replacement_may_be_nothing_or_end_in_empty_lines(waits, at_terminal, editor, replacement, new):
    editor(f"a.md:1\n```suggestion\n{replacement}```\n")
    await at_terminal("inbox", "review", waits.session_id)
    [comment] = (await waits.finish(DONE))["comments"]
    assert [line for line in comment["suggestion"].splitlines()[3:] if line[0] == "+"] == new


@pytest.mark.parametrize("as_json", [True, False])
async def test_an_answer_takes_comments_of_a_file(waits, at_terminal, tmp_path, as_json):
    comments = [{"file": "a.md", "line": 2, "text": "Why two?", "must": True}]
    file = tmp_path / "comments"
    file.write_text(json.dumps(comments) if as_json else "a.md:2 must Why two?\n")
    output, code = await at_terminal("inbox", "answer", waits.session_id, "changes", "--comments", str(file))
    assert code == 0, output
    assert (await waits.finish(DONE))["comments"][0]["text"] == "Why two?"


async def test_no_program_reviews(waits, deepwork, editor):
    editor(WRITTEN)
    assert "Only a person may review" in await deepwork("inbox", "review", waits.session_id, code=1)


@pytest.fixture
async def commented(waits, at_terminal, editor, project):
    editor("a.md:1 must %One,\n::error::two\na.md:2 could Two?\n")
    await at_terminal("inbox", "review", waits.session_id)
    project.write("a.md", "Zero\nOne\nTwo\x1b[31m\n")
    await waits.finish(DONE, notes="c1: I will")
    return waits.session_id


async def test_open_comments_are_printed_at_their_places_in_the_newest_attempt(commented, run):
    github = run("gate", "comments", commented, "--format", "github").stdout
    assert github == "::error file=a.md,line=2::%25One,%0A::error::two\n::notice file=a.md,line=3::Two?\n"
    sarif = json.loads(run("gate", "comments", commented, "a", "--format", "sarif").stdout)
    results = sarif["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"]["region"]["startLine"] for result in results]
    assert ([result["level"] for result in results], places) == (["error", "warning"], [2, 3])
    assert "- [ ] `a.md:3` c2, could: Two?\n" in run("gate", "comments", commented).stdout


async def test_a_comment_whose_line_is_gone_has_no_line(waits, at_terminal, editor, project, run):
    editor("a.md:2 Two?\n")
    await at_terminal("inbox", "review", waits.session_id)
    project.write("a.md", "One\n")
    await waits.finish(DONE)
    github = run("gate", "comments", waits.session_id, "--format", "github").stdout
    assert github == "::notice file=a.md::Two? (outdated)\n"


async def test_contents_are_kept_for_their_owner_and_removed_once_no_open_step_needs_them(
    waits, project, run, at_terminal
):
    [file] = user_state_dir(os.environ).glob("attempts/*/*")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    os.utime(file, (0, 0))
    assert run("gate", "prune").stdout == "0 files removed\n"  # the step is open
    await at_terminal("inbox", "answer", waits.session_id, "pass")
    await waits.finish(DONE)
    os.utime(file, (time.time(), time.time()))
    assert run("gate", "prune").stdout == "0 files removed\n"  # it is new
    assert json.loads(run("gate", "prune", "--older-than", "0", "--json").stdout) == {"removed": 1}
    assert not file.exists()


async def save_draft(project, session_id):
    """Write as a person does on the page of the step `a`, long ago; gives the file."""
    pages = project_at(project.root)
    by = Answerer(principal="local", client="dashboard")
    await pages.pieces().save_draft(session_id, "a", 0, by, {"text": "Hm"})
    await pages.close()
    [file] = user_state_dir(os.environ).glob("drafts/*/*")
    os.utime(file, (0, 0))
    return file


async def test_an_old_draft_goes_once_its_step_is_over(waits, project, run, at_terminal):
    file = await save_draft(project, waits.session_id)
    assert run("gate", "prune").stdout == "0 files removed\n"
    await at_terminal("inbox", "answer", waits.session_id, "pass")
    await waits.finish(DONE)
    assert run("gate", "prune").stdout == "1 file removed\n"
    assert not file.exists()


async def test_old_files_go_by_themselves_and_those_of_open_steps_stay(waits, project):
    draft = await save_draft(project, waits.session_id)
    [attempt] = user_state_dir(os.environ).glob("attempts/*/*")
    old, old_draft = attempt.with_name("0" * 64), draft.with_name(f"{'0' * 64}.json")
    for file in (old, old_draft):
        file.write_text("of a step that is over")
    for file in (attempt, old, old_draft):
        os.utime(file, (0, 0))
    project.write("a.md", "Other work\n")
    async with project.agent(external_runner="person") as agent:  # a server looks once an hour
        await agent.finish(DONE, session_id=waits.session_id)
    assert [file.exists() for file in (old, old_draft, attempt, draft)] == [False, False, True, True]


def test_of_too_many_contents_the_oldest_go_and_none_that_are_needed(tmp_path):
    contents, digests = Contents(tmp_path / "state", tmp_path), []
    for number in range(4):
        source = tmp_path / f"{number}"
        source.write_bytes(b"%d" % number * 100)
        digests.append(f"sha256:{sha256(source.read_bytes()).hexdigest()}")
        assert contents.keep(digests[-1], source)
        [file] = (tmp_path / "state").rglob(digests[-1].removeprefix("sha256:"))
        os.utime(file, (time.time() - 100 + number,) * 2)
    assert contents.prune({digests[0]}, total=250) == 2
    assert [contents.read(digest) is not None for digest in digests] == [True, False, False, True]


def test_a_content_that_is_no_longer_what_its_name_says_is_none(tmp_path):
    contents, source = Contents(tmp_path / "state", tmp_path), tmp_path / "a"
    source.write_bytes(b"a")
    digest = f"sha256:{sha256(b'a').hexdigest()}"
    assert contents.keep(digest, source)
    [file] = (tmp_path / "state").rglob(digest.removeprefix("sha256:"))
    file.write_bytes(b"b")
    assert contents.read(digest) is None
    assert contents.read("sha256:../../etc/passwd") is None


async def test_commands_say_that_the_step_waits_for_a_review_and_trying_the_gate_asks_nobody(waits, run):
    listed = run("inbox").stdout
    assert "waits for your review" in listed
    assert "Tell your user" not in listed  # that is for the agent
    assert f"a person was asked, sessions:{waits.session_id}.a" in run("gate", "show", waits.session_id).stdout
    tried = run("gate", "try", "demo", "a", "--file", "a.md", "--runner", "person")
    assert tried.returncode == 1
    assert "not judged" in tried.stdout
    assert "nobody was asked" in tried.stdout
