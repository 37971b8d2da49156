"""What every plugin has to do, whatever it offers."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import click
import pytest
from click.testing import CliRunner
from fastmcp import Client

from deepwork.api import Finding, ReviewRunner, StateStore
from deepwork.config import load_config
from deepwork.house import House
from deepwork.loading.contexts import ContextOf, contexts
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager, Provided
from deepwork.server import create_server
from deepwork.testing.contracts.contract import Contract

IMPORTER = Path(__file__).with_name("importer.py")
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class PluginContract(Contract):
    """Set `plugin` to the name of your entry point. The distribution has to be installed."""

    plugin: ClassVar[str]

    @pytest.fixture(autouse=True)
    def nobodys_configuration(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Keep the configuration of the person who runs the tests out of them."""
        for name in [name for name in os.environ if name.startswith("DEEPWORK_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    @pytest.fixture
    def candidate(self) -> Candidate:
        """The plugin, as the core finds it."""
        found = [one for one in installed() if one.name == self.plugin]
        assert found, f"no installed distribution has an entry point {self.plugin!r} in the group 'deepwork'"
        return found[0]

    @pytest.fixture
    def plugins(self, candidate: Candidate) -> PluginManager:
        """The core's own plugins and this one."""
        builtin = [one for one in installed() if one.builtin and one.name != self.plugin]
        return PluginManager(strict=True, candidates=[*builtin, candidate])

    @pytest.fixture
    def house(self, plugins: PluginManager, tmp_path: Path) -> House:
        """An empty project without any configuration, with this plugin."""
        root = tmp_path / "house"
        root.mkdir()
        plugins.demand()
        return House(root, plugins=plugins)

    @pytest.fixture
    def context_of(self, house: House) -> ContextOf:
        """What the core tells each plugin in that project."""
        return contexts(load_config(house.workspace.root, os.environ), house.shared)

    # Loading

    def test_it_is_installed_under_its_name(self) -> None:
        assert [one.name for one in installed() if one.name == self.plugin] == [self.plugin]

    def test_it_can_be_loaded(self, plugins: PluginManager) -> None:
        [status] = [status for status in plugins.statuses if status.plugin.name == self.plugin]
        assert (status.status, status.cause) == ("active", None)
        plugins.demand()

    def test_it_offers_something(self, plugins: PluginManager) -> None:
        [status] = [status for status in plugins.statuses if status.plugin.name == self.plugin]
        assert status.hooks, "the module of the entry point has no hook; is @hookimpl missing?"

    def test_importing_it_prints_nothing(self, tmp_path: Path) -> None:
        process, _ = _imported(self.plugin, tmp_path)
        assert (process.stdout, process.stderr) == ("", "")

    def test_importing_it_starts_no_thread(self, tmp_path: Path) -> None:
        _, report = _imported(self.plugin, tmp_path)
        assert report["threads"] == []

    def test_importing_it_imports_no_other_library(self, tmp_path: Path) -> None:
        """Every command of the terminal loads the plugin: it imports what is heavy inside of its hooks."""
        _, report = _imported(self.plugin, tmp_path)
        own = {report["module"].partition(".")[0], "deepwork"}
        tops = {name.partition(".")[0] for name in report["modules"]}
        others = {name for name in tops - own if not name.startswith(("deepwork_", "_"))}
        assert sorted(others - set(sys.stdlib_module_names)) == []

    @pytest.mark.parametrize("by", ["name", "distribution"])
    def test_it_can_be_blocked(self, candidate: Candidate, tmp_path: Path, by: str) -> None:
        """When it is blocked, nothing of the same distribution imports it all the same."""
        _, alone = _imported(self.plugin, tmp_path)
        _, report = _imported(self.plugin, tmp_path, blocked=getattr(candidate, by))
        assert alone["module"] not in report["modules"]

    # Declaring

    def test_it_declares_what_it_has_without_settings(self, house: House, context_of: ContextOf) -> None:
        _declared(house, context_of)

    def test_declaring_prints_nothing(
        self, house: House, context_of: ContextOf, capfd: pytest.CaptureFixture[str]
    ) -> None:
        capfd.readouterr()
        _declared(house, context_of)
        said = capfd.readouterr()
        assert (said.out, said.err) == ("", "")

    def test_it_declares_the_same_every_time(self, house: House, context_of: ContextOf) -> None:
        assert _names(_declared(house, context_of)) == _names(_declared(house, context_of))

    def test_what_it_offers_can_be_made(self, house: House, plugins: PluginManager, context_of: ContextOf) -> None:
        for store in _mine(self, plugins.state_stores(context_of)):
            assert isinstance(store.open(house.workspace), StateStore), f"store {store.name!r}"
        for runner in _mine(self, plugins.review_runners(context_of)):
            assert isinstance(runner.create(), ReviewRunner), f"runner {runner.name!r}"

    def test_its_tools_are_named_and_described(
        self, house: House, plugins: PluginManager, context_of: ContextOf
    ) -> None:
        for tool_set in _mine(self, plugins.tool_sets(context_of, house.engine(None))):
            for tool in tool_set.tools:
                assert TOOL_NAME.fullmatch(f"{tool_set.prefix or ''}{tool.name}"), f"{tool.name!r} is no name of a tool"
                assert tool.title, f"tool {tool.name!r} has no title"
                assert inspect.getdoc(tool.fn), f"tool {tool.name!r} has no docstring, which agents would read"

    def test_its_commands_explain_themselves(self, plugins: PluginManager) -> None:
        for command in _mine(self, plugins.commands(click.Command)):
            assert command.name
            assert command.help, f"command {command.name!r} has no help"
            assert CliRunner().invoke(command, ["--help"]).exit_code == 0

    def test_its_checks_find_something_to_say(self, plugins: PluginManager, context_of: ContextOf) -> None:
        """A check of `deepwork doctor` gives findings and raises nothing, also where nothing is set up."""
        for check in _mine(self, plugins.checks(context_of)):
            found = list(check.run())
            assert found, f"check {check.name!r} found nothing, not even that all is well"
            assert all(isinstance(one, Finding) for one in found), f"check {check.name!r} gave {found}"

    async def test_a_server_with_it_starts_and_serves_its_tools(
        self, house: House, plugins: PluginManager, context_of: ContextOf
    ) -> None:
        sets = _mine(self, plugins.tool_sets(context_of, house.engine(None)))
        async with Client(create_server(house.workspace.root, plugins=plugins)) as client:
            served = {tool.name for tool in await client.list_tools()}
        for tool_set in sets:
            assert {f"{tool_set.prefix or ''}{tool.name}" for tool in tool_set.tools} <= served


def _imported(
    plugin: str, folder: Path, *, blocked: str = ""
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Load a plugin, or all but what is blocked, in a process of its own."""
    report = folder / "report.json"
    process = subprocess.run(
        [sys.executable, "-P", str(IMPORTER), plugin, blocked, str(report)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert process.returncode == 0, process.stderr
    return process, json.loads(report.read_text(encoding="utf-8"))


def _declared(house: House, context_of: ContextOf) -> list[Provided[Any]]:
    """Call every hook, as a server and the terminal do."""
    return [
        *house.plugins.job_sources(context_of),
        *house.plugins.state_stores(context_of),
        *house.plugins.review_runners(context_of),
        *house.plugins.tool_sets(context_of, house.engine(None)),
        *house.plugins.commands(click.Command),
        *house.plugins.checks(context_of),
    ]


def _names(declared: Iterable[Provided[Any]]) -> list[tuple[str, str, str]]:
    return [(one.by.name, type(one.item).__name__, one.item.name) for one in declared]


def _mine(contract: PluginContract, declared: Iterable[Provided[Any]]) -> list[Any]:
    return [one.item for one in declared if one.by.name == contract.plugin]
