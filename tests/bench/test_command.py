"""What `python -m bench` says and writes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess

import pytest


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "'nonsense' is not NAME=COMMAND"),
        (["a/b=c"], "'a/b=c' is not NAME=COMMAND"),
        (["FLOOR=c"], "FLOOR is always measured; choose another name"),
        (["a=b", "a=c"], "two contestants have the same name"),
        (["--figures", "start,speed"], "there is no figure 'speed'; there are start, steps"),
    ],
)
def test_what_cannot_be_understood_is_refused_before_anything_is_measured(arguments, says, command):
    ran = command(*arguments)
    assert (ran.code, ran.stdout) == (2, "")
    assert says in ran.stderr


def test_a_contestant_that_dies_is_named_with_what_it_said(a_server, command):
    ran = command(f"mine={a_server('sys.exit(chr(111) + chr(117) + chr(99) + chr(104))')}", "--figures", "start")
    assert ran.code == 1
    assert re.search(r"^Error: `.*server\.py` died \(exit code 1\)\n  ouch$", ran.stderr, re.MULTILINE)
    assert "Traceback" not in ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra",
    [
        "old = answer\ndef answer(request):\n    old(request)\n    request['method'] == 'tools/list' and sys.exit(3)",
        "def at_end():\n    sys.exit(3)",
    ],
    ids=["once it has listed its tools", "when it is to end"],
)
def test_a_contestant_that_dies_has_no_fast_exit(extra, a_server, command):
    ran = command(f"mine={a_server(extra)}", "--figures", "start", "--rounds", "1")
    assert ran.code == 1
    assert "server.py` died (exit code 3)" in ran.stderr


@pytest.mark.slow
def test_a_server_without_our_tools_is_only_started_and_ended(a_server, command):
    everything_else = "steps,flight,http,listing,crowd,memory,growth"
    ran = command(f"mine={a_server()}", "--rounds", "1", "--figures", f"start,{everything_else}")
    assert ran.code == 0
    figures = [line.split("  ")[0] for line in ran.stdout.splitlines()[1:]]
    assert {name.split(",")[0] for name in figures} == {
        "spawn → tools/list answered",
        "exit after closed stdin",
        "memory after tools/list",
    }


@pytest.mark.slow
def test_what_is_written_tells_the_command_without_the_files_of_whoever_gave_it(a_server, bench, tmp_path):
    file = tmp_path / "found.json"
    ran = bench(f"mine={a_server()}", "--rounds", "1", "--figures", "start", "--json", file, f"--folder={tmp_path}")
    assert ran.code == 0, ran.stderr
    words = shlex.split(json.loads(file.read_text())["command"])
    assert words == ["python", "-m", "bench", f"mine={a_server()}", "--rounds", "1", "--figures", "start"]


def test_a_contestant_that_is_not_installed_is_named(command):
    ran = command("mine=no-such-program --x", "--figures", "start")
    assert (ran.code, ran.stderr) == (1, "Error: there is no program 'no-such-program' on the path\n")


def test_a_contestant_that_answers_with_an_error_is_named(a_server, command):
    refusing = """
def answer(request):
    error = {"code": -32601, "message": "unknown"}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)
"""
    ran = command(f"mine={a_server(refusing)}", "--figures", "start")
    assert ran.code == 1
    assert 'answered with an error: {"code": -32601, "message": "unknown"}' in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_placeholder_that_is_not_known_is_named(command):
    ran = command("mine=python {folder}", "--figures", "start")
    assert ran.code == 1
    assert "the command of 'mine' cannot be read: KeyError('folder')" in ran.stderr


def test_what_a_run_writes_has_the_documented_keys(measured):
    assert [*measured] == ["format", "command", "machine", "settings", "contestants", "figures", "imports"]
    assert [*measured["settings"]] == ["era", "rounds", "sizes"]
    assert {*measured["contestants"][0]} == {"name", "command"}
    for figure in measured["figures"]:
        assert {"key", "title", "unit", "against", "relation", "goal", "contestant", "reached"} < {*figure}
        assert {*figure["measured"]} == {*figure["baseline"]} == {*figure["compared"]} == {"median", "low", "high"}
        assert figure["rounds"] == 3


def test_an_earlier_run_is_made_into_a_page(measured, command, tmp_path):
    (tmp_path / "found.json").write_text(json.dumps(measured))
    page = tmp_path / "docs" / "benchmarks.md"
    page.parent.mkdir()
    ran = command("--from-json", tmp_path / "found.json", "--report", page)
    assert (ran.code, ran.stderr) == (0, "")
    text = page.read_text()
    for figure in measured["figures"]:
        assert f"| {figure['title']} | deepwork |" in text
    assert "<!-- sketch -->\n```bash\npython -m bench\n```\n" in text
    assert "## What falls short, and why\n\n" in text
    assert "| 0.9.3 | `release-0.9.3/bin/deepwork serve --path {project}` |" in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize(("share", "code"), [(1.3, 0), (1.4, 1)])
def test_a_ratio_that_is_much_larger_than_the_recorded_one_fails_the_check(measured, command, tmp_path, share, code):
    from bench.goals import RECORDED

    for figure in measured["figures"]:
        if figure["key"] in RECORDED:
            figure["best"] = RECORDED[figure["key"]] * (share if figure["key"] == "step.cpu" else 1)
    (tmp_path / "found.json").write_text(json.dumps(measured))
    ran = command("--from-json", tmp_path / "found.json", "--check")
    assert ran.code == code
    assert ran.stderr.count("recorded is") == code
    recorded = RECORDED["step.cpu"]
    line = f"processor time: deepwork has {recorded * share:.2f}, recorded is {recorded:g}"
    assert (line in ran.stderr) == bool(code)


def test_a_page_of_figures_from_memory_says_so(measured, command, tmp_path):
    measured["machine"]["file system"] = "tmpfs"
    (tmp_path / "found.json").write_text(json.dumps(measured))
    command("--from-json", tmp_path / "found.json", "--report", tmp_path / "page.md")
    assert "durable calls were not really measured" in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 0}'])
def test_a_file_that_no_run_has_written_is_refused(text, command, tmp_path):
    (tmp_path / "found.json").write_text(text)
    ran = command("--from-json", tmp_path / "found.json")
    assert ran.code == 1
    assert "was not written by this release's --json; measure anew" in ran.stderr


def test_the_page_shows_what_is_missed_and_the_last_release(measured, command, tmp_path, monkeypatch):
    from bench import release

    monkeypatch.setattr(release, "LAST", tmp_path / "last.json")
    release.LAST.write_text('{"release": "7.7.6", "compared": {}}')
    (tmp_path / "found.json").write_text(json.dumps(measured))
    command("--from-json", tmp_path / "found.json", "--keep-as", "7.7.7")
    for figure in measured["figures"]:
        figure["reached"] = figure["key"] != "start"
    (tmp_path / "found.json").write_text(json.dumps(measured))
    ran = command("--from-json", tmp_path / "found.json", "--report", tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert ran.code == 0
    assert "| Figure | Contestant | Measured | Compared with | | 7.7.7 | Goal | |" in page
    assert re.search(r"Missed: 1 of \d+\.\n\n- spawn → `tools/list` answered, deepwork: 0\.50x .*goal is ≤ 1\.1", page)


@pytest.mark.slow
def test_a_release_that_the_registry_does_not_have_is_named_and_left_out(a_server, command, monkeypatch):
    from bench import release

    def no_such_release(arguments, **_):
        raise subprocess.CalledProcessError(1, arguments, stderr="a warning\nERROR: No matching distribution found")

    monkeypatch.setattr(release.subprocess, "run", no_such_release)
    ran = command(f"mine={a_server()}", "--rounds", "1", "--figures", "start", "--release", "0.0.0.nonsense")
    assert ran.code == 0
    assert (
        "deepwork 0.0.0.nonsense is not measured: it cannot be installed (ERROR: No matching distribution found)."
        in ran.stderr
    )


@pytest.mark.slow
def test_the_imports_of_a_server_are_summed_by_package(a_server, command):
    ran = command(f"mine={a_server('import decimal, json.tool')}", "--figures", "imports")
    table = ran.stdout.partition("imported by mine")[2]
    assert ran.code == 0
    assert {"json", "others", "together"} <= {line.split("  ")[0] for line in table.splitlines()}


def test_with_all_plugins_a_goal_is_eased():
    from bench.goals import at_least, at_most

    assert at_most(2).eased().limit == pytest.approx(2.6)
    assert at_least(0.5).eased().limit == pytest.approx(0.5 / 1.3)


def test_a_server_with_its_sessions_in_a_database_has_the_goal_of_its_store():
    from bench.goals import BY_KEY

    flight = BY_KEY["flight.8"]
    limits = {name: flight.goal_of(name, has_plugins=True).limit for name in ("deepwork", "SQLite", "PostgreSQL")}
    assert limits == {"deepwork": pytest.approx(0.6 / 1.3), "SQLite": 0.5, "PostgreSQL": 0.33}
