from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio

GOOD = "good: {description: d, match: {include: ['*.py']}, review: {strategy: individual, instructions: i}}\n"


def rule(text="", match="", review=""):
    return f"""\
rule:
  description: d
{text}
  match:
    include: ["*.py"]
{match}
  review:
    strategy: individual
    instructions: i
{review}
"""


PROBLEMS = [
    ("[]", ":1: should be a mapping"),
    (GOOD + GOOD, ":2: key 'good' is used twice, first in line 1"),
    (rule(text="  colour: red"), ":3: rule: unknown key 'colour'; valid: description, match, review"),
    (rule(match="    excludes: []"), ":6: rule.match: unknown key 'excludes'; did you mean 'exclude'?"),
    (rule(review="    agnet: {}"), ":10: rule.review: unknown key 'agnet'; did you mean 'agent'?"),
    (rule().replace("individual", "each"), ":8: rule.review.strategy: should be 'individual', 'matches_tog"),
    (rule().replace('["*.py"]', "[]"), ":5: rule.match.include: should not be empty"),
    (rule(match="    exclude: ['{1..999}']"), ":6: rule.match.exclude[0]: has braces for more than 64 globs"),
    (
        rule().replace("description: d", f"description: {'d' * 257}"),
        ":2: rule.description: has 257 characters; at most 256 are allowed",
    ),
    (
        rule().replace("rule:", "my rule:"),
        ":1: my rule: string should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    (
        rule().replace("    instructions: i", "    instructions: {file: gone.md}"),
        ":9: the instructions file 'gone.md' do",
    ),
    (
        rule().replace("    instructions: i", "    instructions: {file: ../../x}"),
        ":9: the instructions file '../../x' l",
    ),
    (rule(review='    agent: {claude: "a\\nb"}'), ":10: rule.review.agent.claude: is not a name on one line"),
    ("rule: [", ":2: while parsing a flow node"),
    (b"rule: \xff", ":1: byte 0xff is not UTF-8"),
    ("a: " + "[" * 100_000, ":1: nested deeper than 64 levels"),
]


@pytest.mark.parametrize(("text", "problem"), PROBLEMS, ids=range(len(PROBLEMS)))
async def test_a_broken_file_is_reported_with_its_line_and_other_files_count(repo, text, problem):
    repo.write("src/.deepreview", text)
    repo.write(".deepreview", GOOD)
    repo.write("a.py")
    answer = await repo.ask()
    assert answer.startswith(f"WARNING: src/.deepreview{problem}")
    assert 'name: "good review of a.py"' in answer


async def test_if_all_files_are_broken_nothing_is_concluded(repo):
    repo.write(".deepreview", "nonsense")
    refused = await repo.refusal()
    assert refused.startswith("no rules could be read:\n- .deepreview:1: should be a mapping")


async def test_a_file_without_rules_is_not_an_error(repo):
    repo.write(".deepreview", "# later\n")
    assert await repo.ask() == "No .deepreview configuration files found."


async def test_a_rule_file_outside_of_the_project_is_reported(repo, tmp_path):
    (tmp_path / "outside").write_text(GOOD)
    (repo.root / ".deepreview").symlink_to(tmp_path / "outside")
    repo.write("a.py")
    assert ".deepreview: lies outside of the project" in await repo.refusal()


async def test_instructions_may_be_in_a_file_of_their_own(repo):
    repo.rule(folder="src", instructions={"file": "../guide.md"})
    repo.write("guide.md", "Read the guide.\n")
    repo.write("src/a.py")
    await repo.ask(files=["src/a.py"])
    (file,) = (repo.state / "review_instructions").glob("*.md")
    assert "## Review Instructions\n\nRead the guide.\n" in file.read_text()


async def test_configured_reviews_are_listed_with_their_lines_and_broken_files_among_them(repo):
    repo.rule("one", description="The first", include=["*.py"])
    repo.rule("two", include=["*.md"])
    repo.rule("deep", folder="src/deep", include=["*.py"])
    repo.write("lib/.deepreview", "nonsense")
    async with repo.reviewer() as agent:
        rules = await agent.configured()
        assert [(rule["name"], rule["defining_file"]) for rule in rules] == [
            ("deep", "src/deep/.deepreview:1"),
            ("one", ".deepreview:1"),
            ("two", ".deepreview:9"),
            ("PARSE_ERROR:lib/.deepreview", "lib/.deepreview"),
        ]
        assert rules[1]["description"] == "The first"
        matching = await agent.configured(only_rules_matching_files=["src/deep/x.py", "y.md"])
        assert [rule["name"] for rule in matching] == ["deep", "two", "PARSE_ERROR:lib/.deepreview"]


async def test_without_rules_the_list_is_empty(repo):
    async with repo.reviewer() as agent:
        assert await agent.configured() == []


def test_doctor_reports_broken_rules(repo):
    repo.write(".deepreview", "nonsense")
    completed = repo.run("doctor")
    assert completed.returncode == 1
    assert "✗ .deepreview:1: should be a mapping" in completed.stdout
