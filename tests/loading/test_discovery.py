from __future__ import annotations

import sys

from deepwork import __version__
from deepwork.loading.discovery import installed
from deepwork.loading.features import FEATURES


def test_the_cores_own_plugins_come_first_with_the_cores_name_and_version():
    first = installed()[: len(FEATURES)]
    assert [plugin.name for plugin in first] == [*FEATURES]
    facts = {(plugin.distribution, plugin.version, plugin.builtin) for plugin in first}
    assert facts == {("deepwork", __version__, True)}


def test_entry_points_follow_by_name_whatever_the_order_of_installation(install):
    install("good", "twin_b", "clash_store", "twin_a")
    mine = [plugin for plugin in installed() if plugin.name in ("acme", "clash_store", "twin")]
    assert [(plugin.name, plugin.distribution, plugin.version) for plugin in mine] == [
        ("acme", "acme-tracker", "2.1"),
        ("clash_store", "deepwork-clash-store", "0.7"),
        ("twin", "deepwork-twin-a", "1.0"),
        ("twin", "deepwork-twin-b", "2.0"),
    ]


def test_finding_plugins_imports_none_of_them(install):
    install("clash_runner")
    sys.modules.pop("clash_runner", None)
    assert "clash_runner" in [plugin.name for plugin in installed()]
    assert "clash_runner" not in sys.modules


def test_a_plugin_is_shown_with_the_distribution_that_people_install(install):
    install("good")
    texts = {plugin.name: str(plugin) for plugin in installed()}
    assert texts["acme"] == "acme-tracker 2.1 (plugin 'acme')"
    assert texts["json_store"] == f"deepwork {__version__} (feature 'json_store')"
