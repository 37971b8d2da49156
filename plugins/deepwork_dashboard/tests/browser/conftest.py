"""A real browser, real servers, and agents whose calls fill them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import browsing
import team as teams
from served import Dashboard

from deepwork.testing.wire import PATIENCE


@pytest.fixture(scope="module", autouse=True)
def _nobodys_environment(tmp_path_factory):
    """Hide the configuration of the user who runs the tests, and let all plugins in."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("DEEPWORK_", "FASTMCP_", "GIT_")):
                patch.delenv(name)
        home = tmp_path_factory.mktemp("home")
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        yield


@pytest.fixture(scope="module")
def browser():
    """Chromium. Of the module alone, because Playwright's loop would stay in the way of the tests of others."""
    executable = browsing.chromium()
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail("there is no Chromium for the tests of the pages: install the package chromium")
        pytest.skip("THE PAGES ARE NOT TESTED: there is no Chromium; on Debian: apt-get install chromium")
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE * 1000)
    with browsing.launched(executable) as browser:
        yield browser


@pytest.fixture
def new_page(browser):
    """Open a page as a user does: with a window of a size, and a system that is light or dark."""
    contexts = []

    def make(*, width=1280, height=800, scheme="light", **more):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)
        contexts.append(context)
        context.set_default_timeout(PATIENCE * 1000)
        page = context.new_page()
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on(
            "console",
            lambda message: page.faults.append(message.text) if "Content Security Policy" in message.text else None,
        )
        return page

    yield make
    for context in contexts:
        faults = [fault for page in context.pages for fault in getattr(page, "faults", [])]
        context.close()
        assert faults == []


@pytest.fixture
def page(new_page):
    return new_page()


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """Serve the pages of a project until the module ends."""
    served = []

    def start(root, **options):
        dashboard = Dashboard(root, tmp_path_factory.mktemp("served"), **options).start()
        served.append(dashboard)
        return dashboard

    yield start
    for dashboard in served:
        with suppress(ProcessLookupError):
            dashboard.stop()


@pytest.fixture(scope="module")
def make_team(tmp_path_factory):
    """Make a project whose agents a test plays."""
    return lambda **settings: teams.Team(tmp_path_factory.mktemp("project"), **settings)


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A project on which a team has worked: sessions, a plan, tracked work, messages."""
    return teams.tell(tmp_path_factory.mktemp("story") / "acme")


@pytest.fixture(scope="module")
def dashboard(story, serve):
    """The pages of the story."""
    return serve(story.root)


@pytest.fixture(scope="session")
def new_task():
    return teams.task
