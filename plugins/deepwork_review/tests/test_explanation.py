from __future__ import annotations

import anyio


def test_why_shows_who_passed_a_review_and_what_has_changed_since(repo, review_ids):
    repo.rule(include=["*.py"])
    repo.rule("other", include=["*.md"])
    repo.write("a.py")
    assert "to be reviewed: it has never passed" in repo.run("reviews", "why", "a.py").stdout

    async def passes():
        async with repo.reviewer() as agent:
            for review_id in review_ids(await agent.instructions()):
                await agent.text("mark_review_as_passed", review_id=review_id, summary="Fine")

    anyio.run(passes)
    output = repo.run("reviews", "why", "a.py").stdout
    assert "rule review of a.py  (.deepreview:1)" in output
    assert ", and nothing has changed since: Fine" in output
    repo.write("a.py", "changed\n")
    assert "this has changed: files: a.py\n" in repo.run("reviews", "why", "a.py").stdout
    (repo.root / ".deepreview").write_text((repo.root / ".deepreview").read_text().replace("Look at rule", "Look"))
    assert "this has changed: files: a.py, rule: instructions\n" in repo.run("reviews", "why", "a.py").stdout


def test_why_answers_for_unchanged_files_and_for_files_without_a_rule(repo):
    repo.rule("docs", include=["*.md"])
    repo.write("a.py")
    output = repo.run("reviews", "why", "README.md").stdout
    assert output.startswith("README.md has not changed, compared with main (since ")
    assert "docs review of README.md" in output
    assert repo.run("reviews", "why", "a.py").stdout == "No rule applies to a.py.\n"
