"""What every plugin has to do."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import click
import pytest
from click.testing import CliRunner
from fastmcp import Client

from deepwork.api import Finding, Job, ReviewRunner, StateStore
from deepwork.cli.features import feature_of
from deepwork.cli.main import COMMANDS
from deepwork.errors import JobLoadError
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.features import FEATURES
from deepwork.loading.manager import PluginManager, Provided
from deepwork.project.project import Project
from deepwork.server import create_server
from deepwork.testing.contracts.contract import Contract
from deepwork.testing.wire import PATIENCE

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
        candidates = [plugin for plugin in installed() if plugin.name == self.plugin]
        assert candidates, f"no installed distribution has an entry point {self.plugin!r} in the group 'deepwork'"
        return candidates[0]

    @pytest.fixture
    def plugins(self, candidate: Candidate) -> PluginManager:
        """The core's own plugins and this one."""
        builtin = [plugin for plugin in installed() if plugin.builtin and plugin.name != self.plugin]
        return PluginManager(strict=True, candidates=[*builtin, candidate])

    @pytest.fixture
    def project(self, plugins: PluginManager, tmp_path: Path) -> Project:
        """An empty project without any configuration, with this plugin."""
        root = tmp_path / "project"
        root.mkdir()
        plugins.demand()
        return Project(root, plugins=plugins)

    # Loading

    def test_it_is_installed_under_its_name(self) -> None:
        assert [plugin.name for plugin in installed() if plugin.name == self.plugin] == [self.plugin]

    def test_it_can_be_loaded(self, plugins: PluginManager) -> None:
        [status] = [status for status in plugins.statuses if status.plugin.name == self.plugin]
        assert (status.status, status.cause) == ("active", None)
        plugins.demand()

    def test_it_offers_something(self, plugins: PluginManager) -> None:
        [status] = [status for status in plugins.statuses if status.plugin.name == self.plugin]
        assert status.hooks, "the module of the entry point has no hook; is @hookimpl missing?"

    def test_importing_it_prints_nothing(self) -> None:
        process, _ = _imported(self.plugin)
        assert (process.stdout, process.stderr) == ("", "")

    def test_importing_it_starts_no_thread(self) -> None:
        _, report = _imported(self.plugin)
        assert report["threads"] == []

    def test_importing_it_imports_no_other_library(self) -> None:
        """Every command of the terminal loads the plugin: it imports what is heavy inside of its hooks."""
        _, report = _imported(self.plugin)
        own_names = {report["module"].partition(".")[0], "deepwork"}
        tops = {name.partition(".")[0] for name in report["modules"]}
        foreign = {name for name in tops - own_names if not name.startswith(("deepwork_", "_"))}
        assert sorted(foreign - set(sys.stdlib_module_names)) == []

    @pytest.mark.parametrize("by", ["name", "distribution"])
    def test_it_can_be_blocked(self, candidate: Candidate, by: str) -> None:
        """When it is blocked, nothing of the same distribution imports it all the same."""
        _, alone = _imported(self.plugin)
        _, report = _imported(blocked=getattr(candidate, by))
        assert alone["module"] not in report["modules"]

    # Declaring

    def test_it_declares_what_it_has_without_settings(self, project: Project) -> None:
        _declared(project)

    def test_declaring_prints_nothing(self, project: Project, capfd: pytest.CaptureFixture[str]) -> None:
        capfd.readouterr()
        _declared(project)
        printed = capfd.readouterr()
        assert (printed.out, printed.err) == ("", "")

    def test_it_declares_the_same_every_time(self, project: Project) -> None:
        assert _names(_declared(project)) == _names(_declared(Project(project.workspace.root, plugins=project.plugins)))

    def test_what_it_offers_can_be_made(self, project: Project) -> None:
        for store in _mine(self, project.state_stores.demand()):
            assert isinstance(store.open(project.workspace), StateStore), f"store {store.name!r}"
        for runner in _mine(self, project.review_runners.demand()):
            assert isinstance(runner.create(), ReviewRunner), f"runner {runner.name!r}"
        for source in _mine(self, project.job_sources.demand()):
            strange = [item for item in source.load() if not isinstance(item, Job | JobLoadError)]
            assert strange == [], f"job source {source.name!r}"

    def test_its_tools_are_named_and_described(self, project: Project, plugins: PluginManager) -> None:
        for tool_set in _mine(self, project.tool_sets(project.engine()).demand()):
            for tool in tool_set.tools:
                assert TOOL_NAME.fullmatch(f"{tool_set.prefix or ''}{tool.name}"), f"{tool.name!r} cannot name a tool"
                assert tool.title, f"tool {tool.name!r} has no title"
                assert inspect.getdoc(tool.fn), f"tool {tool.name!r} has no docstring, which agents would read"

    def test_its_commands_explain_themselves(self, plugins: PluginManager) -> None:
        for command in _mine(self, plugins.ask("deepwork_commands", click.Command).demand()):
            assert command.name
            assert command.help, f"command {command.name!r} has no help"
            assert CliRunner().invoke(command, ["--help"]).exit_code == 0

    def test_its_commands_have_names_of_their_own(self, plugins: PluginManager) -> None:
        own = {name for name, spec in COMMANDS.items() if feature_of(spec) == self.plugin}
        for command in _mine(self, plugins.ask("deepwork_commands", click.Command).demand()):
            adds_to_a_group = self.plugin in FEATURES and isinstance(command, click.Group)
            is_hidden = command.name in COMMANDS.keys() - own
            problem = f"the core has a command {command.name!r}, which hides the plugin's"
            assert adds_to_a_group or not is_hidden, problem

    def test_its_checks_find_something_to_say(self, project: Project) -> None:
        """A check of `deepwork doctor` gives findings and raises nothing, also where nothing is set up."""
        for check in _mine(self, project.checks.demand()):
            findings = list(check.run())
            assert findings, f"check {check.name!r} found nothing, not even that all is well"
            assert all(isinstance(finding, Finding) for finding in findings), f"check {check.name!r} gave {findings}"

    async def test_a_server_with_it_starts_and_serves_its_tools(self, project: Project, plugins: PluginManager) -> None:
        sets = _mine(self, project.tool_sets(project.engine()).demand())
        async with Client(create_server(project.workspace.root, plugins=plugins)) as client:
            served = {tool.name for tool in await client.list_tools()}
        for tool_set in sets:
            assert {f"{tool_set.prefix or ''}{tool.name}" for tool in tool_set.tools} <= served


def _imported(plugin: str = "", *, blocked: str = "") -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Load a plugin, or all but what is blocked, in a process of its own."""
    return _imported_from(os.pathsep.join(path for path in sys.path if path), plugin, blocked)


@functools.cache
def _imported_from(path: str, plugin: str, blocked: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Do so once for all tests that ask: the process knows nothing of a test but where packages are."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        process = subprocess.run(
            [sys.executable, "-P", str(IMPORTER), plugin, blocked, str(report)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert process.returncode == 0, process.stderr
        return process, json.loads(report.read_text(encoding="utf-8"))


def _declared(project: Project) -> list[Provided[Any]]:
    """Call every hook, as a server and the terminal do."""
    return [
        *project.job_sources.demand(),
        *project.state_stores.demand(),
        *project.review_runners.demand(),
        *project.tool_sets(project.engine()).demand(),
        *project.plugins.ask("deepwork_commands", click.Command).demand(),
        *project.checks.demand(),
    ]


def _names(declared: Iterable[Provided[Any]]) -> list[tuple[str, str, str]]:
    return [(provided.by.name, type(provided.item).__name__, provided.item.name) for provided in declared]


def _mine(contract: PluginContract, declared: Iterable[Provided[Any]]) -> list[Any]:
    return [provided.item for provided in declared if provided.by.name == contract.plugin]
