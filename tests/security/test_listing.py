"""Threat T23: what the server says of itself changes under the feet of those who have agreed to it."""

from __future__ import annotations

import hashlib
import json

import pytest

from deepwork.testing import step

ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
METHODS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]


def request(request_id, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}) + "\n"


@pytest.fixture
def said(serve):
    """Start a server, and give the digest and the text of everything that it says of itself."""

    def said(era, *arguments, **environment):
        params = {"_meta": ENVELOPE} if era == "modern" else {}
        opening = ("server/discover", params) if era == "modern" else ("initialize", HELLO)
        process = serve(*arguments, **environment)
        frames = [request(0, *opening), *(request(number, method, params) for number, method in enumerate(METHODS, 1))]
        out, _ = process.communicate("".join(frames), timeout=30)
        answers = sorted(map(json.loads, out.splitlines()), key=lambda answer: answer["id"])
        assert [answer["id"] for answer in answers] == list(range(len(frames)))
        assert all("result" in answer for answer in answers)
        text = json.dumps([answer["result"] for answer in answers])  # in the order in which it came
        return hashlib.sha256(text.encode()).hexdigest(), text

    return said


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_what_the_server_says_of_itself_is_the_same_at_every_start_whatever_the_project_holds(project, said, era):
    digests = {said(era, PYTHONHASHSEED="1")[0]}
    for seed, order in (("2", "abc"), ("3", "cab"), ("4", "bca")):
        for name in order:
            project.write_job(f"job_{name}", [step(name)])
        digests.add(said(era, PYTHONHASHSEED=seed)[0])
    assert len(digests) == 1


def test_no_word_of_the_project_stands_in_it(project, said):
    mark = "WORD-OF-THE-PROJECT"
    project.write_job(mark.lower(), [step("a", name=mark, description=mark)], summary=mark)
    project.write(".deepwork/jobs/broken/job.yml", f"{mark}: [")
    project.write("CLAUDE.md", mark)
    project.write("README.md", mark)
    _, text = said("modern")
    assert mark not in text.upper()
    assert str(project.root) not in text


def test_the_digest_would_notice_another_tool(said, install):
    before = said("modern")[0]
    install("good")
    assert said("modern")[0] != before
