"""The pages as `deepwork dashboard` serves them, and how people come in: for tests of the pages, and their pictures."""

from __future__ import annotations

import re
import subprocess
import sys
import time

from deepwork.testing.wire import PATIENCE


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

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

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
