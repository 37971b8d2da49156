"""A deepwork that runs from a cache of an installer: it is kept, or started by `uvx` each time."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from deepwork.builtin.clients import installed, keeping
from deepwork.programs.installation import Installation

PLACE = "deepwork[all] @ file:///srv/dist/deepwork-1.0.0.dev0-py3-none-any.whl"
PASSING = Installation("uvx", None, PLACE, is_passing=True)
BY_UVX = ["--from", PLACE, "deepwork", "serve", "--path"]


@pytest.fixture
def uvx(tmp_path, monkeypatch):
    """A `uvx` and a `uv` that pretend, and this deepwork as `uvx` runs it."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "uvx").write_text(f'#!/bin/sh\nshift 3\nexec "{Path(sys.executable).parent}/deepwork" "$@"\n')
    (folder / "uv").write_text(
        '#!/bin/sh\necho "$@" >> "$(dirname "$0")/calls"\n[ "$2" = dir ] && dirname "$0"\nexit 0\n'
    )
    for name in ("uv", "uvx"):
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    for module in (installed, keeping):
        monkeypatch.setattr(module, "installation", lambda _: PASSING)
    monkeypatch.setattr("deepwork.builtin.clients.checks.installation", lambda _: PASSING)
    return folder


def entry(project):
    return json.loads((project.root / ".mcp.json").read_text())["mcpServers"]["deepwork"]


def test_a_client_is_refused_before_anything_is_written(invoke, project, home, uvx):
    ended = invoke("init", "--client", "claude")
    assert (ended.code, "runs by uvx" in ended.err) == (1, True)
    assert f"uv tool install '{PLACE}'" in ended.err
    assert "--transient" in ended.err
    assert list(project.root.iterdir()) == []


def test_without_a_client_a_project_is_prepared_and_the_command_told(invoke, project, home, uvx):
    ended = invoke("init")
    assert (ended.code, f"uv tool install '{PLACE}'" in ended.err) == (0, True)
    assert (project.root / ".deepwork/config.yml").exists()


@pytest.mark.parametrize("command", [["init", "--client", "claude"], ["connect", "claude"]])
def test_a_transient_entry_starts_by_uvx_with_the_installed_extras(invoke, project, home, uvx, command):
    ended = invoke(*command, "--transient")
    assert (ended.code, "verified   the server lists" in ended.out) == (0, True)
    assert (entry(project)["command"], entry(project)["args"][:5]) == (str(uvx / "uvx"), BY_UVX)
    hooks = (project.root / ".claude/settings.local.json").read_text()
    assert f"{uvx / 'uvx'} --from '{PLACE}' deepwork hook Stop" in hooks


def test_a_second_run_changes_nothing_and_what_was_written_is_taken_out(invoke, project, home, uvx):
    invoke("connect", "claude", "--transient", "--no-verify")
    before = (project.root / ".mcp.json").read_bytes()
    assert "unchanged  .mcp.json" in invoke("connect", "claude", "--transient", "--no-verify").out
    assert (project.root / ".mcp.json").read_bytes() == before
    invoke("connect", "claude", "--remove")
    assert not (project.root / ".mcp.json").exists()


def test_doctor_says_that_a_client_starts_it_by_uvx(invoke, project, home, uvx):
    invoke("connect", "claude", "--transient", "--no-verify")
    texts = [
        item["text"] for item in json.loads(invoke("doctor", "--json").out)["findings"] if item["check"] == "clients"
    ]
    [text] = [text for text in texts if text.startswith("Claude Code: .mcp.json")]
    assert f"{uvx / 'uvx'} --from {PLACE} deepwork serve" in text
    assert "tools after" in text  # it was tried


def test_at_a_terminal_it_is_installed_to_stay_and_goes_on_as_the_installed_one(
    invoke, project, home, uvx, monkeypatch
):
    became = []
    monkeypatch.setattr("os.execv", lambda program, words: became.append((program, words[1:])))
    monkeypatch.setattr("sys.argv", ["deepwork", "init"])
    (uvx / "deepwork").write_text("#!/bin/sh\n")
    (uvx / "deepwork").chmod(0o755)
    invoke("init", "--no-hooks", answer="y\nnone\n")
    assert (uvx / "calls").read_text().splitlines()[0] == f"tool install {PLACE}"
    assert became[0] == (str(uvx / "deepwork"), ["init"])


def test_without_uvx_there_is_no_transient_entry(invoke, project, home, uvx, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    ended = invoke("connect", "claude", "--transient")
    assert (ended.code, "no `uvx` in PATH" in ended.err) == (1, True)
