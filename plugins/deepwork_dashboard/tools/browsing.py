"""Drives the Chromium that is installed here: for the tests of the pages, their figures and their pictures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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


def chromium() -> str | None:
    """Give the program, or None if there is none."""
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
