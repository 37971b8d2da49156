"""The text of what is judged, with the section lines of the specification."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deepwork.errors import PathRefused
from deepwork.models.jobs import FileInput, Step
from deepwork.models.replies import Outputs
from deepwork.workspace import describe, open_regular

BEGIN_INPUTS = "==================== BEGIN INPUTS ===================="
END_INPUTS = "==================== END INPUTS ===================="
BEGIN_OUTPUTS = "==================== BEGIN OUTPUTS ===================="
END_OUTPUTS = "==================== END OUTPUTS ===================="
RULE = "-" * 20

FILE_BUDGET = 1024 * 1024
PAYLOAD_BUDGET = 4 * 1024 * 1024

Listed = tuple[str, str]  # path, and the output it belongs to


@dataclass
class Payload:
    """Builds one payload: outputs and inputs share its limits.

    Args:
        roots: The folders in which files may lie, the project first.
        max_inline_files: Up to this many files stand in it with their contents; more are listed by path.
        nonce: Stands beside its own lines when it holds contents, which could forge them.
        file_budget: Bytes of one file.
        budget: Bytes in all.
    """

    roots: Sequence[Path] = ()
    max_inline_files: int = 0
    nonce: str | None = None
    file_budget: int = FILE_BUDGET
    budget: int = PAYLOAD_BUDGET

    def text(self, outputs: Iterable[Listed], inputs: Iterable[Listed]) -> str:
        """Write the sections; that of the inputs is left out if there are none."""
        made, given = list(outputs), list(inputs)
        self._inline = len(made) + len(given) <= self.max_inline_files
        judged = self._section(BEGIN_OUTPUTS, made, END_OUTPUTS)  # first, for they have the first claim on the budget
        return "\n\n".join([self._section(BEGIN_INPUTS, given, END_INPUTS), judged] if given else [judged])

    def _section(self, begin: str, files: list[Listed], end: str) -> str:
        if not files:
            body = ["[No files provided]"]
        elif self._inline:
            body = [line for path, _ in files for line in (*self._heading(path), self._file(path))]
        else:
            body = [_count(files), *self._listed(files)]
        return "\n".join([begin, *self._mark("begin"), *body, *self._mark("end"), end])

    def _heading(self, path: str) -> list[str]:
        return [f"{RULE} {printable(path)} {RULE}", *self._mark("file")]

    def _mark(self, kind: str) -> list[str]:
        # Of three kinds, or the mark of a heading would stand beside a line that the file's first line forges.
        return [f"[{self.nonce} {kind}]"] if self.nonce else []

    def _listed(self, files: list[Listed]) -> Iterable[str]:
        for number, (path, name) in enumerate(files):
            line = f"- {printable(path)}  (output: {name})"
            self.budget -= len(line.encode())
            if self.budget < 0:
                yield f"[The payload is full: {len(files) - number:,} more files are not listed]"
                return
            yield line

    def _file(self, path: str) -> str:
        try:
            with open_regular(path, self.roots) as (resolved, descriptor):
                return self._content(printable(str(resolved)), descriptor)
        except FileNotFoundError:
            return "[File not found]"
        except (PathRefused, OSError) as error:
            return f"[The file {describe(error)}]"

    def _content(self, where: str, descriptor: int) -> str:
        size = os.fstat(descriptor).st_size
        room = min(self.file_budget, max(self.budget, 0))
        content = _read(descriptor, room)
        cut = size > len(content)
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(content, final=not cut)
        except UnicodeDecodeError:
            return f"[Binary file — not included in review. Read from: {where}]"  # the specification's own dash
        self.budget -= len(content)
        if not cut:
            return text
        shown = f"[Cut here: {len(content):,} of {size:,} bytes are shown. Read the rest from: {where}]"
        return f"{text}\n{shown}"


def inputs_of(step: Step, outputs_by_step: dict[str, Outputs]) -> list[Listed]:
    """List the files of earlier steps that a step builds on, with the paths that those have reported."""
    return [
        listed
        for given in step.inputs
        if isinstance(given, FileInput)
        for listed in files_of({given.file: outputs_by_step.get(given.from_step, {}).get(given.file, [])})
    ]


def files_of(outputs: Outputs) -> Iterable[Listed]:
    """Flatten outputs to single files."""
    for name, value in outputs.items():
        for path in [value] if isinstance(value, str) else value:
            yield path, name


def printable(path: str) -> str:
    """Quote a path that could forge a line."""
    return path if path.isprintable() else ascii(path)


def _count(files: list[Listed]) -> str:
    return f"{len(files)} {'file' if len(files) == 1 else 'files'}, listed by path. Read each of them:"


def _read(descriptor: int, limit: int) -> bytes:
    parts: list[bytes] = []
    while limit > 0 and (chunk := os.read(descriptor, min(limit, FILE_BUDGET))):
        parts.append(chunk)
        limit -= len(chunk)
    return b"".join(parts)
