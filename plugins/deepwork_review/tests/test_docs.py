from __future__ import annotations

import re
from pathlib import Path

import pytest

from deepwork_review.cli import review, reviews
from deepwork_review.discover import SKIPPED
from deepwork_review.rules import BrokenFile, RuleFile, read_rules

ROOT = Path(__file__).parents[3]
PAGES = ["plugins/deepwork_review/README.md", "docs/how-to/review-rules-for-a-monorepo.md"]
REFERENCE = (ROOT / "docs/reference/reviews.md").read_text()


def keys(schema, at=""):
    for name, part in schema.get("properties", {}).items():
        yield name
        yield from keys(part)
    for part in schema.get("$defs", {}).values():
        yield from keys(part)


@pytest.mark.parametrize("page", PAGES)
def test_every_rule_that_is_shown_is_valid(page, tmp_path):
    for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)):
        if "plugins:" not in text:
            for name in re.findall(r"review/\w+\.md", text):
                (tmp_path / name).parent.mkdir(exist_ok=True)
                (tmp_path / name).write_text("text")
            (tmp_path / f"{number}").write_text(text)
            rules = read_rules(tmp_path, f"{number}")
            assert not isinstance(rules, BrokenFile), rules


def test_every_key_of_the_file_is_in_the_reference():
    missing = [
        key for key in set(keys(RuleFile.model_json_schema())) if not re.search(rf"[`.{{ ]{key}[`?:,.}}]", REFERENCE)
    ]
    assert not missing


def test_every_command_option_and_skipped_folder_is_in_the_reference():
    names = [f"deepwork reviews {name}" for name in reviews.commands]
    commands = (review, *reviews.commands.values())
    options = [option for command in commands for parameter in command.params for option in parameter.opts]
    folders = SKIPPED - {".git", ".mypy_cache", ".pytest_cache", ".ruff_cache"}  # "tools' caches"
    for text in [*names, *(option for option in options if option.startswith("--")), *folders]:
        assert text in REFERENCE
