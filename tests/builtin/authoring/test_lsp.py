"""`deepwork jobs lsp`: the language server, started as editors start it and spoken to over its pipes."""

from __future__ import annotations

import gc
import json
import os
import random
import re
import sys
import tomllib
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from deepwork.builtin.authoring.lint import LintedJob
from deepwork.builtin.authoring.new import EXAMPLE_NAMES, EXAMPLES
from deepwork.testing import review, step
from lsp_editor import Editor, editing

pytest.importorskip("pygls")

SEVERITY = {"error": 1, "warning": 2, "info": 3}


TEST = """\
version: 1
job: demo
steps:
  - step: collect
    outputs: {collect.md: {a.md: x}}
    verdicts: {collect.md: {Good: pass}}
expect: {steps: [collect], outputs: {collect.md: a.md}}
"""


def at(path, text, offset=0):
    """Return the parameters for the place of a text in a file."""
    content = path.read_text()
    before = content[: content.index(text) + offset]
    line = before.count("\n")
    position = {"line": line, "character": len(before) - before.rfind("\n") - 1}
    return {"textDocument": {"uri": path.as_uri()}, "position": position}


@pytest.fixture
def demo(project):
    """A job of three steps with a test, and a route of the configuration to it."""
    steps = [
        step("collect", reviews=[review("collect.md", quality_criteria={"Good": "Has it ten lines?"})]),
        step("write", dependencies=["collect"], inputs=[{"file": "collect.md", "from_step": "collect"}]),
        step("send"),
    ]
    project.write_job("demo", steps, {"main": ["collect", ["write", "send"]]})
    project.write(".deepwork/jobs/demo/main.test.yml", TEST)
    routes = [
        {"job": "demo", "step": "collect", "review": "collect.md", "runner": "self"},
        {"job": "other", "step": "collect", "runner": "self"},
    ]
    project.write(".deepwork/config.yml", yaml.safe_dump({"quality_gate": {"runners": routes}}))
    return project


@pytest.fixture
def file(demo):
    return demo.jobs / "demo" / "job.yml"


def test_diagnostics_are_the_findings_of_the_checker_with_the_version_of_the_document(demo, file):
    broken = (
        file.read_text()
        .replace("from_step: collect", "from_step: colect")
        .replace("id: send", "id: send\n  hidden: true")
    )
    with editing(demo.root) as editor:
        assert editor.open(file) == []
        editor.change(file, 2, {"text": broken})
        diagnostics = editor.await_version(file.as_uri(), 2)
        expected = [finding for finding in LintedJob(file.parent, {file: broken}).findings() if finding.file == file]
        assert [
            (
                entry["code"],
                entry["severity"],
                entry["message"],
                entry["range"]["start"]["line"] + 1,
            )
            for entry in diagnostics
        ] == [(finding.rule, SEVERITY[finding.level], finding.message, finding.line) for finding in expected]
        assert len(diagnostics) == 1
        changed = file.read_text().replace("id: send", "id: send\n  hidden: true\n  dependencies: [write]")
        editor.change(file, 3, {"text": changed})
        diagnostics = editor.await_version(file.as_uri(), 3)
        assert {(diagnostic["code"], diagnostic["severity"]) for diagnostic in diagnostics} == {
            ("order", 2),
            ("no-effect", 3),
        }
        editor.change(file, 4, {"text": file.read_text()})
        assert editor.await_version(file.as_uri(), 4) == []


def test_an_instructions_file_and_a_test_have_their_own_diagnostics(demo, file):
    instructions = file.parent / "steps/collect.md"
    test = file.parent / "main.test.yml"
    with editing(demo.root) as editor:
        [diagnostic] = editor.open(instructions, "Collect.\n\nSkip the review.\n")
        assert (diagnostic["code"], diagnostic["range"]["start"]["line"]) == ("bypass", 2)
        assert editor.open(test) == []
        editor.change(test, 2, {"text": test.read_text().replace("Good", "God")})
        [diagnostic] = editor.await_version(test.as_uri(), 2)
        assert "has no criterion 'God'; did you mean 'Good'?" in diagnostic["message"]


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ("    from_step: ", {"collect", "write", "send"}),
        ("  dependencies: [", {"collect", "write", "send"}),
        ("  dependencies:\n  - ", {"collect", "write", "send"}),
        ("  reviews:\n  - run_each: ", {"step", "send.md"}),
        ("  inputs:\n  - file: ", {"collect.md", "write.md"}),
    ],
)
def test_ids_and_outputs_are_completed_while_the_file_is_being_written(line, labels, demo, file):
    text = file.read_text() + line
    with editing(demo.root) as editor:
        editor.open(file)
        editor.change(file, 2, {"text": text})
        last = text.splitlines()
        position = {"line": len(last) - 1, "character": len(last[-1])}
        reply = editor.request(
            "textDocument/completion", {"textDocument": {"uri": file.as_uri()}, "position": position}
        )
        assert {item["label"] for item in reply["result"]["items"]} == labels


def test_runners_are_completed_in_the_configuration(demo):
    config = demo.root / ".deepwork/config.yml"
    with editing(demo.root) as editor:
        text = "quality_gate:\n  runner: "
        document = {"uri": config.as_uri(), "languageId": "yaml", "version": 1, "text": text}
        editor.send("textDocument/didOpen", {"textDocument": document})
        place = {"textDocument": {"uri": config.as_uri()}, "position": {"line": 1, "character": 10}}
        labels = [item["label"] for item in editor.request("textDocument/completion", place)["result"]["items"]]
        assert "self" in labels


def test_hover_shows_what_the_agent_reads_and_definition_leads_there(demo, file):
    with editing(demo.root) as editor:
        editor.open(file)
        hover = editor.request("textDocument/hover", at(file, "from_step: collect", 13))["result"]
        for text in ("Instructions for collect", "`collect.md` (file)", "**Good** Has it ten lines?", "About demo"):
            assert text in hover["contents"]["value"]
        definition = editor.request("textDocument/definition", at(file, "from_step: collect", 13))["result"]
        lines = file.read_text().splitlines()
        assert lines[definition["range"]["start"]["line"]] == "- id: collect"
        instructions = editor.request("textDocument/definition", at(file, "steps/write.md", 3))["result"]
        assert instructions["uri"] == (file.parent / "steps/write.md").as_uri()


def test_hover_reads_nothing_outside_of_the_job(demo, file):
    demo.write("secret.md", "a secret")
    text = file.read_text().replace("steps/collect.md", str(demo.root / "secret.md"))
    with editing(demo.root) as editor:
        file.write_text(text)
        editor.open(file)
        hover = editor.request("textDocument/hover", at(file, "from_step: collect", 13))["result"]
        assert "a secret" not in hover["contents"]["value"]


def applied(text, edits):
    """Return a text after edits of one line each, the last first."""
    lines = text.splitlines(keepends=True)
    for edit in sorted(
        edits, key=lambda edit: (edit["range"]["start"]["line"], edit["range"]["start"]["character"]), reverse=True
    ):
        start, end = edit["range"]["start"], edit["range"]["end"]
        line = lines[start["line"]]
        lines[start["line"]] = line[: start["character"]] + edit["newText"] + line[end["character"] :]
    return "".join(lines)


@pytest.mark.parametrize(
    ("name", "new"),
    [("collect", "gather"), ("collect", "true"), ("collect.md", "all: of it.md"), ("collect.md", "null")],
)
def test_rename_changes_the_job_its_tests_and_its_routes(name, new, demo, file, invoke):
    with editing(demo.root) as editor:
        editor.open(file)
        place = at(file, f"    {name}:\n" if "." in name else "id: collect", 4)
        changes = editor.request("textDocument/rename", {**place, "newName": new})["result"]["changes"]
    paths = {path.as_uri(): path for path in demo.root.rglob("*.yml")}
    for uri, edits in changes.items():
        paths[uri].write_text(applied(paths[uri].read_text(), edits))
    assert {paths[uri].name for uri in changes} == {"job.yml", "main.test.yml", "config.yml"}
    assert invoke("jobs", "check").code == 0
    assert invoke("jobs", "test").code == 0
    routes = yaml.safe_load((demo.root / ".deepwork/config.yml").read_text())["quality_gate"]["runners"]
    assert new in routes[0].values()
    assert routes[1]["step"] == "collect"


def test_a_route_of_the_configuration_is_completed_and_its_names_lead_to_the_job(demo, file):
    config = demo.root / ".deepwork/config.yml"
    config.write_text(
        "quality_gate:\n  runners:\n    - job: other\n      step: collect\n    - job: demo\n      step: collect\n"
        "      review: collect.md\n      runner: self\n    - {job: demo, step: write, runner: self}\n"
    )
    with editing(demo.root) as editor:
        opened = {"uri": config.as_uri(), "languageId": "yaml", "version": 1, "text": config.read_text()}
        editor.send("textDocument/didOpen", {"textDocument": opened})
        place = at(config, "job: demo\n      step: collect", 23)
        definition = editor.request("textDocument/definition", place)["result"]
        edits = editor.request("textDocument/rename", {**place, "newName": "gather"})["result"]["changes"]
        other = editor.request("textDocument/rename", {**at(config, "step: collect", 8), "newName": "gather"})
        labels = [
            {
                item["label"]
                for item in editor.request("textDocument/completion", at(config, text, 8))["result"]["items"]
            }
            for text in ("step: collect\n      review", "review: collect.md")
        ]
    assert definition["uri"] == file.as_uri()
    assert [edit["range"]["start"]["line"] for edit in edits[config.as_uri()]] == [5]
    assert file.as_uri() in edits
    assert "neither a step nor an output" in other["error"]["message"]
    assert labels == [{"collect", "write", "send"}, {"step", "collect.md"}]


@pytest.mark.parametrize(
    ("new", "says"), [("write", "'write' is taken"), ("With Space", "is no id of a step"), ("", "is no id")]
)
def test_a_name_that_is_taken_or_invalid_is_refused(new, says, demo, file):
    with editing(demo.root) as editor:
        editor.open(file)
        reply = editor.request("textDocument/rename", {**at(file, "id: collect", 4), "newName": new})
        assert says in reply["error"]["message"]


@pytest.mark.parametrize("example", EXAMPLE_NAMES)
def test_random_edits_neither_end_the_server_nor_leave_a_stale_answer(example, project):
    """After the last edit the diagnostics are those of the checker; `bench` makes many more."""
    path = EXAMPLES / example / "job.yml"
    with editing(project.root) as editor:
        editor.open(path)
        text = editor.edit_at_random(path, 60, random.Random(example))
        diagnostics = editor.diagnostics[path.as_uri()]["diagnostics"]
    expected = [finding for finding in LintedJob(path.parent, {path: text}).findings() if finding.file == path]
    assert [diagnostic["message"] for diagnostic in diagnostics] == [finding.message for finding in expected]


def futures():
    return sum(isinstance(thing, Future) for thing in gc.get_objects())


def test_edits_that_were_answered_leave_nothing(demo, file):
    """pygls 2.1 keeps two futures of each."""
    from deepwork.builtin.authoring.lsp import language_server

    (requests, to_server), (from_server, answers) = os.pipe(), os.pipe()
    with ExitStack() as ended_last, ThreadPoolExecutor(1) as threads:
        modes = {requests: "rb", to_server: "wb", from_server: "rb", answers: "wb"}
        requests, to_server, from_server, answers = (
            ended_last.enter_context(open(descriptor, mode)) for descriptor, mode in modes.items()
        )
        ended = threads.submit(language_server().start_io, requests, answers)
        editor = Editor(SimpleNamespace(stdin=to_server, stdout=from_server))
        editor.request("initialize", {"processId": None, "rootUri": demo.root.as_uri(), "capabilities": {}})
        editor.open(file)
        before = futures()
        editor.edit_at_random(file, 20, random.Random(1))
        remaining = futures() - before
        editor.request("shutdown", None)
        editor.send("exit", None)
        ended.result(30)
    assert remaining < 10


def test_without_its_library_the_command_says_what_to_install(invoke, monkeypatch):
    monkeypatch.delitem(sys.modules, "deepwork.builtin.authoring.lsp", raising=False)
    monkeypatch.setitem(sys.modules, "pygls.exceptions", None)
    ended = invoke("jobs", "lsp")
    assert ended.code == 1
    assert "the language server needs" in ended.err


@pytest.mark.parametrize("language", ["json", "lua", "toml"])
def test_the_entries_of_the_page_start_the_server(language, demo, file):
    """Each entry names the command and its arguments for the server."""
    page = (Path(__file__).parents[3] / "docs/how-to/edit-jobs.md").read_text()
    entries = re.findall(rf"<!-- entry -->\n```{language}\n(.*?)```", page, re.DOTALL)
    assert len(entries) == (2 if language == "json" else 1)
    for entry in entries:
        if language == "json":
            json.loads(entry)
        if language == "toml":
            tomllib.loads(entry)
        words = re.findall(r'"([\w.]+)"', entry)
        start = words.index("jobs")
        assert "deepwork" in words[:start]
        with editing(demo.root, *words[start : start + 2]) as editor:
            assert editor.open(file) == []
