"""Tests are found by the path of their module: those of `src/PKG/a/b.py` are in `tests/a/test_b.py`, or named here."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
# At least so many modules have a test file of their own: the number may only grow.
FOUND = 260
# Modules that only declare, and modules that are tested through a door: where, and why there.
ELSEWHERE = {
    "deepwork/api.py": ("tests/test_distributions.py", "a list of names"),
    "deepwork/hookspecs.py": ("tests/hooks", "signatures; each hook has a test of its own"),
    "deepwork/models/*": ("tests", "shapes: the rooms that use them test them"),
    "deepwork/ports/*": ("tests/testing", "promises: the contracts of the kit test what fulfils them"),
    "deepwork/testing/*": ("tests/testing", "the kit: it is run on our own parts and on planted faults"),
    "deepwork/builtin/authoring/*": ("tests/builtin/authoring", "parts of the commands for jobs, tested by command"),
    "deepwork/builtin/clients/*": ("tests/builtin/clients", "parts of connect, hook and status, tested by command"),
    "deepwork/builtin/demo/*": ("tests/builtin/demo", "three acts, played by command"),
    "deepwork/builtin/json_store/*": ("tests/builtin/json_store", "parts of one store, tested by what reads its files"),
    "deepwork/builtin/http/*": ("tests/builtin/http", "layers of one server, tested over real connections"),
    "deepwork/builtin/people/*": ("tests/builtin/people", "parts of the inbox, tested by its command and notifier"),
    "deepwork/builtin/proofs/*": ("tests/builtin/proofs", "parts of a proof, tested by gates that are tried"),
    "deepwork/builtin/upkeep/*": ("tests/builtin/upkeep", "parts of commands, tested by command"),
    "deepwork/builtin/workflow_tools/*": ("tests/requirements", "the four tools: each clause has its test"),
    "deepwork/cli/*": ("tests/cli", "parts of commands, tested by the command that uses them"),
    "deepwork/commands/*": ("tests/cli", "parts of commands, tested by the commands that use them"),
    "deepwork/documents/*": ("tests/documents/test_document.py", "one door: read_document and its problems"),
    "deepwork/engine/*": ("tests/engine", "parts of the four calls, tested by calls of an agent"),
    "deepwork/gate/*": ("tests/gate", "parts of a judgement, tested by calls with reviewers"),
    "deepwork/loading/*": ("tests/builtin/test_left_out.py", "which features are loaded: tested by leaving each out"),
    "deepwork/paths/*": ("tests/paths", "small parts of folders and paths, tested with those"),
    "deepwork/programs/*": ("tests/programs", "parts of running programs and git, tested with real ones"),
    "deepwork/project/*": ("tests/project", "the composition root: tested by what is composed"),
    "deepwork/server/*": ("tests/server", "parts of a call, tested by clients"),
    "deepwork/sessions/*": ("tests/sessions", "parts of one rule about sessions, tested by calls"),
    "deepwork_claude_runner/*": ("plugins/deepwork_claude_runner/tests/test_runner.py", "parts of one runner"),
    "deepwork_dashboard/*": ("plugins/deepwork_dashboard/tests/test_app.py", "endpoints, tested over HTTP"),
    "deepwork_orchestration/*": ("plugins/deepwork_orchestration/tests", "parts of the tools, tested by agents"),
    "deepwork_review/*": ("plugins/deepwork_review/tests", "parts of a plan of reviews"),
    "deepwork_run/*": ("plugins/deepwork_run/tests/test_cli.py", "parts of one command"),
    "deepwork_sql/*": (
        "plugins/deepwork_sql/tests/test_transaction.py",
        "one library, tested on both engines",
    ),
    "deepwork_tracking/*": ("plugins/deepwork_tracking/tests", "parts of the tools, tested by agents"),
}
# Made by a plugin's author, by Alembic, or nothing but an entrance.
LEFT_OUT = {"plugin_template", "packaged_jobs", "migrations", "__init__.py", "__main__.py"}


def packages() -> list[Path]:
    plugins = (path for path in ROOT.glob("plugins/*/src/*") if path.is_dir() and "_template" not in path.parts)
    return [ROOT / "src" / "deepwork", *(path for path in plugins if (path / "__init__.py").exists())]


def modules() -> dict[str, Path]:
    """Return the place of the tests of each module, by the module's name as a path."""
    places = {}
    for package in packages():
        tests = ROOT / "tests" if package.parent.parent == ROOT else package.parents[1] / "tests"
        for module in package.rglob("*.py"):
            path = module.relative_to(package)
            if not LEFT_OUT & set(path.parts):
                places[f"{package.name}/{path}"] = tests / path.parent / f"test_{path.name}"
    return places


def test_each_module_has_its_test_file_or_a_named_place_of_its_tests():
    missing = [name for name, place in modules().items() if not place.exists()]
    assert [name for name in missing if not any(fnmatch(name, pattern) for pattern in ELSEWHERE)] == []
    assert len(modules()) - len(missing) >= FOUND


def test_no_place_that_is_named_is_gone_or_needless():
    missing = [name for name, place in modules().items() if not place.exists()]
    assert [place for place, _ in ELSEWHERE.values() if not (ROOT / place).exists()] == []
    assert [pattern for pattern in ELSEWHERE if not any(fnmatch(name, pattern) for name in missing)] == []
