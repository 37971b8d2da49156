"""Programs that print SARIF, as linters do: a result of level error refuses, none passes."""

from __future__ import annotations

import json
import os
import sys

import pytest

from deepwork.paths.user_folders import user_config_file

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


@pytest.fixture
def finished(reviewed):
    """Report work that a program judges by printing this text and ending with this code."""

    async def report(printed, code=0):
        text = printed if isinstance(printed, str) else json.dumps(printed)
        program = f"import sys; sys.stdout.write({text!r}); sys.exit({code})"
        file = user_config_file(os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        command = {"run": [sys.executable, "-IS", "-c", program], "verdict": "sarif"}
        file.write_text(json.dumps({"quality_gate": {"commands": {"lint": command}}}))
        reviewed.write("a.md", "one\ntwo\nthree\n")
        async with reviewed.agent(external_runner="lint") as agent:
            await agent.start()
            return await agent.finish(DONE)

    return report


def log(*results, **run):
    return {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "lint"}}, "results": [*results], **run}]}


def result(level=None, line=2, uri="a.md", **more):
    region = {"region": {"startLine": line}} if line else {}
    place = {"physicalLocation": {"artifactLocation": {"uri": uri}, **region}}
    levels = {"level": level} if level else {}
    return {"ruleId": "L1", "message": {"text": "Too long"}, "locations": [place], **levels, **more}


async def test_a_result_of_level_error_refuses_and_is_a_finding_at_its_line(finished):
    reply = await finished(log(result("error")), code=1)
    [failed] = reply["failed_reviews"]
    assert failed["findings"] == [
        {"file": "a.md", "line": 2, "criterion": "Good", "message": "Too long (L1)", "level": "error"}
    ]
    assert reply["feedback"] == "a.md:2: error: Too long (L1)"


@pytest.mark.parametrize(
    "results",
    [
        [],
        [result("warning"), result("note")],
        [result()],
        [result("none")],
        [result("error", kind="pass")],
        [result("error", suppressions=[{"kind": "inSource"}])],
    ],
    ids=["nothing", "warnings", "the default level", "none", "a pass", "suppressed"],
)
@pytest.mark.parametrize("code", [0, 1])
async def test_without_an_open_error_the_work_passes_however_the_program_ends(finished, results, code):
    assert (await finished(log(*results), code=code))["status"] == "next_step"


async def test_warnings_of_work_that_passed_are_kept(finished, history):
    await finished(log(result("warning")))
    assert [finding["level"] for finding in history("verdict")[0]["findings"]] == ["warning"]


async def test_the_level_may_be_that_of_the_rule(finished):
    rules = [{"id": "L1", "defaultConfiguration": {"level": "error"}}]
    tool = {"driver": {"name": "lint", "rules": rules}}
    assert (await finished(log(result(), tool=tool)))["status"] == "needs_work"


@pytest.mark.parametrize("status", ["underReview", "rejected"])
async def test_a_suppression_that_nobody_has_accepted_suppresses_nothing(finished, status):
    suppressed = result("error", suppressions=[{"kind": "external", "status": status}])
    assert (await finished(log(suppressed)))["status"] == "needs_work"


async def test_files_may_be_named_by_a_base_and_escaped(finished, reviewed):
    root = {"originalUriBaseIds": {"ROOT": {"uri": f"{reviewed.root.as_uri()}/"}}}
    place = {"artifactLocation": {"uri": "%61.md", "uriBaseId": "ROOT"}, "region": {"startLine": 3, "endLine": 3}}
    reply = await finished(log(result("error", locations=[{"physicalLocation": place}]), **root))
    assert [(finding["file"], finding["line"]) for finding in reply["failed_reviews"][0]["findings"]] == [("a.md", 3)]


async def test_an_error_without_a_place_refuses_too(finished):
    reply = await finished(log(result("error", locations=[])))
    assert reply["feedback"] == "Too long (L1)"
    assert "findings" not in reply["failed_reviews"][0]


@pytest.mark.parametrize(
    ("printed", "code", "why"),
    [
        ("", 0, "printed no SARIF: nothing"),
        ("All good!", 0, "printed no SARIF: All good!"),
        ("[1]", 0, "not a SARIF 2.1.0 log"),
        ({"version": "2.0.0", "runs": log()["runs"]}, 0, "not a SARIF 2.1.0 log"),
        ({"version": "2.1.0", "runs": []}, 0, "not a SARIF 2.1.0 log with a run"),
        ({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "lint"}}}]}, 0, "has no `results`"),
        (log(invocations=[{"executionSuccessful": False}]), 0, "could not do its work"),
        (log(), 2, "ended with code 2"),
        (log(), 139, "ended with code 139"),
    ],
)
async def test_no_sarif_is_no_verdict(finished, history, printed, code, why):
    reply = await finished(printed, code)
    assert why in reply["feedback"]
    assert history("verdict") == []
    assert len(history("attempt_given_back")) == 1
