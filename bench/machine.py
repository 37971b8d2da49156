"""Facts of the machine on which a run was made."""

from __future__ import annotations

import os
import platform
from importlib.metadata import distributions
from pathlib import Path

LIBRARIES = ("fastmcp", "mcp", "pydantic", "anyio", "pluggy", "PyYAML", "uvicorn")
IN_MEMORY = ("tmpfs", "ramfs")


def facts(folder: Path) -> dict[str, str]:
    """Describe the machine, its Python and libraries, and the file system of a folder."""
    installed = {item.name: item.version for item in distributions()}
    own = sorted(name for name in installed if name.startswith("deepwork"))
    return {
        "processor": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{_memory_gib():.0f} GiB",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "libraries": ", ".join(f"{name} {installed[name]}" for name in (*own, *LIBRARIES) if name in installed),
        "file system": file_system(folder),
        "load at the beginning": load(),
    }


def load() -> str:
    """Return how many processes want a processor: other work on the machine falsifies the figures."""
    return f"{os.getloadavg()[0]:.1f}"


def file_system(folder: Path) -> str:
    """Name the file system in which a folder lies."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, about = line.partition(" - ")
        place = mount.split()[4]
        if folder.resolve().is_relative_to(place) and len(place) >= len(best):
            best, kind = place, about.split()[0]
    return kind


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
