"""What people write in a `.deepreview` file, and how it is read."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel

from deepwork.api import Document, DocumentError, PathRefused, Problem, read_document, read_regular
from deepwork_review.match import refuse_glob

FILE_NAME = ".deepreview"
MAX_FILE = 4 * 1024 * 1024
MAX_INSTRUCTIONS = 256 * 1024
MAX_GLOBS = 200
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


class _Written(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Match(_Written):
    """Which files a rule is about."""

    include: Annotated[list[Glob], Field(min_length=1, max_length=MAX_GLOBS)]
    exclude: Annotated[list[Glob], Field(max_length=MAX_GLOBS)] = []
    deletions: Annotated[bool, Field(strict=True)] = False


class InstructionFile(_Written):
    """Instructions that stand in a file of their own."""

    file: Annotated[str, Field(min_length=1)]


class AdditionalContext(_Written):
    """What a reviewer is told beside the files."""

    all_changed_filenames: Annotated[bool, Field(strict=True)] = False
    unchanged_matching_files: Annotated[bool, Field(strict=True)] = False


class ReferenceFile(_Written):
    """A file whose content stands in the instructions."""

    path: Annotated[str, Field(min_length=1)]
    description: str | None = None


class ReviewBlock(_Written):
    """How matched files are reviewed."""

    strategy: Strategy
    instructions: Annotated[str, Field(min_length=1)] | InstructionFile
    agent: dict[str, Persona] = {}
    additional_context: AdditionalContext = AdditionalContext()
    reference_files: Annotated[list[ReferenceFile], Field(max_length=MAX_REFERENCES)] = []
    precomputed_info_for_reviewer_bash_command: Annotated[str, Field(min_length=1, max_length=1000)] | None = None


class RuleBody(_Written):
    """One rule."""

    description: Annotated[str, Field(max_length=256)]
    match: Match
    review: ReviewBlock


class RuleFile(RootModel[dict[Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$", max_length=200)], RuleBody]]):
    """A whole `.deepreview` file: rules by name."""


@dataclass(frozen=True)
class Rule:
    """A rule, and where it stands.

    Attributes:
        file: Its `.deepreview` file, relative to the project.
        line: The line of its name.
        instructions: Their text, wherever it stands.
    """

    name: str
    file: str
    line: int
    body: RuleBody
    instructions: str

    @property
    def folder(self) -> str:
        """Its file's folder, relative to the project: empty for the project itself."""
        return posixpath.dirname(self.file)

    @property
    def place(self) -> str:
        """Where it stands, as editors read it."""
        return f"{self.file}:{self.line}"

    @property
    def title(self) -> str:
        """Its name, with the last part of its folder."""
        return f"{posixpath.basename(self.folder)}/{self.name}" if self.folder else self.name


@dataclass(frozen=True)
class BrokenFile:
    """A `.deepreview` file that cannot be used; `message` has a line for each problem."""

    file: str
    message: str


def read_rules(root: Path, file: str) -> list[Rule] | BrokenFile:
    """Read one file; whatever is wrong with it is told, and concerns no other file."""
    try:
        document, written = _parse(read_regular(file, [root], limit=MAX_FILE))
        return [_rule(root, file, document, name, body) for name, body in written.items()]
    except DocumentError as error:
        return BrokenFile(file, error.at(file))
    except (PathRefused, OSError) as error:
        return BrokenFile(file, f"{file}: {why(error)}")


@lru_cache(maxsize=1024)
def _parse(content: bytes) -> tuple[Document, dict[str, RuleBody]]:
    """Parse a file once for as long as it stays as it is."""
    document = read_document(content)
    return document, document.validate(RuleFile).root


def why(error: PathRefused | OSError) -> str:
    """Say why a file cannot be used, without naming a place of this machine."""
    return error.message if isinstance(error, PathRefused) else (error.strerror or "cannot be read")


def _rule(root: Path, file: str, document: Document, name: str, body: RuleBody) -> Rule:
    given = body.review.instructions
    if isinstance(given, str):
        text = given
    else:
        line = document.line(name, "review", "instructions", "file")
        text = _read_text(root, posixpath.join(posixpath.dirname(file), given.file), given.file, line)
    return Rule(name, file, document.line(name) or 1, body, text)


def _read_text(root: Path, path: str, shown: str, line: int | None) -> str:
    try:
        return read_regular(path, [root], limit=MAX_INSTRUCTIONS).decode()
    except UnicodeDecodeError:
        problem = "is not UTF-8"
    except FileNotFoundError:
        problem = "does not exist"
    except (PathRefused, OSError) as error:
        problem = why(error)
    raise DocumentError(Problem(f"the instructions file {shown!r} {problem}", line))
