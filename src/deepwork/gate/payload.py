"""The text of the files to be judged, with the section lines of the specification."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deepwork.errors import PathRefused
from deepwork.models.outputs import ListedFile
from deepwork.paths.paths import describe, open_regular

BEGIN_INPUTS = "==================== BEGIN INPUTS ===================="
END_INPUTS = "==================== END INPUTS ===================="
BEGIN_OUTPUTS = "==================== BEGIN OUTPUTS ===================="
END_OUTPUTS = "==================== END OUTPUTS ===================="
RULE = "-" * 20

FILE_BUDGET = 1024 * 1024
PAYLOAD_BUDGET = 4 * 1024 * 1024


@dataclass
class Payload:
    """Builds one payload: outputs and inputs share its limits.

    Args:
        roots: The folders in which files may lie, the project first.
        max_inline_files: Up to this many files stand in it with their contents; more are listed by path.
        nonce: Stands beside its own lines when it holds contents, which could forge them.
        budget: Bytes in all.

    Attributes:
        gaps: Why something of the files is not in the text, each as a phrase.
    """

    roots: Sequence[Path] = ()
    max_inline_files: int = 0
    nonce: str | None = None
    budget: int = PAYLOAD_BUDGET
    gaps: list[str] = field(default_factory=list, init=False)

    def text(self, outputs: Iterable[ListedFile], inputs: Iterable[ListedFile]) -> str:
        """Write the sections; the inputs' section is left out if it would be empty."""
        judged_files, input_files = list(outputs), list(inputs)
        count = len(judged_files) + len(input_files)
        self._inline = count <= self.max_inline_files
        if not self._inline:
            self.gaps.append(
                f"only the paths of {count:,} files, more than max_inline_files: {self.max_inline_files:,}"
            )
        # Outputs are written first although they stand last: the budget is theirs before it is that of the inputs.
        output_section = self._section(BEGIN_OUTPUTS, judged_files, END_OUTPUTS)
        if not input_files:
            return output_section
        return "\n\n".join([self._section(BEGIN_INPUTS, input_files, END_INPUTS), output_section])

    def _section(self, begin: str, files: list[ListedFile], end: str) -> str:
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
        # Three kinds of marker: with one kind, a file's first line could reuse the marker printed above it to forge a
        # section line.
        return [f"[{self.nonce} {kind}]"] if self.nonce else []

    def _listed(self, files: list[ListedFile]) -> Iterable[str]:
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
                return self._content(printable(path), printable(str(resolved)), descriptor)
        except FileNotFoundError:
            self.gaps.append(f"nothing of {printable(path)}, which is not there")
            return "[File not found]"
        except (PathRefused, OSError) as error:
            self.gaps.append(f"nothing of {printable(path)}, which {describe(error)}")
            return f"[The file {describe(error)}]"

    def _content(self, path: str, where: str, descriptor: int) -> str:
        size = os.fstat(descriptor).st_size
        room = min(FILE_BUDGET, max(self.budget, 0))
        content = _read(descriptor, room)
        cut = size > len(content)
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(content, final=not cut)
        except UnicodeDecodeError:
            self.gaps.append(f"nothing of {path}, which is not UTF-8 text")
            return f"[Binary file — not included in review. Read from: {where}]"  # the specification's own dash
        self.budget -= len(content)
        if not cut:
            return text
        self.gaps.append(f"{len(content):,} of the {size:,} bytes of {path}")
        return f"{text}\n[Cut here: {len(content):,} of {size:,} bytes are shown. Read the rest from: {where}]"


def printable(path: str) -> str:
    """Quote a path that could forge a line."""
    return path if path.isprintable() else ascii(path)


def _count(files: list[ListedFile]) -> str:
    return f"{len(files)} {'file' if len(files) == 1 else 'files'}, listed by path. Read each of them:"


def _read(descriptor: int, limit: int) -> bytes:
    parts: list[bytes] = []
    while limit > 0 and (chunk := os.read(descriptor, min(limit, FILE_BUDGET))):
        parts.append(chunk)
        limit -= len(chunk)
    return b"".join(parts)
