from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from deepwork.cli.new_plugin import LONGEST, PARTS, make_plugin
from deepwork.errors import ConfigError

LONG = "ab-" * (LONGEST // 3 - 1) + "abc"
ALONE = [pytest.param([hook], id=hook) for hook in PARTS]
SEVERAL = [["stores", "commands"], ["runners", "checks"], list(PARTS)]
TOGETHER = [pytest.param(hooks, id="+".join(hooks)) for hooks in SEVERAL]


@pytest.fixture
def tool():
    """Run one of the developers' tools in a folder, if it is installed, and give its complaints."""

    def tool(name, *arguments, cwd, **more):
        program = shutil.which(name, path=str(Path(sys.executable).parent))
        if program is None:
            pytest.skip(f"{name} is not installed")
        ended = subprocess.run(
            [program, *arguments], cwd=cwd, capture_output=True, text=True, timeout=870, env={**os.environ, **more}
        )
        return ended.returncode, ended.stdout + ended.stderr

    return tool


@pytest.fixture
def new_plugin(project):
    """Run `deepwork new-plugin` as a person does, and give its exit code and both outputs."""

    def new_plugin(*arguments):
        command = [sys.executable, "-m", "deepwork", "new-plugin", *arguments]
        ended = subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=240)
        return ended.returncode, ended.stdout, ended.stderr

    return new_plugin


@pytest.mark.parametrize("hooks", [*ALONE, *TOGETHER])
@pytest.mark.parametrize("name", ["acme", "a", LONG])
def test_lint_and_format_are_right_at_once(tmp_path, tool, name, hooks):
    plugin = make_plugin(name, hooks, tmp_path)
    assert tool("ruff", "check", "--no-cache", "--quiet", cwd=plugin) == (0, "")
    assert tool("ruff", "format", "--no-cache", "--diff", "--quiet", cwd=plugin) == (0, "")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_types_are_right_at_once(tmp_path, tool):
    plugin = make_plugin("acme", PARTS, tmp_path)
    code, complaints = tool("mypy", cwd=plugin, MYPYPATH=str(plugin / "src"))
    assert code == 0, complaints


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("hooks", [["tools"], *SEVERAL[:2], ["jobs"]], ids="+".join)
def test_its_tests_pass_at_once(tmp_path, hooks):
    """Installed by hand, which is quicker; `test_openness.py` does it with wheels."""
    plugin = make_plugin("acme-tracker", hooks, tmp_path)
    about = plugin / "src" / "deepwork_acme_tracker-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: deepwork-acme-tracker\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[deepwork]\nacme_tracker = deepwork_acme_tracker.plugin\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"],
        cwd=plugin,
        env={**os.environ, "PYTHONPATH": str(plugin / "src")},
        capture_output=True,
        text=True,
        timeout=870,
    )
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("hooks", [*ALONE, *TOGETHER])
def test_only_what_was_asked_for_is_there(tmp_path, hooks):
    plugin = make_plugin("acme", hooks, tmp_path)
    text = (plugin / "src" / "deepwork_acme" / "plugin.py").read_text()
    hook_of = {"jobs": "job_sources", "stores": "state_stores", "runners": "review_runners", "tools": "tool_sets"}
    for hook, parts in PARTS.items():
        assert (f"def deepwork_{hook_of.get(hook, hook)}(" in text) == (hook in hooks)
        for part in parts:
            assert bool(list(plugin.rglob(part))) == (hook in hooks), part


def test_no_mark_of_the_template_is_left(tmp_path):
    plugin = make_plugin("tracker", PARTS, tmp_path)
    for path in plugin.rglob("*"):
        text = path.read_text() if path.is_file() else ""
        assert "acme" not in f"{path.relative_to(tmp_path)}{text}".lower(), path
        assert not [line for line in text.splitlines() if line.startswith("# [") or line.endswith("]  #")]


def test_a_name_of_several_words_fits_everywhere(tmp_path):
    plugin = make_plugin("acme-tracker", PARTS, tmp_path)
    assert plugin.name == "deepwork-acme-tracker"
    pyproject = (plugin / "pyproject.toml").read_text()
    assert 'name = "deepwork-acme-tracker"' in pyproject
    assert 'acme_tracker = "deepwork_acme_tracker.plugin"' in pyproject
    assert "class AcmeTrackerStore(StateStore)" in (plugin / "src" / "deepwork_acme_tracker" / "store.py").read_text()


@pytest.mark.parametrize(
    ("name", "part", "file", "class_name"),
    [
        ("ollama-runner", "runners", "runner.py", "OllamaRunner"),
        ("ledger-store", "stores", "store.py", "LedgerStore"),
        ("acme", "stores", "store.py", "AcmeStore"),
    ],
)
def test_the_names_of_classes_do_not_double(tmp_path, name, part, file, class_name):
    plugin = make_plugin(name, [part], tmp_path)
    code = (plugin / "src" / f"deepwork_{name.replace('-', '_')}" / file).read_text()
    assert f"class {class_name}(" in code


def test_the_command_says_what_it_has_made_and_what_comes_next(project, new_plugin):
    code, out, err = new_plugin("acme", "--into", "plugins")
    assert (code, err) == (0, "")
    assert out == (
        "created  plugins/deepwork-acme\n\n"
        "Next: install it for development and run its tests; plugins/deepwork-acme/README.md says how.\n"
    )
    assert (project.root / "plugins" / "deepwork-acme" / "src" / "deepwork_acme" / "tools.py").exists()


REFUSED = {
    "Acme": (
        "'Acme' cannot be the name of a plugin",
        "Use lower-case letters, digits and single hyphens, and begin with a letter: acme-tracker",
    ),
    "deepwork-acme": ("the name 'deepwork-acme' has 'deepwork' in it already", "Give the rest: acme"),
    "json-store": ("'json-store' is the name of a plugin of the core", "Choose another one."),
    "a" * 31: (f"the name '{'a' * 31}' is longer than 30 characters", "Choose a shorter one."),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_name_is_refused_with_the_cure(new_plugin, name):
    message, hint = REFUSED[name]
    assert new_plugin(name) == (1, "", f"Error: {message}\nHint: {hint}\n")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("core", "tool set"),
        ("json", "state store"),
        ("self", "review runner"),
        ("packaged", "job source"),
        ("claude", "plugin of DeepWork"),
        ("new-plugin", "command"),
        ("start-workflow", "tool"),
    ],
)
def test_a_name_of_the_core_is_refused(tmp_path, name, kind):
    with pytest.raises(ConfigError, match=f"'{name}' is the name of a {kind} already"):
        make_plugin(name, ["tools"], tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "-", "a--b", "a-", "1a", "../a", "a/b", "größe", "a b", "a\n", "_a"])
def test_a_name_that_no_distribution_can_have_is_refused(tmp_path, name):
    with pytest.raises(ConfigError, match="cannot be the name of a plugin"):
        make_plugin(name, ["tools"], tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_existing_folder_is_left_as_it_is(project, new_plugin):
    project.write("deepwork-acme/README.md", "mine")
    assert new_plugin("acme") == (
        1,
        "",
        "Error: deepwork-acme exists already\nHint: Choose another name or folder (--into), or remove it.\n",
    )
    assert [path.name for path in (project.root / "deepwork-acme").iterdir()] == ["README.md"]


def test_a_folder_that_cannot_be_made_is_an_error(project, new_plugin):
    project.write("taken")
    code, _, err = new_plugin("acme", "--into", "taken")
    assert code == 1
    assert err == "Error: taken/deepwork-acme: Not a directory\nHint: Choose another folder: --into.\n"


@pytest.mark.parametrize(
    ("hooks", "message"), [("tools,horoscopes", "no hook is called 'horoscopes'"), (",", "no hook is chosen")]
)
def test_an_unknown_hook_is_refused_with_those_there_are(new_plugin, hooks, message):
    code, _, err = new_plugin("acme", "--hooks", hooks)
    hint = "Choose from: stores, runners, jobs, tools, commands, checks, or all."
    assert (code, err) == (1, f"Error: {message}\nHint: {hint}\n")


def test_help_names_every_hook():
    from deepwork.cli.new_plugin import new_plugin

    assert all(hook in CliRunner().invoke(new_plugin, ["--help"]).output for hook in PARTS)
