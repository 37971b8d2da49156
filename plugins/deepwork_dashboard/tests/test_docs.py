"""The pages about this plugin name every endpoint and option."""

from __future__ import annotations

import re
from pathlib import Path

from deepwork.api import open_context
from deepwork_dashboard.app import dashboard_app
from deepwork_dashboard.cli import dashboard

REFERENCE = (Path(__file__).parents[3] / "docs/reference/dashboard.md").read_text()


def test_every_endpoint_is_in_the_reference_and_no_other(tmp_path):
    app = dashboard_app(open_context("dashboard", tmp_path), None, None)
    [api] = [route for route in app.routes if route.path == "/api"]
    served = {re.sub(r"{\w+}", "…", f"api{route.path}") for route in api.routes}
    named = {re.sub(r"[A-Z]{2,}", "…", path) for path in re.findall(r"`(?:GET|POST) (api/[\w/]+)`", REFERENCE)}
    named |= {f"api/work/…/{kind}" for kind in re.findall(r"`…/(\w+)`", REFERENCE)}
    assert served == named


def test_every_option_is_in_the_reference():
    options = [option for parameter in dashboard.params for option in parameter.opts if option.startswith("--")]
    assert [option for option in options if f"| `{option}" not in REFERENCE] == []
