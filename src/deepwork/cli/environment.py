"""What `deepwork doctor` says of the environment that runs it: how it was installed, and who runs older code of it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime

import importlib_metadata

from deepwork import __version__, foreign
from deepwork.ports.records import Finding, Level
from deepwork.programs.installation import CORE, Installation

LIBRARIES = ("fastmcp", "mcp", "pydantic", "pluggy", "click", "pyyaml")
PS = ("ps", "-axo", "pid=,lstart=,command=")
_STARTED = "%a %b %d %H:%M:%S %Y"
_SECONDS = 10


def environment_findings(own: Installation) -> Iterator[Finding]:
    """Yield what runs, how it came here, and which servers still run what was here before."""
    yield Finding(Level.OK, f"deepwork {__version__}, Python {platform.python_version()} ({sys.executable})")
    yield Finding(Level.INFO, f"installed by: {own.route}; upgrade by: {own.upgrade or 'installing it again'}")
    yield Finding(Level.INFO, ", ".join(f"{name} {importlib_metadata.version(name)}" for name in LIBRARIES))
    yield from _foreign_names()
    older = [process for process, started in _servers() if started < _installed_at()]
    if older:
        servers = f"server {older[0]} runs" if len(older) == 1 else f"servers {', '.join(map(str, older))} run"
        text = f"{servers} the code from before the last upgrade, until its client starts it again"
        yield Finding(Level.WARNING, text, "restart the client, or reconnect its MCP server; no session is lost")


def _foreign_names() -> Iterator[Finding]:
    lacking = foreign.missing(foreign.NAMES)
    for name in lacking:
        text = f"{name.library} {importlib_metadata.version(name.library)} lacks {name.path}, needed for {name.purpose}"
        cure = f"install {name.library} {foreign.TESTED[name.library]} beside deepwork"
        yield Finding(Level.ERROR if name.transports else Level.WARNING, text, cure)
    there = len(foreign.NAMES) - len(lacking)
    yield Finding(Level.INFO, f"{there} of {len(foreign.NAMES)} names are there which other libraries do not promise")


def _installed_at() -> float:
    folder = importlib_metadata.distribution(CORE).locate_file(f"{CORE}-{__version__}.dist-info")
    try:
        return os.stat(str(folder)).st_mtime
    except OSError:
        return 0.0


def _servers() -> Iterator[tuple[int, float]]:
    """Yield the servers that this environment runs, with the second of their start; none where `ps` is missing."""
    ps = shutil.which(PS[0], path=os.defpath)
    if ps is None:
        return
    # Times in English; but in the locale "C", `ps` has other letters than those of ASCII replaced.
    zone = {name: os.environ[name] for name in ("TZ",) if name in os.environ}
    environment = {"LC_TIME": "C", "LC_CTYPE": "C.UTF-8", **zone}
    command = [ps, *PS[1:]]
    try:
        listed = subprocess.run(command, capture_output=True, timeout=_SECONDS, env=environment, check=False)
    except subprocess.TimeoutExpired:  # on a machine as busy as that they stay unnamed
        return
    for line in listed.stdout.decode(errors="replace").splitlines():
        process, *rest = line.split(None, 6)
        if len(rest) == 6 and _is_own_server(rest[5]):
            yield int(process), datetime.strptime(" ".join(rest[:5]), _STARTED).astimezone().timestamp() + 1


def _is_own_server(command: str) -> bool:
    own = os.path.join(sys.prefix, "bin", "")  # may hold spaces
    words = command.replace(own, "\0").split()
    return "serve" in words[1:4] and any(word.startswith("\0") for word in words[:2])
