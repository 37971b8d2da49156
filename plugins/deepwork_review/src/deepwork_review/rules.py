"""The shape of `.deepreview` files, and how they are read."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel

from deepwork.documents.document import Document
from deepwork.documents.load import read_document
from deepwork.documents.problems import DocumentError, Problem
from deepwork.text import visible
from deepwork_review.match import MAX_SECONDS, Matcher, refuse_glob
from deepwork_review.project_files import UnusableFile, read_file, read_text

FILE_NAME = ".deepreview"
MAX_FILE = 1024 * 1024
MAX_INSTRUCTIONS = 256 * 1024
MAX_GLOBS = 200
MAX_FILE_GLOBS = 2000
# Parsed files take many times their size, so larger ones are not kept.
MAX_KEPT = 64 * 1024
MAX_REFERENCES = 20


class Strategy(StrEnum):
    """How matched files become reviews."""

    INDIVIDUAL = "individual"
    MATCHES_TOGETHER = "matches_together"
    ALL_CHANGED_FILES = "all_changed_files"


def _one_line(persona: str) -> str:
    if not persona.isprintable() or not persona.strip():
        raise ValueError("is not a name on one line")
    return persona


Glob = Annotated[str, AfterValidator(refuse_glob)]
Persona = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]


class _Block(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Match(_Block):
    """Which files a rule applies to."""

    include: Annotated[list[Glob], Field(min_length=1, max_length=MAX_GLOBS)]
    exclude: Annotated[list[Glob], Field(max_length=MAX_GLOBS)] = []
    deletions: Annotated[bool, Field(strict=True)] = False


class InstructionFile(_Block):
    """Instructions in a file of their own."""

    file: Annotated[str, Field(min_length=1)]


class AdditionalContext(_Block):
    """What a reviewer is told in addition to the files."""

    all_changed_filenames: Annotated[bool, Field(strict=True)] = False
    unchanged_matching_files: Annotated[bool, Field(strict=True)] = False


class ReferenceFile(_Block):
    """A file whose content is copied into the instructions."""

    path: Annotated[str, Field(min_length=1)]
    description: str | None = None


class ReviewBlock(_Block):
    """How matched files are reviewed."""

    strategy: Strategy
    instructions: Annotated[str, Field(min_length=1)] | InstructionFile
    agent: dict[str, Persona] = {}
    additional_context: AdditionalContext = AdditionalContext()
    reference_files: Annotated[list[ReferenceFile], Field(max_length=MAX_REFERENCES)] = []
    precomputed_info_for_reviewer_bash_command: Annotated[str, Field(min_length=1, max_length=1000)] | None = None


class RuleBody(_Block):
    """One rule."""

    description: Annotated[str, Field(max_length=256)]
    match: Match
    review: ReviewBlock


class RuleFile(RootModel[dict[Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$", max_length=200)], RuleBody]]):
    """A whole `.deepreview` file: rules by name."""


@dataclass(frozen=True)
class Rule:
    """A rule, and where it is written.

    Attributes:
        file: Its `.deepreview` file, relative to the project.
        line: The line of its name.
        instructions: Their text, also if the rule names a file for them.
    """

    name: str
    file: str
    line: int
    body: RuleBody
    instructions: str

    @property
    def folder(self) -> str:
        """The folder of its file, relative to the project; empty for the project itself."""
        return posixpath.dirname(self.file)

    @property
    def place(self) -> str:
        """Its file and line, as editors read them."""
        return f"{self.file}:{self.line}"

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"rule {self.name!r} ({self.place})"

    @property
    def title(self) -> str:
        """Its name, with the last part of its folder."""
        return f"{posixpath.basename(self.folder)}/{self.name}" if self.folder else self.name

    def beside(self, path: str) -> str:
        """Return the path, relative to the project, of a file that the rule names relative to its own folder."""
        return f"{self.folder}/{path}" if self.folder else path

    @property
    def globs(self) -> int:
        """How many globs it has."""
        return len(self.body.match.include) + len(self.body.match.exclude)

    def matcher(self, seconds: float = MAX_SECONDS) -> Matcher:
        """Make a new matcher. Each counts its own time, so it must not be shared."""
        return Matcher(self.folder, self.body.match.include, self.body.match.exclude, seconds=seconds)


@dataclass(frozen=True)
class BrokenFile:
    """A `.deepreview` file that cannot be used; `message` has a line for each problem."""

    file: str
    message: str


def read_rules(root: Path, file: str) -> list[Rule] | BrokenFile:
    """Read one file. If anything in it is invalid none of its rules count, and other files are unaffected."""
    try:
        document, bodies = _parse(read_file(root, file, limit=MAX_FILE))
        return [_rule(root, file, document, name, body) for name, body in bodies.items()]
    except DocumentError as error:
        return BrokenFile(file, error.at(file))
    except UnusableFile as error:
        return BrokenFile(file, visible(f"{file}: {error}"))


def _parse(content: bytes) -> tuple[Document, dict[str, RuleBody]]:
    return _parse_small(content) if len(content) <= MAX_KEPT else _parse_any(content)


@lru_cache(maxsize=128)
def _parse_small(content: bytes) -> tuple[Document, dict[str, RuleBody]]:
    """Parse a file; calls with the same content share the result."""
    return _parse_any(content)


def _parse_any(content: bytes) -> tuple[Document, dict[str, RuleBody]]:
    document = read_document(content)
    globs = sum(map(_glob_count, document.data.values())) if isinstance(document.data, dict) else 0
    if globs > MAX_FILE_GLOBS:
        # Before they are validated: it takes a tenth of a millisecond for each.
        raise DocumentError(Problem(f"{globs:,} globs; a file has at most {MAX_FILE_GLOBS:,}"))
    return document, document.validate(RuleFile).root


def _glob_count(body: Any) -> int:
    match = body.get("match") if isinstance(body, dict) else None
    lists = [match.get(key) for key in ("include", "exclude")] if isinstance(match, dict) else []
    return sum(len(globs) for globs in lists if isinstance(globs, list))


def _rule(root: Path, file: str, document: Document, name: str, body: RuleBody) -> Rule:
    instructions = body.review.instructions
    if isinstance(instructions, InstructionFile):
        line = document.line(name, "review", "instructions", "file")
        instructions = _instructions(root, file, instructions.file, line)
    return Rule(name, file, document.line(name) or 1, body, instructions)


def _instructions(root: Path, file: str, name: str, line: int | None) -> str:
    try:
        return read_text(root, posixpath.join(posixpath.dirname(file), name), limit=MAX_INSTRUCTIONS)
    except UnusableFile as error:
        raise DocumentError(Problem(f"the instructions file {name!r} {error}", line)) from None
