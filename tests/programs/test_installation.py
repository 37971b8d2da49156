"""How an environment names the route that brought deepwork into it, and the command for a newer one."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata

import pytest

from deepwork.programs import installation as module
from deepwork.programs.installation import installation, installed_extras

WHEEL = "file:///srv/dist/deepwork-1.0.0.dev0-py3-none-any.whl"
NEEDS = [
    "click>=8",
    "pytest>=8; extra == 'testing'",
    "deepwork-review @ file:///srv/dist/r.whl ; extra == 'review'",
    "deepwork-sql @ file:///srv/dist/s.whl ; extra == 'sql'",
    "deepwork-sql[postgresql] @ file:///srv/dist/s.whl ; extra == 'postgresql'",
    "deepwork-review @ file:///srv/dist/r.whl ; extra == 'all'",
    "deepwork-sql @ file:///srv/dist/s.whl ; extra == 'all'",
]


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Pretend that these plugins are installed, and that an installer has left this record."""

    def installed(record, plugins=(), needs=NEEDS, **files):
        class Distribution:
            def read_text(self, name):
                return json.dumps(record) if record and name == "direct_url.json" else None

        def distribution(name):
            if name != "deepwork" and name not in plugins:
                raise metadata.PackageNotFoundError(name)
            return Distribution()

        monkeypatch.setattr(module.metadata, "distribution", distribution)
        monkeypatch.setattr(module.metadata, "requires", lambda _: needs)
        monkeypatch.setattr(module.metadata, "version", lambda _: "1.2")
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        return tmp_path

    return installed


@pytest.mark.parametrize(
    ("plugins", "extras"),
    [((), []), (("deepwork-review",), ["review"]), (("deepwork-review", "deepwork-sql"), ["all"])],
)
def test_the_extras_are_those_whose_plugins_are_all_installed(installed, plugins, extras):
    installed({"url": WHEEL}, plugins)
    assert installed_extras() == extras


@pytest.mark.parametrize(
    ("record", "requirement"),
    [
        ({"url": WHEEL, "archive_info": {}}, f"deepwork[review] @ {WHEEL}"),
        (
            {"url": "https://e.org/d", "vcs_info": {"vcs": "git", "commit_id": "abc", "requested_revision": "v1"}},
            "deepwork[review] @ git+https://e.org/d@v1",
        ),
        (
            {"url": "https://e.org/d", "vcs_info": {"vcs": "git", "commit_id": "abc"}, "subdirectory": "core"},
            "deepwork[review] @ git+https://e.org/d@abc#subdirectory=core",
        ),
        (None, None),
    ],
)
def test_the_same_release_comes_from_where_this_one_came(installed, record, requirement):
    prefix = installed(record, ["deepwork-review"])
    assert installation({}, prefix).requirement == requirement


def test_a_release_that_an_index_has_is_named_with_its_version(installed):
    prefix = installed(None, ["deepwork-review"], ["deepwork-review==1.2; extra == 'review'"])
    assert installation({}, prefix).requirement == "deepwork[review]==1.2"


@pytest.mark.parametrize(
    ("files", "route", "upgrade"),
    [
        ({"uv-receipt.toml": ""}, "uv tool", f"uv tool install --force --refresh 'deepwork @ {WHEEL}'"),
        ({"pipx_metadata.json": ""}, "pipx", f"pipx install --force 'deepwork @ {WHEEL}'"),
        ({}, "pip", f"{shlex.quote(sys.executable)} -m pip install --upgrade 'deepwork @ {WHEEL}'"),
        (
            {module.RECEIPT: '{"route": "checkout", "upgrade": "make -C /srv install"}'},
            "checkout",
            "make -C /srv install",
        ),
        ({module.RECEIPT: "{"}, "pip", f"{shlex.quote(sys.executable)} -m pip install --upgrade 'deepwork @ {WHEEL}'"),
    ],
)
def test_what_an_installer_leaves_tells_the_route(installed, files, route, upgrade):
    prefix = installed({"url": WHEEL, "archive_info": {}}, **files)
    own = installation({"UV_CACHE_DIR": "/nowhere"}, prefix)
    assert (own.route, own.upgrade, own.is_passing) == (route, upgrade, False)


@pytest.mark.parametrize(
    ("variable", "below", "route", "installer"),
    [("UV_CACHE_DIR", "", "uvx", "uv tool install"), ("PIPX_HOME", ".cache", "pipx run", "pipx install")],
)
def test_an_environment_in_a_cache_is_a_passing_one(installed, tmp_path, variable, below, route, installer):
    prefix = installed({"url": WHEEL, "archive_info": {}}, ["deepwork-sql"])
    inside = prefix / below / "archive" if below else prefix / "archive"
    own = installation({variable: str(tmp_path)}, inside)
    assert (own.route, own.is_passing) == (route, True)
    assert " ".join(own.keeping_command) == f"{installer} deepwork[sql] @ {WHEEL}"


def test_nothing_is_named_to_an_index_while_nobody_knows_from_where_it_came(installed):
    own = installation({}, installed(None))
    assert (own.upgrade, own.keeping_command) == (None, None)
