"""Installs the MCP clients that need node, once, and runs them.

    python tools/clients.py                                     install, and print the folder of the programs
    python tools/clients.py mcp-inspector --cli URL --method tools/list
    python tools/clients.py claude --version
    python tools/clients.py node SCRIPT.mjs

The tests in `tests/clients` put the printed folder first in their PATH. The versions are pinned below. Where
the machine's own node is too old, a newer one is installed beside the clients. Exit code 69: npm is missing, or cannot
install.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = {
    "@anthropic-ai/claude-code": "2.1.327",
    "@google/gemini-cli": "0.61.0",
    "@modelcontextprotocol/client": "2.4.0",
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
    "@modelcontextprotocol/inspector": "2.12.0",
    "@modelcontextprotocol/sdk": "1.32.2",
    "@openai/codex": "0.169.0",
    "opencode-ai": "1.18.33",
}
FOLDER = Path(__file__).parent.parent / ".clients"
WITH_SCRIPTS = ["@anthropic-ai/claude-code"]
NODE = "22.23.3"
OLDEST_NODE = (22, 19)
ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
UNAVAILABLE = 69
INSTALL_SECONDS = 540


class NoClients(Exception):
    """Why the clients cannot be installed here."""


def main() -> int:
    """Install the clients, then run the program that is asked for or print where the programs are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to install (default: %(default)s)")
    parser.add_argument("program", nargs="?", help="what to run: node, mcp-inspector, claude, conformance")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for the program")
    options = parser.parse_args()
    try:
        programs = install(options.folder.absolute())
    except NoClients as reason:
        print(f"Error: {reason}", file=sys.stderr)
        return UNAVAILABLE
    if options.program is None:
        print(programs)
        return 0
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    program = shutil.which(options.program, path=path) or parser.error(f"there is no program {options.program!r}")
    return os.execve(program, [program, *options.arguments], {**os.environ, "PATH": path})


def install(folder: Path) -> Path:
    """Install what is not there yet, and return the folder of the programs.

    Raises:
        NoClients: node or npm is missing, or npm cannot install.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if not (node and npm):
        raise NoClients("node or npm is missing")
    packages = dict(PACKAGES)
    if node_version(node) < OLDEST_NODE:
        packages[node_package()] = NODE
    content = {"private": True, "dependencies": packages, "allowScripts": dict.fromkeys(WITH_SCRIPTS, True)}
    manifest = json.dumps(content, indent=2)
    home = folder / hashlib.sha256(manifest.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            half_done = home.with_suffix(".part")
            shutil.rmtree(half_done, ignore_errors=True)
            half_done.mkdir()
            (half_done / "package.json").write_text(manifest)
            npm_install(npm, half_done)
            half_done.rename(home)
    return home / "node_modules" / ".bin"


def npm_install(npm: str, folder: Path) -> None:
    """Install what the folder's package.json names.

    Raises:
        NoClients: It cannot be done, the registry cannot be reached, say.
    """
    command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    try:
        ended = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NoClients(f"npm was not done after {INSTALL_SECONDS} seconds") from None
    if ended.returncode:
        raise NoClients(f"npm cannot install the clients: {ended.stderr.strip()[-1000:]}")


def node_version(node: str) -> tuple[int, ...]:
    """Return major and minor version of a node."""
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(number) for number in version.strip().removeprefix("v").split(".")[:2])


def node_package() -> str:
    """Name the package that is nothing but node's program for this machine."""
    machine = platform.machine().lower()
    return f"node-{platform.system().lower()}-{ARCHITECTURES.get(machine, machine)}"


if __name__ == "__main__":
    sys.exit(main())
