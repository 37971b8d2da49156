"""One constant says where installers find our distributions; nothing here asks an index for one of our names."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
INSTALLER = re.compile(
    r"\b(?:pip3? install|uvx|uv tool (?:install|run|upgrade)|uv (?:add|pip install|run)|pipx (?:install|run|upgrade)"
    r"|conda install|brew install)\s+([^\n`;&|#]+)"
)
NAME = re.compile(r"deepwork(?:-\w+)*(?:\[[\w,-]*\])?(?:[=<>~!]=?.*)?")
OF_PROGRAMS = ("--from", "--spec")
IN_LISTS = re.compile(r"[\"']--(?:from|spec|with)[\"'],\s*[\"']deepwork[\w\[\],=.-]*[\"']")
# These may name the other project's release, to measure it or to show that it is not ours.
MAY_NAME = ("bench/", "tests/", "docs/specs/", "changes/")


def tool(name):
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


distribution = tool("distribution")


def names_for_an_index(text):
    """Return the parts of a text that have an installer ask an index for a distribution of ours."""
    commands = [match for match in INSTALLER.finditer(text) if _is_named(match[1].partition(", ")[0])]
    return [match[0].strip() for match in (*commands, *IN_LISTS.finditer(text))]


def _is_named(arguments):
    words = [word.strip("'\"") for word in re.findall(r"'[^']*'|\"[^\"]*\"|\S+", arguments.replace("=", " "))]
    for option in OF_PROGRAMS:
        if option in words:  # the program's own name comes behind the place of its distribution
            words = words[words.index(option) + 1 :][:1]
    return any(NAME.fullmatch(word) for word in words)


def checkout(folder, constant):
    """A checkout with this constant, and a plugin that needs another."""
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "deepwork"\nversion = "1.2"\n[tool.deepwork]\ndistribution = "{constant}"\n'
    )
    for name, needs in (("sql", []), ("tracking", ["deepwork-sql>=1"])):
        plugin = folder / "plugins" / f"deepwork_{name}"
        plugin.mkdir(parents=True)
        (plugin / "pyproject.toml").write_text(f'[project]\nname = "deepwork-{name}"\ndependencies = {needs!r}\n')
    return distribution.Distributions(folder)


@pytest.mark.parametrize(
    ("constant", "core", "sql"),
    [
        (
            "git+https://example.org/x/deepwork@v{version}",
            "deepwork[all] @ git+https://example.org/x/deepwork@v1.2",
            "deepwork-sql @ git+https://example.org/x/deepwork@v1.2#subdirectory=plugins/deepwork_sql",
        ),
        (
            "https://example.org/deepwork/deepwork-{version}-py3-none-any.whl",
            "deepwork[all] @ https://example.org/deepwork/deepwork-1.2-py3-none-any.whl",
            "deepwork-sql @ https://example.org/deepwork/deepwork_sql-1.2-py3-none-any.whl",
        ),
        (
            "dist/deepwork-{version}-py3-none-any.whl",
            "deepwork[all] @ file:///srv/dist/deepwork-1.2-py3-none-any.whl",
            "deepwork-sql @ file:///srv/dist/deepwork_sql-1.2-py3-none-any.whl",
        ),
        ("chosen-name", "chosen-name[all]==1.2", "chosen-name-sql==1.2"),
    ],
)
def test_the_constant_names_the_core_and_every_plugin(tmp_path, constant, core, sql):
    ours = checkout(tmp_path, constant)
    assert ours.requirement("deepwork", "all", root="file:///srv") == core
    assert ours.requirement("deepwork-sql", root="file:///srv") == sql


def test_the_extra_of_a_plugin_brings_what_the_plugin_needs(tmp_path):
    extras = checkout(tmp_path, "git+https://example.org/x@v1").extras()
    assert [need.partition(" @ ")[0] for need in extras["tracking"]] == ["deepwork-sql", "deepwork-tracking"]
    assert extras["all"] == ["deepwork[sql,tracking,postgresql]"]
    assert extras["postgresql"] == [
        "deepwork-sql[postgresql] @ git+https://example.org/x@v1#subdirectory=plugins/deepwork_sql"
    ]


def test_the_extras_of_the_core_are_written_from_the_constant():
    """`tools/distribution.py` writes them."""
    extras = distribution.Distributions().extras()
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {name: declared.get(name) for name in extras} == extras
    text = (ROOT / "pyproject.toml").read_text()
    assert distribution.with_extras(text, extras) == text


def test_nothing_names_a_distribution_of_ours_to_an_index():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("these are not the files of a clone")
    names = [name for name in listed.stdout.split("\0") if name and not name.startswith(MAY_NAME)]
    assert len(names) > 500
    lines_of = {}
    for name in names:
        file = ROOT / name
        if file.suffix in {".png", ".svg", ".gz"} or file.is_symlink() or not file.is_file():
            continue
        if lines := names_for_an_index(file.read_text(encoding="utf-8", errors="replace")):
            lines_of[name] = lines
    assert lines_of == {}


@pytest.mark.parametrize(
    "line",
    [
        "pip install deepwork",
        "uv tool install 'deepwork[all]'",
        "uv tool install deepwork[all]==1.0",
        "`pipx install deepwork`",
        "uvx --from deepwork deepwork init",
        "uvx deepwork init",
        'command = "uvx", "args": ["--from", "deepwork", "deepwork", "serve"]',
        "pip install -U fastmcp deepwork-review",
    ],
)
def test_a_name_for_an_index_is_seen(line):
    assert names_for_an_index(line)


@pytest.mark.parametrize(
    "line",
    [
        "uv tool install 'deepwork[all] @ git+https://example.org/x@v1'",
        "uvx --from 'deepwork[all] @ file:///srv/deepwork.whl' deepwork init",
        "pip install . ./plugins/deepwork_sql",
        "pip install path/to/deepwork-1.0.0.dev0-py3-none-any.whl",
        "uv tool install ./dist/deepwork-1.0-py3-none-any.whl[all]",
        "pip install pygls, or deepwork with its extra `lsp`",
    ],
)
def test_a_place_is_not_a_name_for_an_index(line):
    assert not names_for_an_index(line)
