"""The allowed imports between the rooms of `src/deepwork`."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import deepwork
from deepwork.loading.features import FEATURES

SOURCE = Path(deepwork.__file__).parent

# A room is a package or a module right under `deepwork`. Each may import the named rooms, and no others.
ROOMS = {
    "__init__": "",
    "errors": "",
    "text": "",
    "foreign": "errors",  # names that other libraries do not promise
    "paths": "errors",
    "programs": "errors paths",
    "documents": "text",
    "models": "errors text",
    "ports": "errors models paths programs",
    "commands": "errors ports programs text",
    "jobs": "documents errors models paths ports text",
    "sessions": "errors jobs models paths ports programs text",
    "gate": "errors models paths ports text",
    "engine": "errors gate jobs models paths ports programs sessions text",
    "hookspecs": "engine ports",  # for annotations only, see below
    "loading": "__init__ errors hookspecs models ports programs text",
    "project": "__init__ documents engine errors gate jobs loading models paths ports programs sessions text",
    "server": "__init__ engine errors documents foreign loading models paths ports programs project sessions text",
    "api": "commands documents engine errors gate jobs models paths ports programs project server sessions text",
    "builtin": "__init__ api commands documents errors foreign models paths ports programs text",
    "cli": (
        "__init__ commands documents engine errors foreign gate jobs loading models paths ports programs project "
        "server sessions text"
    ),
    "testing": "errors models ports __init__ api cli loading project server",
    "plugin_template": "errors __init__ api testing",  # a distribution of its own, once it is copied
    "__main__": "cli",
}

# An outside library lives in these rooms.
HOMES = {
    "anyio": "builtin cli engine gate plugin_template ports programs project server sessions testing",
    "click": "builtin cli commands ports plugin_template testing",
    "deepwork_acme": "plugin_template",
    "fastmcp": "builtin foreign server testing",
    "h11": "builtin",
    "hypothesis": "testing",
    "importlib_metadata": "cli loading",
    "mcp": "builtin server",
    "mcp_types": "server",
    "lsprotocol": "builtin",
    "opentelemetry": "engine",
    "pluggy": "__init__ hookspecs loading",
    "pydantic": "builtin cli documents models plugin_template ports project server testing",
    "pydantic_core": "server",
    "pygls": "builtin",
    "pytest": "plugin_template testing",
    "sse_starlette": "builtin",
    "starlette": "builtin",
    "tree_sitter": "builtin",
    "tree_sitter_javascript": "builtin",
    "tree_sitter_typescript": "builtin",
    "uvicorn": "builtin",
    "yaml": "documents testing",
}

# Shapes do nothing: no files, no clock, no processes.
NEVER_IN_MODELS = {"asyncio", "datetime", "io", "os", "random", "shutil", "socket", "subprocess", "threading", "time"}


def imports(tree):
    """Yield every module that a file imports, at any place; `from deepwork import x` counts as `deepwork.x`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield "." * node.level
        elif isinstance(node, ast.ImportFrom) and node.module == "deepwork":
            yield from (f"deepwork.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def complaints(room, text):
    """Yield the forbidden imports of a file of a room."""
    for module in imports(ast.parse(text)):
        outside, _, inner_module = module.partition(".")
        if module.startswith("."):
            yield "imports are absolute"
        elif outside == "deepwork":
            imported_room = inner_module.partition(".")[0]
            if imported_room not in ROOMS:  # a name such as `deepwork.hookimpl`
                imported_room = "__init__"
            if imported_room not in {room, *ROOMS[room].split()}:
                yield f"{room} may not import {imported_room}"
        elif outside in HOMES:
            if room not in HOMES[outside].split():
                yield f"{outside} does not live in {room}"
        elif outside not in sys.stdlib_module_names:
            yield f"{outside} has no home"
        elif room == "models" and outside in NEVER_IN_MODELS:
            yield f"models may not use {outside}"


def room_of(file):
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_every_import_keeps_to_the_direction_of_the_rooms(file):
    text = file.read_text()
    if room_of(file) == "hookspecs":
        text = without_type_checking(text)
    found_complaints = set(complaints(room_of(file), text))
    assert found_complaints == set()


def without_type_checking(text):
    tree = ast.parse(text)
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    ]
    return ast.unparse(tree)


def feature_of(module):
    """Name the feature of a module below `deepwork.builtin`; None for any other module."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["deepwork", "builtin"] and len(parts) > 2 else None


def test_no_modules_import_each_other_in_a_circle():
    """Also not within functions; for types alone they may."""
    roots = [SOURCE.parent, *Path(__file__).parents[1].glob("plugins/deepwork_*/src")]
    files = {
        ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): file
        for root in roots
        for file in root.rglob("*.py")
    }
    graph = {name: modules_in(without_type_checking(file.read_text()), files) - {name} for name, file in files.items()}
    TopologicalSorter(graph).prepare()


def modules_in(text, known):
    """Return the known modules that a file imports, at any place; `from a import b` is `a.b` where that is one."""
    modules = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            modules.update(name if name in known else node.module for name in names)
    return modules & known.keys()


LOW = {"errors", "text", "paths", "programs", "documents", "commands", "foreign"}


def test_the_arrows_of_the_map_are_those_of_the_table():
    """CONTRIBUTING draws the kernel and the features; what is allowed is said there whole."""
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text().partition("<!-- map -->")[2]
    arrows = re.findall(r"^(\w+) +──► (.*)$", text.partition("```\n\n")[0], re.MULTILINE)
    drawn = {room: {part for part in re.split(r"[,;] ", rooms) if part in ROOMS} for room, rooms in arrows}
    assert drawn.pop("plugins") == {"api"}
    assert drawn.pop("features") == {*ROOMS["builtin"].split()} - LOW - {"__init__", "models", "ports"}
    for room, rooms in drawn.items():
        assert rooms == {*ROOMS[room].split()} - LOW - {"__init__", "hookspecs"}, room


def test_no_feature_imports_another():
    files = [file for file in FILES if room_of(file) == "builtin"]
    for file in files:
        own = file.relative_to(SOURCE).with_suffix("").parts[1:2]
        other_features = {feature_of(module) for module in imports(ast.parse(file.read_text()))} - {None, *own}
        assert not other_features, f"{file.relative_to(SOURCE)} imports {other_features}"


def test_every_feature_is_in_the_table_of_features():
    folders = {file.relative_to(SOURCE).with_suffix("").parts[1] for file in FILES if room_of(file) == "builtin"}
    assert folders - {"__init__"} == {*FEATURES}


def test_every_room_has_its_line_in_the_table_and_every_line_its_room():
    assert {room_of(file) for file in FILES} == set(ROOMS)


def test_the_table_itself_goes_in_one_direction():
    order = [*TopologicalSorter({room: allowed.split() for room, allowed in ROOMS.items()}).static_order()]
    backbone = ["errors", "models", "ports", "jobs", "sessions", "engine", "project", "server", "cli"]
    assert [room for room in order if room in backbone] == backbone
    assert order.index("ports") < order.index("loading") < order.index("server")


# Who reads or writes what an entry of a history says, and not only that there is one.
READERS_OF_HISTORY = {
    "builtin/people/sarif.py",
    "builtin/people/show.py",
    "builtin/proofs/prover.py",  # the `proof` of a verdict
    "deepwork_dashboard/entries.py",
    "deepwork_dashboard/spending.py",
    "deepwork_run/limits.py",
    "engine/engine.py",
    "engine/keeping.py",
    "engine/pieces.py",
    "engine/verification.py",
    "gate/history.py",
    "ports/proofs.py",
    "sessions/attempts.py",  # what was reported, and what came of it, for people who review it
    "sessions/comments.py",
    "sessions/decisions.py",
    "sessions/standing.py",  # which says what follows for a step; the others write entries, or show them
    "sessions/transitions.py",
}


def reads_entries(tree):
    """True if a file imports models of entries: names of `models.history` besides these, or that module."""
    common = {"EventKind", "HistoryEntry", "StoredModel"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            if node.module == "deepwork.models.history" and names - common:
                return True
            if node.module in ("deepwork.models", "deepwork.api") and "history" in names:
                return True
    return False


def test_one_module_says_what_follows_from_a_history_and_the_named_ones_read_or_write_its_entries():
    plugins = (Path(__file__).parent.parent / "plugins").glob("*/src")
    files = {file: root for root in (SOURCE, *plugins) for file in root.rglob("*.py")}
    readers = {
        str(file.relative_to(root)) for file, root in files.items() if reads_entries(ast.parse(file.read_text()))
    }
    assert readers - {"api.py"} == READERS_OF_HISTORY


@pytest.mark.parametrize(
    ("room", "text", "complaint"),
    [
        ("models", "from deepwork.engine.engine import Engine", "models may not import engine"),
        ("models", "import time", "models may not use time"),
        ("engine", "import deepwork.server", "engine may not import server"),
        ("engine", "def f():\n    from fastmcp import FastMCP", "fastmcp does not live in engine"),
        ("loading", "from deepwork.engine import engine", "loading may not import engine"),
        ("builtin", "from deepwork.cli.main import main", "builtin may not import cli"),
        ("builtin", "from deepwork import gate", "builtin may not import gate"),
        ("project", "from deepwork.builtin.people.notifier import Notifier", "project may not import builtin"),
        ("paths", "from deepwork.programs.git import Git", "paths may not import programs"),
        ("cli", "from starlette.applications import Starlette", "starlette does not live in cli"),
        ("server", "import click", "click does not live in server"),
        ("jobs", "import yaml", "yaml does not live in jobs"),
        ("project", "import requests", "requests has no home"),
        ("engine", "from . import begin", "imports are absolute"),
    ],
)
def test_the_checker_sees_what_it_is_for(room, text, complaint):
    assert list(complaints(room, text)) == [complaint]


@pytest.mark.parametrize(
    ("room", "text"),
    [
        ("builtin", "from deepwork import hookimpl\nfrom deepwork.api import Session"),
        ("engine", "from deepwork.engine.replies import Replies\nimport os"),
        ("cli", "import click\nfrom deepwork.server import create_server"),
    ],
)
def test_the_checker_lets_through_what_is_allowed(room, text):
    assert list(complaints(room, text)) == []


@pytest.fixture
def loaded():
    """Return the modules that a statement loads, in a process of its own."""

    def loaded(statement):
        code = f"{statement}\nimport sys\nprint(*sys.modules)"
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return {name.partition(".")[0] for name in process.stdout.split()}

    return loaded


def test_the_package_alone_imports_nothing_heavy(loaded):
    assert not loaded("import deepwork") & {"click", "fastmcp", "pluggy", "pydantic", "yaml"}


def test_a_plugin_that_declares_hooks_does_not_load_the_server(loaded):
    heavy = {"click", "fastmcp", "importlib_metadata", "mcp", "starlette", "uvicorn"}
    assert not loaded("from deepwork import hookimpl\nimport deepwork.api") & heavy


def test_every_name_of_the_api_exists_and_is_listed_once():
    from deepwork import api

    assert api.__all__ == sorted(set(api.__all__)) == sorted(api._MODULES)
    assert [name for name in api.__all__ if not hasattr(api, name)] == []


def test_a_name_that_has_moved_says_where_it_is():
    from deepwork import api

    assert len(api.__all__) <= 90
    for name, module in api.MOVED.items():
        with pytest.raises(ImportError, match=f"write `from {re.escape(module)} import {name}`"):
            getattr(api, name)
        assert hasattr(importlib.import_module(module), name)
