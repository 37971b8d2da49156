"""What starts a run again by itself: a service of systemd, or a line of cron."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from deepwork.text import one_line

# A run that is complete, aborted or stopped, or waits for a decision of a person, is not started again. One that has
# failed is: its database may have been away.
FINAL = "0 2 4 5 6 8 130"


def units(command: Sequence[str], folder: str, about: str, path: str) -> str:
    """Return a unit of systemd and a line of cron for a command, which finds programs in `path`."""
    words = " ".join(map(_systemd_word, command))
    line = shlex.join(command).replace("%", "\\%")
    return f"""\
# ~/.config/systemd/user/deepwork-run.service: systemctl --user enable --now deepwork-run
[Unit]
Description={one_line(about).replace("%", "%%")}

[Service]
WorkingDirectory={folder.replace("%", "%%")}
Environment="PATH={path.replace("%", "%%")}"
ExecStart={words}
Restart=always
RestartSec=60
RestartPreventExitStatus={FINAL}

[Install]
WantedBy=default.target

# The same by cron: every ten minutes; a run that is under way is left alone.
PATH={path}
*/10 * * * * {line}
"""


def _systemd_word(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if escaped and not set(escaped) & set(" \t\"'\\;") else f'"{escaped}"'
