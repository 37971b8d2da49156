"""The core and the plugins here: one version, entry points that resolve, and the public api as all that they use."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from packaging.version import Version

from deepwork import __version__, api
from deepwork.cli.main import OF_PLUGINS
from deepwork.loading.discovery import GROUP
from deepwork.loading.features import FEATURES

ROOT = Path(__file__).parent.parent
CORE = tomllib.loads((ROOT / "pyproject.toml").read_text())
PLUGINS = {
    file.parent.name: tomllib.loads(file.read_text())
    for file in sorted(ROOT.glob("plugins/*/pyproject.toml"))
    if file.parent.name != "_template"
}
# Public besides `deepwork.api`: what commands share, and the modules to which its errors about moved names point.
PUBLIC = {"deepwork", "deepwork.api", "deepwork.commands.options", "deepwork.commands.terminal", *api.MOVED.values()}

# Tests that still use what is not public; this list may only get shorter.
NOT_YET = {
    "plugins/deepwork_claude_runner/tests/test_command.py": {
        "deepwork.paths.user_folders",
        "deepwork.programs.processes",
    }
}


@pytest.fixture(params=PLUGINS)
def plugin(request):
    """Each plugin's folder, and what its pyproject says."""
    return ROOT / "plugins" / request.param, PLUGINS[request.param]


def imports(file):
    """Name the modules that a file imports, as far as they may be ours."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            module = node.module or ""
            yield from (f"{module}.{name.name}" if module == "deepwork" else module for name in node.names)


def ours(file):
    for name in imports(file):
        if name.partition(".")[0].startswith("deepwork"):
            # `from deepwork import hookimpl` is of the package itself
            yield "deepwork" if name in ("deepwork.hookimpl", "deepwork.__version__") else name


def packages_of(pyproject):
    """Name the packages of ours that a distribution depends on or uses where they are, its own among them."""
    project = pyproject["project"]
    optional = [name for extra in project.get("optional-dependencies", {}).values() for name in extra]
    needed = [project["name"], *project.get("dependencies", []), *optional]
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in needed]
    return {name.replace("-", "_") for name in names if name.startswith("deepwork-")}


def test_the_core_says_its_version_once():
    assert CORE["project"]["version"] == __version__


def test_a_plugin_has_the_version_of_the_core(plugin):
    assert plugin[1]["project"]["version"] == __version__


def test_a_plugin_is_named_after_its_folder(plugin):
    folder, pyproject = plugin
    assert pyproject["project"]["name"] == folder.name.replace("_", "-")
    assert (folder / "src" / folder.name / "py.typed").exists()


def test_a_plugin_depends_on_this_line_of_the_core(plugin):
    assert "deepwork>=1.0.0.dev0,<2" in plugin[1]["project"]["dependencies"]


def test_an_entry_point_names_a_module_that_is_there(plugin):
    folder, pyproject = plugin
    points = pyproject["project"]["entry-points"][GROUP]
    assert points
    for name, module in points.items():
        assert name not in FEATURES
        assert (folder / "src" / (module.replace(".", "/") + ".py")).exists(), f"{name} = {module}"


def test_a_plugin_uses_only_the_public_api(plugin):
    folder, pyproject = plugin
    allowed = packages_of(pyproject)
    for file in (folder / "src").rglob("*.py"):
        # A plugin may have a kit of its own, on ours.
        kit = {"deepwork.testing", "deepwork.testing.machines"} if file.stem in ("testing", "machines") else set()
        public = PUBLIC | kit
        forbidden = {name for name in ours(file) if name not in public and name.partition(".")[0] not in allowed}
        assert not forbidden, f"{file.relative_to(ROOT)} imports {sorted(forbidden)}"


def test_the_tests_of_a_plugin_use_only_the_public_api(plugin):
    folder, pyproject = plugin
    allowed = packages_of(pyproject)
    for file in (folder / "tests").rglob("*.py"):
        names = {name for name in ours(file) if not f"{name}.".startswith("deepwork.testing.")}
        forbidden = {name for name in names if name not in PUBLIC and name.partition(".")[0] not in allowed}
        forbidden -= NOT_YET.get(str(file.relative_to(ROOT)), set())
        assert not forbidden, f"{file.relative_to(ROOT)} imports {sorted(forbidden)}"


def test_the_template_uses_only_the_public_api():
    template = ROOT / "src" / "deepwork" / "plugin_template"
    for file in template.rglob("*.py"):
        allowed = PUBLIC | ({"deepwork.testing"} if "tests" in file.parts else set())
        forbidden = {name for name in ours(file) if name not in allowed and not name.startswith("deepwork_acme")}
        assert not forbidden, f"{file.name} imports {sorted(forbidden)}"


def test_the_template_stands_among_the_plugins():
    assert (ROOT / "plugins" / "_template").resolve() == ROOT / "src" / "deepwork" / "plugin_template"


def test_a_plugin_needs_the_python_of_the_core(plugin):
    assert plugin[1]["project"]["requires-python"] == CORE["project"]["requires-python"]


@pytest.mark.external
@pytest.mark.parametrize("folder", [".", *(f"plugins/{name}" for name in PLUGINS)])
def test_each_declared_minimum_can_be_installed(folder):
    """A minimum that another requirement forbids is tested nowhere, and so it promises nothing."""
    pyproject = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
    ours = [".", *(f"./plugins/{name}" for name in sorted(packages_of(pyproject)))]
    compile_oldest = ["uv", "pip", "compile", "-", "--resolution=lowest-direct", "--group=test", "--no-header"]
    resolved = subprocess.run(
        [sys.executable, "-m", *compile_oldest],
        cwd=ROOT,
        input="\n".join(f"-e {path}" for path in ours),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    chosen = dict(re.findall(r"^([\w.-]+)==(\S+)", resolved, re.MULTILINE))
    oldest = minimums(pyproject)
    assert {name: Version(chosen[name]) for name in oldest} == oldest


@pytest.mark.external
@pytest.mark.slow
@pytest.mark.skipif(sys.version_info[:2] > (3, 11), reason="the oldest libraries are tested on the oldest Python")
@pytest.mark.parametrize(
    ("name", "pyproject"), [("core", CORE), ("plugin-sql", PLUGINS["deepwork_sql"])], ids=["core", "sql"]
)
def test_the_environment_for_the_oldest_libraries_has_them(tmp_path, name, pyproject):
    """What else goes into it would bring newer ones, if that came first."""
    environment = f"py311-{name}-oldest"
    make = ["tox", "run", "--workdir", tmp_path, "--notest", "-e", environment]
    process = subprocess.run([sys.executable, "-m", *make], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    freeze = ["uv", "pip", "freeze", "--python", tmp_path / environment]
    frozen = subprocess.run([sys.executable, "-m", *freeze], capture_output=True, text=True, check=True).stdout
    installed = dict(re.findall(r"^([\w.-]+)==(\S+)", frozen, re.MULTILINE))
    oldest = minimums(pyproject)
    assert {name: Version(installed[name]) for name in oldest} == oldest


def minimums(pyproject):
    """Return the oldest release of each library that a distribution allows."""
    pairs = re.findall(r"([\w-]+)>=([\d.]+)", " ".join(pyproject["project"]["dependencies"]))
    oldest = {name: Version(release) for name, release in pairs if not name.startswith("deepwork")}
    assert oldest
    return oldest


def test_the_core_knows_the_plugin_of_each_command_that_ours_offer():
    offered = {command.name: folder for folder, command in _commands()}
    assert offered == OF_PLUGINS


def test_a_plugin_lists_its_commands_with_whole_sentences_at_80_columns():
    """click cuts each at the end of its line."""
    groups = [command for _, command in _commands() if isinstance(command, click.Group)]
    assert groups
    for group in groups:
        _, _, listing = CliRunner().invoke(group, ["--help"], terminal_width=80).stdout.partition("Commands:")
        assert [line for line in listing.splitlines() if line.endswith("...")] == [], group.name


def _commands():
    for folder, pyproject in PLUGINS.items():
        for module in pyproject["project"]["entry-points"]["deepwork"].values():
            for command in getattr(importlib.import_module(module), "deepwork_commands", list)():
                yield folder, command
