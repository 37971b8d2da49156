from __future__ import annotations

import sys

from deepwork import __version__
from deepwork.loading.discovery import BUILTINS, installed


def test_the_cores_own_plugins_come_first_with_the_cores_name_and_version():
    first = installed()[: len(BUILTINS)]
    assert [one.name for one in first] == sorted(BUILTINS)
    assert {(one.distribution, one.version, one.builtin) for one in first} == {("deepwork", __version__, True)}


def test_entry_points_follow_by_name_whatever_the_order_of_installation(install):
    install("good", "twin_b", "clash_store", "twin_a")
    mine = [one for one in installed() if one.name in ("acme", "clash_store", "twin")]
    assert [(one.name, one.distribution, one.version) for one in mine] == [
        ("acme", "acme-tracker", "2.1"),
        ("clash_store", "deepwork-clash-store", "0.7"),
        ("twin", "deepwork-twin-a", "1.0"),
        ("twin", "deepwork-twin-b", "2.0"),
    ]


def test_finding_plugins_imports_none_of_them(install):
    install("clash_runner")
    sys.modules.pop("clash_runner", None)
    assert "clash_runner" in [one.name for one in installed()]
    assert "clash_runner" not in sys.modules


def test_a_plugin_is_shown_with_the_distribution_that_people_install(install):
    install("good")
    shown = {one.name: str(one) for one in installed()}
    assert shown["acme"] == "acme-tracker 2.1 (plugin 'acme')"
    assert shown["json_store"] == f"deepwork {__version__} (builtin.json_store)"
