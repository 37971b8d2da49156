"""Threat T23: the server's own description changes after its users have agreed to it."""

from __future__ import annotations

import hashlib
import json

import pytest

from deepwork.testing import StdioWire, step

METHODS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]


@pytest.fixture
def self_description(serve):
    """Start a server, and give the digest and the text of everything that it says of itself."""

    def describe(mode, *arguments, **environment):
        wire = StdioWire(serve(*arguments, **environment), mode=mode)
        wire.greet()
        for method in METHODS:
            wire.ask(method)
        assert wire.close() == 0
        text = json.dumps([json.loads(line)["result"] for line in wire.lines])  # in the order in which it came
        return hashlib.sha256(text.encode()).hexdigest(), text

    return describe


@pytest.mark.slow
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_what_the_server_says_of_itself_is_the_same_at_every_start_whatever_the_project_holds(
    project, self_description, era
):
    digests = {self_description(era, PYTHONHASHSEED="1")[0]}
    for seed, order in (("2", "abc"), ("3", "cab"), ("4", "bca")):
        for name in order:
            project.write_job(f"job_{name}", [step(name)])
        digests.add(self_description(era, PYTHONHASHSEED=seed)[0])
    assert len(digests) == 1


def test_no_word_of_the_project_stands_in_it(project, self_description):
    mark = "WORD-OF-THE-PROJECT"
    project.write_job(mark.lower(), [step("a", name=mark, description=mark)], summary=mark)
    project.write(".deepwork/jobs/broken/job.yml", f"{mark}: [")
    project.write("CLAUDE.md", mark)
    project.write("README.md", mark)
    _, text = self_description("modern")
    assert mark not in text.upper()
    assert str(project.root) not in text


def test_the_digest_would_notice_another_tool(self_description, install):
    before = self_description("modern")[0]
    install("good")
    assert self_description("modern")[0] != before
