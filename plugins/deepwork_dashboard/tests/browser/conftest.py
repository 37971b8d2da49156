"""A real browser, real servers, and agents whose calls fill them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import browsing
import team as teams

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


class Dashboard:
    """`deepwork dashboard` as a process, which can be killed and started again at the same port with the same token."""

    TOKEN = "0123456789abcdef-the-token-of-tests"

    def __init__(self, root, folder, *, command=("dashboard",), mount="/"):
        self.root = root
        self.command = command
        self.mount = mount
        self.token_file = folder / "tokens"
        self.token_file.write_text(f"local {self.TOKEN} person\n")
        self.token_file.chmod(0o600)
        self.log = folder / "dashboard.log"
        self.port = 0
        self.process = None

    def start(self):
        command = [sys.executable, "-m", "deepwork", *self.command, "--path", str(self.root), "--port", str(self.port)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--token-file", str(self.token_file)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(r"http://[\w.]+:(\d+)", self.log.read_text())):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)
        self.port = int(match[1])
        return self

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}{self.mount}"

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()

    def enter(self, page, address="#/inbox"):
        """Log in as people do, by the address that the terminal shows, and go to a view."""
        page.goto(f"{self.url}#token={self.TOKEN}")
        page.get_by_role("heading", level=1, name="Inbox").wait_for()
        self.open(page, address)

    def enter_again(self, page):
        """Log in on the page that says that the login has ended, as after every start of the server."""
        page.get_by_role("heading", name="Your login has ended").wait_for()
        page.get_by_label("Or paste the token").fill(self.TOKEN)
        page.get_by_role("button", name="Log in").click()

    def open(self, page, address):
        """Go to a view, and wait until the page shows it and has read what belongs to it."""
        page.goto(f"{self.url}{address}")
        if address:
            self.shows(page, address)
        page.locator("main h1").first.wait_for()

    @staticmethod
    def shows(page, address):
        written_address = re.sub(r'[ "<>`]', lambda match: f"%{ord(match[0]):02X}", address)  # as browsers write it
        page.locator(f'main[data-address="{written_address}"][aria-busy=false]').wait_for()


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
