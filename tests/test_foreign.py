"""Each name of another library that it does not promise is still there, stands in one module, and is missed at once."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.version import Version

import deepwork
from deepwork import foreign
from deepwork.errors import DeepWorkError
from deepwork.foreign import NAMES, TESTED, demand, missing

SOURCE = Path(deepwork.__file__).parent
ROOT = Path(__file__).parent.parent
NEEDED = [name for name in NAMES if set(name.transports) & {"http", "sse"}]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: f"{name.library}-{name.path}")
def test_the_installed_release_has_the_name(name):
    assert name.is_there()


@pytest.mark.parametrize("name", NAMES, ids=lambda name: f"{name.library}-{name.path}")
def test_a_name_that_has_been_renamed_is_missing(name):
    renamed = [replace(name, name=f"{name.name}_x"), replace(name, owner=f"{name.owner}X"), replace(name, owner="x:Y")]
    assert missing(renamed) == renamed


@pytest.mark.parametrize("name", NEEDED, ids=lambda name: f"{name.library}-{name.path}")
def test_http_is_refused_where_a_limit_or_a_stack_would_be_lost_in_silence(monkeypatch, name):
    renamed = replace(name, name=f"{name.name}_x")
    monkeypatch.setattr(foreign, "NAMES", (renamed,))
    [transport, *_] = name.transports
    with pytest.raises(DeepWorkError, match=rf"cannot be served over {transport}: it lacks {renamed.path}") as refusal:
        demand(transport)
    assert f"another release of {name.library}, for instance" in refusal.value.hint
    demand("stdio")


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_server_that_lacks_a_name_ends_at_its_start_with_one_sentence(project, transport):
    """No port is opened: the library does not have the name that the server reads the owners of sessions from."""
    program = (
        "import dataclasses, sys\n"
        "from deepwork import foreign\n"
        "servers = next(name for name in foreign.NAMES if name.name == 'servers')\n"
        "foreign.NAMES = [dataclasses.replace(servers, name='gone')]\n"
        f"sys.argv = ['deepwork', 'serve', '--transport={transport}', '--port=0', '--path', {str(project.root)!r}]\n"
        "from deepwork.__main__ import run\n"
        "sys.exit(run())\n"
    )
    process = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 1
    assert f"uvicorn {version('uvicorn')} cannot be served over {transport}: it lacks Server.gone" in process.stderr
    assert "Traceback" not in process.stderr


def test_the_first_list_of_tools_imports_no_store_of_session_state(project):
    """If FastMCP stopped reading `_state_store`, the start would take a fifth longer, and only this would tell."""
    client = {"name": "t", "version": "1"}
    handshake = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": handshake},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    command = [sys.executable, "-X", "importtime", "-P", "-m", "deepwork", "serve", "--path", str(project.root)]
    lines = "".join(f"{json.dumps(message)}\n" for message in messages)
    process = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120, check=True)
    assert "start_workflow" in process.stdout
    assert "deepwork.server.project_server" in process.stderr
    assert not re.search(r"\| +(beartype|key_value)\b", process.stderr)


def test_doctor_counts_the_names_and_says_which_is_gone(invoke, monkeypatch):
    report = invoke("doctor")
    assert f"{len(NAMES)} of {len(NAMES)} names are there which other libraries do not promise" in report.out
    slow, limit = (
        next(name for name in NAMES if name.name == name_of_library) for name_of_library in ("_state_store", "servers")
    )
    monkeypatch.setattr(foreign, "NAMES", (replace(slow, name="gone"), replace(limit, name="lost")))
    report_without = invoke("doctor")
    assert report_without.code == 1
    assert re.search(r"! fastmcp \S+ lacks FastMCP.gone, needed for a quick start", report_without.out)
    assert re.search(r"✗ uvicorn \S+ lacks Server.lost, needed for an end in order", report_without.out)
    assert "install uvicorn" in report_without.out


def test_the_releases_that_a_refusal_names_are_those_of_the_lock():
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    assert {name: Version(release) for name, release in TESTED.items()} == {
        name: Version(locked[name]) for name in TESTED
    }


def private_names(text):
    """Yield private names that a module asks other objects for by a string, which the linter does not see."""
    tree = ast.parse(text)
    own = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            asked_names = node.args[1:2] if called.endswith("attr") else node.args[:1] if called == "attrgetter" else ()
            names = [argument.value for argument in asked_names if isinstance(argument, ast.Constant)]
            yield from (name for name in names if re.match(r"_(?!_)", str(name)) and name not in own)


def test_no_other_module_asks_for_a_private_name_by_a_string():
    names_of = {file.name: [*private_names(file.read_text())] for file in SOURCE.rglob("*.py")}
    assert {*names_of.pop("foreign.py")} == {"_mcp_server", "_request_futures"}
    assert {name: asked_names for name, asked_names in names_of.items() if asked_names} == {}


def test_no_class_of_ours_overrides_a_private_name_of_another_library():
    """An override is lost in silence when the other library renames what it overrides."""
    listed = {name.name for name in NAMES}
    for kind in foreign_subclasses():
        theirs = {name for base in kind.__mro__ if is_foreign(base) for name in vars(base) if re.match(r"_(?!_)", name)}
        overridden = theirs & {name for name in vars(kind) if not name.startswith(("_abc_", "__"))}
        assert overridden <= listed, f"{kind.__qualname__} overrides {overridden - listed}"


def is_foreign(kind):
    return kind.__module__.partition(".")[0] in {"fastmcp", "mcp", "starlette", "uvicorn", "sse_starlette"}


def foreign_subclasses():
    import deepwork.builtin.http.app
    import deepwork.server.build  # noqa: F401

    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "deepwork"]
    kinds = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    subclasses = [
        kind for kind in kinds if kind.__module__.startswith("deepwork") and any(map(is_foreign, kind.__mro__))
    ]
    assert {"ProjectServer", "HttpProtocol", "CallMiddleware"} <= {kind.__name__ for kind in subclasses}
    return subclasses


@pytest.mark.parametrize("text", ["getattr(x, '_y')", "hasattr(x, '_y')", "setattr(x, '_y', 1)", "attrgetter('_y')(x)"])
def test_the_search_finds_what_it_is_for(text):
    assert list(private_names(text)) == ["_y"]


def test_the_search_lets_dunder_names_and_public_ones_through():
    assert list(private_names("getattr(x, '__name__', x); getattr(x, 'y')")) == []


def test_the_search_lets_attributes_through_that_the_module_sets_itself():
    assert list(private_names("self._y = 1; hasattr(self, '_y')")) == []
