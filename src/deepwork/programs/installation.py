"""How this deepwork was installed: its route, its origin, and the command that brings a newer one."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

CORE = "deepwork"
ALL = "all"
# Whoever makes an environment for deepwork leaves this file in it: {"route": …, "upgrade": …}.
RECEIPT = "deepwork-install.json"
_EXTRA = re.compile(r"([\w.-]++)(?!\[).*;\s*extra\s*==\s*['\"]([\w-]+)['\"]\s*$")


@dataclass(frozen=True)
class Installation:
    """An environment with deepwork in it.

    Attributes:
        route: How it came: "checkout", "plugin", "uv tool", "pipx", "uvx", "pipx run", "editable" or "pip".
        upgrade: The command that brings a newer one; None if its origin is not known.
        requirement: What an installer is told to get the same release with the same plugins; None likewise.
        is_passing: Whether the environment is a cache, which is deleted some day.
    """

    route: str
    upgrade: str | None
    requirement: str | None
    is_passing: bool

    @property
    def keeping_command(self) -> tuple[str, ...] | None:
        """The command that installs the same release to stay; None if its origin is not known."""
        if self.requirement is None:
            return None
        installer = ("pipx", "install") if self.route == "pipx run" else ("uv", "tool", "install")
        return (*installer, self.requirement)


def installation(environment: Mapping[str, str], prefix: Path | None = None) -> Installation:
    """Return how the environment that runs this process was installed."""
    prefix = prefix or Path(sys.prefix).resolve()
    requirement = _requirement()
    route, upgrade = _route(prefix, environment, requirement)
    return Installation(route, upgrade, requirement, is_passing=route in ("uvx", "pipx run"))


def installed_extras() -> list[str]:
    """Return the extras of the core whose distributions are all installed; only `all` if those are all of them."""
    needs: dict[str, set[str]] = {}
    for text in metadata.requires(CORE) or ():
        if (match := _EXTRA.match(text)) and _is_plugin(match[1]):
            needs.setdefault(match[2], set()).add(match[1])
    installed = {name for name in set().union(*needs.values()) if _is_installed(name)}
    extras = sorted(extra for extra, names in needs.items() if names <= installed)
    return [ALL] if ALL in extras else extras


def _route(prefix: Path, environment: Mapping[str, str], requirement: str | None) -> tuple[str, str | None]:
    receipt = _receipt(prefix)
    quoted = shlex.quote(requirement) if requirement else None
    if receipt:
        return str(receipt.get("route")), receipt.get("upgrade")
    if _is_in(prefix, _uv_caches(environment)):
        return "uvx", quoted and f"uvx --refresh --from {quoted} {CORE}"
    if _is_in(prefix, _pipx_caches(environment)):
        return "pipx run", quoted and f"pipx run --no-cache --spec {quoted} {CORE}"
    if (prefix / "uv-receipt.toml").exists():
        return "uv tool", quoted and f"uv tool install --force --refresh {quoted}"
    if (prefix / "pipx_metadata.json").exists():
        return "pipx", quoted and f"pipx install --force {quoted}"
    if (folder := _editable_folder()) is not None:
        return "editable", shlex.join(["git", "-C", folder, "pull"])
    return "pip", quoted and f"{shlex.quote(sys.executable)} -m pip install --upgrade {quoted}"


def _receipt(prefix: Path) -> dict[str, Any] | None:
    try:
        receipt = json.loads((prefix / RECEIPT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return receipt if isinstance(receipt, dict) else None


def _requirement() -> str | None:
    """Return what brings the same release again, by the record that installers leave (PEP 610)."""
    extras = ",".join(installed_extras())
    wanted = f"{CORE}[{extras}]" if extras else CORE
    source = _direct_url()
    if source is not None:
        return f"{wanted} @ {_place(source)}"
    if any(" @ " in need for need in metadata.requires(CORE) or ()):
        return None  # nothing of this release is on an index
    return f"{wanted}=={metadata.version(CORE)}"


def _place(source: Mapping[str, Any]) -> str:
    url = str(source["url"])
    version_control = source.get("vcs_info")
    if not isinstance(version_control, dict):
        return url
    revision = version_control.get("requested_revision") or version_control.get("commit_id")
    folder = f"#subdirectory={source['subdirectory']}" if source.get("subdirectory") else ""
    return f"{version_control.get('vcs')}+{url}@{revision}{folder}"


def _editable_folder() -> str | None:
    source = _direct_url() or {}
    is_editable = isinstance(source.get("dir_info"), dict) and source["dir_info"].get("editable")
    return str(source["url"]).removeprefix("file://") if is_editable else None


def _direct_url() -> dict[str, Any] | None:
    text = metadata.distribution(CORE).read_text("direct_url.json")
    source = json.loads(text) if text else None
    return source if isinstance(source, dict) and "url" in source else None


def _is_plugin(distribution: str) -> bool:
    return distribution.startswith(f"{CORE}-")


def _is_installed(distribution: str) -> bool:
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def _is_in(prefix: Path, folders: list[Path]) -> bool:
    return any(prefix.is_relative_to(folder.resolve()) for folder in folders)


def _uv_caches(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders where `uvx` and `uv run --with` make environments that they delete again."""
    home = Path(os.path.expanduser("~"))
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    return [Path(environment.get("UV_CACHE_DIR") or cache / "uv"), home / "Library" / "Caches" / "uv"]


def _pipx_caches(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders where `pipx run` makes environments that it deletes again."""
    home = Path(os.path.expanduser("~"))
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    pipx = Path(environment.get("PIPX_HOME") or home / ".local" / "share" / "pipx")
    return [
        pipx / ".cache",
        home / ".local" / "pipx" / ".cache",
        cache / "pipx",
        home / "Library" / "Caches" / "pipx",
    ]
