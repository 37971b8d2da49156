"""The file that logs a browser in."""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from html import escape
from pathlib import Path

from deepwork.builtin.http.logins import CODE_SECONDS
from deepwork.errors import ConfigError
from deepwork.paths.user_folders import user_state_dir

_FOLDER = "logins"
_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>deepwork</title>
<a href="{address}">Open deepwork</a>
"""


class LoginFile:
    """A page in a private folder of the user that leads on to an address with a code in it.

    Args:
        address: Where it leads.

    Attributes:
        address: That of the file.

    Raises:
        ConfigError: The user's state folder is not to be used, or the file cannot be written.
    """

    def __init__(self, address: str) -> None:
        folder = user_state_dir(os.environ) / _FOLDER
        self._path = folder / f"{secrets.token_hex(8)}.html"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            _remove_old(folder)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(_PAGE.format(address=escape(address)))
        except OSError as error:
            raise ConfigError(
                f"the login file for the browser cannot be written in {str(folder)!r}: {error.strerror}",
                hint="Start it without --open, and open the address that the terminal shows.",
            ) from None
        self.address = self._path.as_uri()

    def remove(self) -> None:
        """Remove it, if it is still there."""
        with suppress(OSError):
            self._path.unlink()


def _remove_old(folder: Path) -> None:
    """Remove what servers that were killed have left: the codes in it are no longer valid."""
    for path in folder.glob("*.html"):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > CODE_SECONDS:
                path.unlink()
