"""Takes the pictures of the dashboard in the docs, of a project on which agents have worked.

python plugins/deepwork_dashboard/tools/pictures.py     write docs/images/dashboard-*.png
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import browsing
import reviewed
import team as teams

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = Path(__file__).parents[3] / "docs" / "images"
SIZE = {"width": 1120, "height": 700}
PHONE = {"width": 380, "height": 700}
WIDE = {"width": 1280, "height": 860}


def main() -> None:
    """Make the project, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=IMAGES, help="where to write (default: docs/images)")
    folder = parser.parse_args().folder
    executable = browsing.chromium()
    if executable is None:
        parser.exit(69, "Error: there is no Chromium; on Debian: apt-get install chromium\n")
    with tempfile.TemporaryDirectory() as temporary:
        team = teams.tell(Path(temporary) / "acme")
        shop, session = reviewed.tell(Path(temporary) / "shop")
        with browsing.launched(executable) as browser:
            with dashboard(team.root) as address:
                for name, (view, scheme, size) in views(address).items():
                    take(browser, address, view, folder / f"dashboard-{name}.png", scheme=scheme, size=size)
            with dashboard(shop.root) as address:
                view = f"#/sessions/{session}/steps/plan"
                take(browser, address, view, folder / "dashboard-piece.png", scheme="light", size=WIDE)


def take(browser: Browser, address: str, view: str, file: Path, *, scheme: Any, size: Any) -> None:
    """Take the picture of a view."""
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    page.goto(address)
    page.locator("main h1").wait_for()
    page.goto(f"{address.partition('#')[0]}{view}")
    page.locator("main h1").wait_for()
    page.locator(".loading").first.wait_for(state="detached")
    page.get_by_title("Live").wait_for()
    page.wait_for_timeout(300)  # for the drawing of a plan, which has no end to wait for
    page.screenshot(path=file)
    print(f"{file.name}: {file.stat().st_size / 1024:.0f} KiB")
    context.close()


@contextmanager
def dashboard(root: Path) -> Iterator[str]:
    """Start `deepwork dashboard`, and yield its address with the token."""
    token, tokens = secrets.token_urlsafe(32), root.parent / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text(f"local {token} person\n")
    command = [sys.executable, "-m", "deepwork", "dashboard", "--port", "0", "--path", str(root)]
    command += ["--token-file", str(tokens)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout
    match = re.search(r"http\S+", process.stdout.readline())
    assert match, "the dashboard does not start"
    try:
        yield f"{match[0]}#token={token}"
    finally:
        process.terminate()
        process.wait(30)


def read(address: str, path: str) -> Any:
    """Return what the dashboard answers to a GET."""
    base, _, token = address.partition("#token=")
    with urlopen(Request(base + path, headers={"Authorization": f"Bearer {token}"})) as answer:
        return json.load(answer)


def views(address: str) -> dict[str, tuple[str, str, dict[str, int]]]:
    """Return the view, the theme and the size of each picture."""
    sessions = {session["goal"]: session["id"] for session in read(address, "api/sessions")["items"]}
    [plan] = [plan["id"] for plan in read(address, "api/plans")["items"] if "billing" in plan["name"]]
    tasks = {row[1]: row[0] for row in read(address, f"api/plans/{plan}/graph")["rows"]}
    return {
        "inbox": ("#/inbox", "light", SIZE),
        "session": (f"#/sessions/{sessions['Explain the growth of storage costs']}?step=draft", "light", SIZE),
        "plan": (f"#/plans/{plan}?task={tasks['Reconcile sums']}", "dark", SIZE),
        "phone": ("#/overview", "light", PHONE),
    }


if __name__ == "__main__":
    main()
