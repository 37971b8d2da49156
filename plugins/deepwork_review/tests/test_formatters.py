"""Lists of reviews, as the platform of an agent reads them."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_tasks_are_written_as_claude_reads_them(repo, review_ids):
    repo.rule("style", folder="src", include=["*.py"], agent={"claude": "python-expert"})
    repo.rule("docs", strategy="matches_together", include=["*.md"])
    repo.write("src/a.py")
    repo.write("b.md")
    repo.write("c.md")
    answer = await repo.ask()
    style, docs = review_ids(answer)
    assert answer == (
        "Invoke the following list of Tasks in parallel:\n"
        "\n"
        'name: "src/style review of src/a.py"\n'
        "\tdescription: Review src/style\n"
        "\tsubagent_type: python-expert\n"
        f'\tprompt: "@.deepwork/tmp/review_instructions/{style}.md"\n'
        "\n"
        'name: "docs review of 2 files"\n'
        "\tdescription: Review docs\n"
        "\tsubagent_type: general-purpose\n"
        f'\tprompt: "@.deepwork/tmp/review_instructions/{docs}.md"\n'
    )


async def test_the_generic_format_has_the_same_fields_and_no_hosts_words(repo, review_ids):
    repo.rule("style", include=["*.py"], agent={"claude": "python-expert"})
    repo.write("a.py")
    async with repo.reviewer(platform="generic") as agent:
        answer = await agent.instructions()
    (review_id,) = review_ids(answer)
    assert answer == (
        "Have each of these reviews done by a reviewer of its own, in parallel where you can:\n"
        "\n"
        'name: "style review of a.py"\n'
        "\tdescription: Review style\n"
        "\tsubagent_type: reviewer\n"
        f'\tprompt: "Follow the instructions in .deepwork/tmp/review_instructions/{review_id}.md"\n'
    )


async def test_an_unknown_platform_lists_those_that_are_supported(repo):
    repo.rule()
    async with repo.reviewer(platform="emacs") as agent:
        refused = await agent.refused("get_review_instructions")
    assert refused == "reviews are not written for platform 'emacs'\nSupported: claude, generic."
