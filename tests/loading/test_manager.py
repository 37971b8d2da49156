from __future__ import annotations

import logging
import sys
from types import ModuleType

import pytest
from pluggy import HookimplMarker

from deepwork.errors import ConfigError, NameClash, PluginLoadError
from deepwork.loading.discovery import Candidate
from deepwork.loading.manager import PluginManager


@pytest.fixture
def status():
    """Return the status of a plugin by its name."""
    return lambda manager, name: next(status for status in manager.statuses if status.plugin.name == name)


def test_an_active_plugin_is_listed_with_its_hooks(install, status):
    install("good")
    acme = status(PluginManager(), "acme")
    assert (acme.status, acme.cause) == ("active", None)
    assert acme.hooks == (
        "deepwork_job_sources",
        "deepwork_review_runners",
        "deepwork_state_stores",
        "deepwork_tool_sets",
    )


@pytest.mark.parametrize(
    ("dist", "plugin", "cause"),
    [
        (
            "importerror",
            "broken",
            "ModuleNotFoundError: No module named 'a_module_that_nobody_has' (broken_import/__init__.py, line 3)",
        ),
        ("exits", "exits", "SystemExit: no licence found (exits_at_import/__init__.py, line 5)"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_left_out_with_its_cause(install, status, dist, plugin, cause):
    install(dist)
    manager = PluginManager()
    assert status(manager, plugin).status == "failed"
    assert status(manager, plugin).cause == cause
    assert manager.failures == [status(manager, plugin)]
    assert status(manager, "workflow_tools").status == "active"


def test_a_plugin_that_cannot_be_imported_is_named_in_the_log(install, caplog):
    install("importerror")
    with caplog.at_level(logging.WARNING):
        PluginManager()
    assert caplog.messages == [
        "deepwork-broken-import 0.3 (plugin 'broken') could not be loaded and is left out: "
        "ModuleNotFoundError: No module named 'a_module_that_nobody_has' (broken_import/__init__.py, line 3)"
    ]


@pytest.mark.parametrize("name", ["clash_runner", "deepwork-clash-runner"])
def test_a_plugin_is_blocked_by_its_own_name_or_its_distributions_and_not_imported(install, status, name):
    install("clash_runner")
    sys.modules.pop("clash_runner", None)
    assert status(PluginManager(blocked=[name]), "clash_runner").status == "blocked"
    assert "clash_runner" not in sys.modules


def test_builtins_can_be_blocked(status):
    manager = PluginManager(blocked=["memory_store"])
    assert status(manager, "memory_store").status == "blocked"
    assert status(manager, "json_store").status == "active"


def test_two_plugins_of_one_name_are_both_left_out_and_refused(install, status):
    install("twin_a", "twin_b")
    manager = PluginManager()
    assert [(str(status.plugin), status.cause) for status in manager.failures] == [
        ("deepwork-twin-a 1.0 (plugin 'twin')", "the name 'twin' is used by 2 distributions"),
        ("deepwork-twin-b 2.0 (plugin 'twin')", "the name 'twin' is used by 2 distributions"),
    ]
    with pytest.raises(NameClash):
        manager.demand()


def test_blocking_one_of_two_twins_lets_the_other_in(install):
    install("twin_a", "twin_b")
    manager = PluginManager(blocked=["deepwork-twin-b"])
    manager.demand()
    assert [(str(status.plugin), status.status) for status in manager.statuses if status.plugin.name == "twin"] == [
        ("deepwork-twin-b 2.0 (plugin 'twin')", "blocked"),
        ("deepwork-twin-a 1.0 (plugin 'twin')", "active"),
    ]


@pytest.mark.parametrize("name", ["broken", "deepwork-broken-import"])
def test_a_required_plugin_that_cannot_be_imported_is_fatal(install, name):
    install("importerror")
    with pytest.raises(PluginLoadError) as error:
        PluginManager(required=[name]).demand()
    assert error.value.message == (
        "deepwork-broken-import 0.3 (plugin 'broken') is required and could not be loaded: "
        "ModuleNotFoundError: No module named 'a_module_that_nobody_has' (broken_import/__init__.py, line 3)"
    )


@pytest.mark.parametrize("blocked", [[], ["acme"]], ids=["missing", "blocked"])
def test_a_required_plugin_that_is_missing_or_blocked_is_fatal(install, blocked):
    if blocked:
        install("good")
    with pytest.raises(ConfigError) as error:
        PluginManager(blocked=blocked, required=["acme"]).demand()
    assert error.value.message == "plugins.require names 'acme', which is not installed or is blocked"
    assert error.value.hint == "Install the distribution, or take 'acme' out of plugins.require."


def test_strictly_a_plugin_that_cannot_be_imported_is_fatal(install):
    install("importerror")
    PluginManager().demand()
    with pytest.raises(PluginLoadError) as error:
        PluginManager(strict=True).demand()
    assert error.value.message == (
        "deepwork-broken-import 0.3 (plugin 'broken') could not be loaded, and DEEPWORK_STRICT_PLUGINS is set: "
        "ModuleNotFoundError: No module named 'a_module_that_nobody_has' (broken_import/__init__.py, line 3)"
    )


@pytest.mark.parametrize("dist", ["unknown_hook", "wrong_argument"])
def test_a_plugin_that_uses_a_hook_wrongly_is_listed_as_failed(install, status, dist):
    install(dist)
    assert status(PluginManager(), dist).status == "failed"


def test_a_required_plugin_that_is_there_is_fine(install, status):
    install("good")
    manager = PluginManager(required=["acme", "acme-tracker", "deepwork"])
    manager.demand()
    assert status(manager, "acme").status == "active"


def test_two_managers_know_nothing_of_each_other(install, status):
    without = PluginManager()
    install("good")
    with_acme = PluginManager()
    assert status(with_acme, "acme").status == "active"
    assert "acme" not in [status.plugin.name for status in without.statuses]


def test_a_hook_of_a_newer_core_may_be_marked_optional_and_is_ignored(status):
    module = ModuleType("newer")

    @HookimplMarker("deepwork")(optionalhook=True)
    def deepwork_teleports():
        yield "a teleport"

    module.deepwork_teleports = deepwork_teleports
    manager = PluginManager(candidates=[Candidate("newer", "deepwork-newer", "9.0", lambda: module)])
    manager.demand()
    assert (status(manager, "newer").status, status(manager, "newer").hooks) == ("active", ())
