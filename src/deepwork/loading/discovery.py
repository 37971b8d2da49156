"""Which plugins are installed. Nothing is imported here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import importlib_metadata

from deepwork import __version__
from deepwork.errors import ConfigError
from deepwork.loading.features import FEATURES

GROUP = "deepwork"
FILE = "file"  # stands for the version of a plugin that is one file


@dataclass(frozen=True)
class Candidate:
    """A plugin that could be loaded, and where it comes from."""

    name: str
    distribution: str
    version: str
    load: Callable[[], Any]
    builtin: bool = False
    module: str = ""

    @property
    def package(self) -> str:
        """The package of its code."""
        return self.module.partition(".")[0]

    @property
    def is_file(self) -> bool:
        """Whether it is one file of a folder, and no distribution."""
        return self.version == FILE

    @property
    def block_name(self) -> str:
        """The name that blocks it in the configuration: the distribution's, or the plugin's for the core's."""
        return self.name if self.builtin else self.distribution

    def __str__(self) -> str:
        """Name the distribution first: that is what people install and remove."""
        where = f"feature {self.name!r}" if self.builtin else f"plugin {self.name!r}"
        return f"{self.distribution} {self.version} ({where})"


def installed() -> list[Candidate]:
    """Return the features of the kernel, then the plugins of the entry point group `deepwork`, sorted."""
    candidates = [
        Candidate(
            point.name, point.dist.name if point.dist else "unknown", _version(point), point.load, module=point.module
        )
        for point in importlib_metadata.entry_points(group=GROUP)
    ]
    return [*map(_feature, FEATURES), *sorted(candidates, key=lambda plugin: (plugin.name, plugin.distribution))]


def in_folder(folder: Path) -> list[Candidate]:
    """List the plugins that are one file each: `acme.py` is the plugin `acme`.

    Raises:
        ConfigError: There is no such folder.
    """
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix == ".py" and not file.name.startswith("_"))
    except OSError as error:
        raise ConfigError(
            f"the folder of plugins {str(folder)!r} cannot be read: {error.strerror}",
            hint="Give an existing one: --plugins-dir or DEEPWORK_PLUGINS_DIR.",
        ) from None
    return [Candidate(file.stem, file.name, FILE, partial(_import_file, file), module=file.stem) for file in files]


def _import_file(file: Path) -> Any:
    """Import a file under its own name, unless a library has this name: what is imported already is not replaced.

    Raises:
        ImportError: There is a module of this name.
    """
    if file.stem in sys.modules or find_spec(file.stem):
        module = sys.modules.get(file.stem)
        if module is None or getattr(module, "__file__", None) != str(file):
            raise ImportError(f"{file.stem!r} is the name of another module; rename the file")
        return module
    spec = spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = module_from_spec(spec)
    # Pydantic and dataclasses look up the types of annotations there.
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[file.stem]
        raise
    return module


def _feature(name: str) -> Candidate:
    module = FEATURES[name]
    return Candidate(name, "deepwork", __version__, partial(import_module, module), builtin=True, module=module)


def _version(point: importlib_metadata.EntryPoint) -> str:
    return point.dist.version if point.dist else "?"
