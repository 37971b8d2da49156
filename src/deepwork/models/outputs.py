"""The kinds of outputs that a step can declare. A new kind is one more class here, and its place in `KINDS`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from deepwork.errors import OutputError
from deepwork.text import json_type

MAX_PATHS = 1000

Outputs = dict[str, str | list[str]]


class OutputKind(ABC):
    """What can be submitted for an output of one kind.

    Attributes:
        name: As `type` in `job.yml`.
        syntax: How an agent writes a value (JOBS-REQ-001.3.14).
        one_by_one: Whether a review of such an output judges each of its files by itself.
    """

    name: ClassVar[str]
    syntax: ClassVar[str]
    one_by_one: ClassVar[bool] = False

    @abstractmethod
    def check(self, output: str, value: Any, *, required: bool) -> None:
        """Check the shape of a submitted value.

        Raises:
            OutputError: It has another shape; the error says which is right.
        """

    @abstractmethod
    def files(self, value: Any) -> list[str]:
        """List the paths in a checked value."""

    @abstractmethod
    def with_files(self, paths: list[str]) -> str | list[str]:
        """Make a value of paths, in the order of `files`."""


class FileKind(OutputKind):
    """One file."""

    name = "file"
    syntax = "filepath"

    def check(self, output: str, value: Any, *, required: bool) -> None:
        if not isinstance(value, str):
            raise OutputError(
                f"Output {output!r} is declared as type 'file': give one path as a string, not {json_type(value)}"
            )

    def files(self, value: Any) -> list[str]:
        return [value]

    def with_files(self, paths: list[str]) -> str | list[str]:
        return paths[0]


class FilesKind(OutputKind):
    """Any number of files; at least one if the output is required."""

    name = "files"
    syntax = "array of filepaths for all individual files"
    one_by_one = True

    def check(self, output: str, value: Any, *, required: bool) -> None:
        declared = f"Output {output!r} is declared as type 'files'"
        if not isinstance(value, list):
            raise OutputError(f"{declared}: give a list of paths, not {json_type(value)}")
        for path in value:
            if not isinstance(path, str):
                raise OutputError(f"{declared}: each path is a string, not {json_type(path)}")
        if not value and required:
            raise OutputError(f"Output {output!r} is required: give at least one path, not an empty list")
        if len(value) > MAX_PATHS:
            raise OutputError(f"Output {output!r} has {len(value):,} paths; the limit is {MAX_PATHS:,}")

    def files(self, value: Any) -> list[str]:
        return list(value)

    def with_files(self, paths: list[str]) -> str | list[str]:
        return paths


KINDS: dict[str, OutputKind] = {kind.name: kind for kind in (FileKind(), FilesKind())}


class ListedFile(NamedTuple):
    """A file, and the output to which it belongs."""

    path: str
    output: str


def files_of(outputs: Outputs) -> Iterable[ListedFile]:
    """List the files of stored outputs of any kind: the definition of their step may be gone."""
    for name, value in outputs.items():
        for path in [value] if isinstance(value, str) else value:
            yield ListedFile(path, name)
