"""Drives the Chromium that is installed here: for the tests of the pages, and their pictures.

Axe, which looks for what keeps people from using a page, comes from the npm registry once, into `.clients`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).parents[1] / "tools"))
import vendored

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# Chromium does not start as root within its sandbox, and what it does by itself would disturb measurements.
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-precise-memory-info",
    "--js-flags=--expose-gc",
)


AXE = "4.14.0"
AXE_HASH = "sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
CACHE = Path(__file__).parents[3] / ".clients"

VIOLATIONS = """() => {
    const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    const words = (node) => `${node.html.slice(0, 160)} ${node.any.map((check) => check.message).join()}`;
    return axe.run(document, {runOnly: rules}).then(({violations}) =>
        violations.map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(words).join(' | ')}`));
}"""
# What moves once is waited for; what turns for ever is not.
ANIMATED = """() => Promise.all(document.getAnimations()
    .filter(({effect}) => effect.getTiming().iterations !== Infinity).map(({finished}) => finished))"""


def axe() -> str:
    """Return the program that checks pages.

    Raises:
        URLError: It is not here yet, and the registry does not answer.
    """
    file = CACHE / f"axe-core-{AXE}.js"
    if not file.exists():
        release, members = vendored.published(vendored.REGISTRY, "axe-core", AXE)
        assert release["dist"]["integrity"] == AXE_HASH, f"axe-core {AXE} is not what it was"
        CACHE.mkdir(exist_ok=True)
        new = file.with_suffix(".new")
        new.write_bytes(members["axe.min.js"])
        new.rename(file)
    return file.read_text()


def chromium() -> str | None:
    """Return the path of the program, or None without one."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def launched(executable: str) -> Iterator[Browser]:
    """Start it without a window, with a fresh profile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


def settle(page: Page) -> None:
    """Wait until nothing moves any more."""
    page.evaluate(ANIMATED)


def violations(page: Page) -> list[str]:
    """Return what axe, which the page has run before, objects to."""
    objections: list[str] = page.evaluate(VIOLATIONS)
    return objections
