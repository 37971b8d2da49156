"""Writes the names of our distributions for installers, from `[tool.deepwork] distribution` in pyproject.toml.

    python tools/distribution.py            write the extras of the core's pyproject.toml
    python tools/distribution.py --show     print how each distribution is named

The constant is "git+URL@TAG", or the path or URL of the core's wheel, beside which the wheels of the plugins lie;
`{version}` in it is the version. Once a person has decided on a public name it is that name, and everything is named
by it, with its version.
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CORE = "deepwork"
ALL = "all"
# What `all` has besides the plugins: an extra of one of them.
BESIDES = {"postgresql": "deepwork-sql"}
HERE = "{root:uri}"  # hatchling puts the address of the folder that is built here


@dataclass(frozen=True)
class Distributions:
    """The distributions of a checkout."""

    root: Path = ROOT

    @cached_property
    def core(self) -> dict[str, Any]:
        """The core's pyproject."""
        return _pyproject(self.root)

    @cached_property
    def plugins(self) -> dict[str, dict[str, Any]]:
        """The table `project` of each plugin, by its distribution."""
        folders = sorted(file.parent for file in self.root.glob("plugins/[!_]*/pyproject.toml"))
        return {project["name"]: project for project in (_pyproject(folder)["project"] for folder in folders)}

    @property
    def place(self) -> str:
        """The constant, with its version."""
        text: str = self.core["tool"]["deepwork"]["distribution"]
        return text.replace("{version}", self.core["project"]["version"])

    def requirement(self, name: str, extras: str = "", *, root: str = HERE) -> str:
        """Return how an installer is told of a distribution: a requirement of PEP 508.

        Args:
            name: The distribution.
            extras: Extras of it, with commas between.
            root: The address of the checkout, for a constant that is a path in it.
        """
        name_with_extras = f"{name}[{extras}]" if extras else name
        place = self.place
        if place.startswith("git+"):
            folder = "" if name == CORE else f"#subdirectory=plugins/{name.replace('-', '_')}"
            return f"{name_with_extras} @ {place}{folder}"
        if place.endswith(".whl"):
            wheel = place if "://" in place else f"{root}/{place}"
            beside, _, file = wheel.rpartition("/")
            return f"{name_with_extras} @ {beside}/{file.replace(CORE, name.replace('-', '_'), 1)}"
        return f"{name_with_extras.replace(CORE, place, 1)}=={self.core['project']['version']}"

    def extras(self) -> dict[str, list[str]]:
        """Return the extras that bring plugins: one for each plugin, and one for all."""
        extras = {
            _extra(name): [self.requirement(needed) for needed in (*self._needs(name), name)] for name in self.plugins
        }
        for extra, name in BESIDES.items():
            if name in self.plugins:
                extras[extra] = [self.requirement(name, extra)]
        return {ALL: [f"{CORE}[{','.join(extras)}]"], **extras}

    def _needs(self, name: str) -> list[str]:
        """Return the plugins that a plugin depends on."""
        needs = (re.match(r"[\w-]+", need)[0] for need in self.plugins[name]["dependencies"])  # type: ignore[index]
        return [need for need in needs if need in self.plugins]


def with_extras(text: str, extras: dict[str, list[str]]) -> str:
    """Return the text of a pyproject with these extras at the head of its optional dependencies.

    Extras of plugins that stand there, a line each, are replaced.
    """
    head, table, tables = text.partition("[project.optional-dependencies]\n")
    if not table:
        sys.exit("pyproject.toml has no [project.optional-dependencies]")
    of_plugins = re.compile(rf'^(?:{ALL} = \["{CORE}\[|[\w-]+ = \["{CORE}-).*\]\n', re.MULTILINE)
    extras_before, following, tables_after = tables.partition("\n[")
    lines = "".join(f"{name} = [{', '.join(f'{need!r}' for need in needs)}]\n" for name, needs in extras.items())
    return f"{head}{table}{lines.replace(chr(39), chr(34))}{of_plugins.sub('', extras_before)}{following}{tables_after}"


def _extra(distribution: str) -> str:
    return distribution.removeprefix(f"{CORE}-")


def _pyproject(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def main(arguments: list[str]) -> int:
    """Write, or show."""
    ours = Distributions()
    if arguments == ["--show"]:
        for name in (CORE, *ours.plugins):
            print(ours.requirement(name, root=ROOT.as_uri()))
        return 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    file = ROOT / "pyproject.toml"
    file.write_text(with_extras(file.read_text(encoding="utf-8"), ours.extras()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
