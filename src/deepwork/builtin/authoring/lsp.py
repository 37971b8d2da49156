"""`deepwork jobs lsp`: a language server for job files, on the linter and the reader of everybody else."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from deepwork import __version__
from deepwork.api import Job, JobReading, Step, project_at
from deepwork.builtin.authoring import symbols
from deepwork.builtin.authoring.findings import JobFinding
from deepwork.builtin.authoring.job_tests import SUFFIX, files_in, parsed_test, unknown_names
from deepwork.builtin.authoring.lint import LintedJob
from deepwork.builtin.authoring.symbols import Symbol, Use
from deepwork.documents.document import Document
from deepwork.documents.load import read_document
from deepwork.documents.problems import DocumentError, Problem
from deepwork.errors import DeepWorkError, PathRefused
from deepwork.foreign import forget_ended
from deepwork.models.jobs import FILE_NAME, MAX_INSTRUCTIONS
from deepwork.paths.paths import read_regular
from deepwork.text import yaml_text

if TYPE_CHECKING:
    from pygls.workspace import TextDocument

SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "info": lsp.DiagnosticSeverity.Information,
}
NAME = re.compile(r"[a-z][a-z0-9_]*")
MAX_HOVER = 20_000
CONFIG = "config.yml"
_KEY = re.compile(r"^(\s*)(?:- )?(\w+):")


class JobServer:
    """What the server knows besides the open documents."""

    def __init__(self) -> None:
        self.server = LanguageServer("deepwork", __version__)
        self._shown: dict[Path, set[str]] = {}
        self._last_good: dict[Path, Document] = {}

    # Documents and jobs

    def documents(self) -> dict[Path, TextDocument]:
        """Return the documents that are open, by their paths."""
        return {path_of(uri): document for uri, document in self.server.workspace.text_documents.items()}

    def text(self, path: Path) -> str | None:
        """Return the text of a file as the editor has it, else as it is on the disk."""
        document = self.documents().get(path)
        try:
            return document.source if document else path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def document(self, path: Path) -> Document | None:
        """Return a parsed file; while it cannot be parsed, as it was when it could be."""
        text = self.text(path)
        try:
            if text is not None:
                self._last_good[path] = read_document(text.encode("utf-8", "surrogatepass"))
        except DocumentError:
            pass
        return self._last_good.get(path)

    def current(self, path: Path) -> Document | None:
        """Return a parsed file as it is now; None if it cannot be parsed."""
        text = self.text(path)
        try:
            return None if text is None else read_document(text.encode("utf-8", "surrogatepass"))
        except DocumentError:
            return None

    # Diagnostics

    def check(self, uri: str) -> None:
        """Publish what is wrong in the job of a document, for every file of it that is open or was told of."""
        path = path_of(uri)
        job_dir = job_dir_of(path)
        if job_dir is None:
            return
        opened = {file: document for file, document in self.documents().items() if job_dir_of(file) == job_dir}
        findings: dict[str, list[lsp.Diagnostic]] = {document.uri: [] for document in opened.values()}
        unsaved = {file: document.source for file, document in opened.items()}
        job = LintedJob(job_dir, unsaved)
        if isinstance(job.reading, JobReading) and job.reading.document:
            self._last_good[job.file] = job.reading.document  # names are completed from it while it cannot be parsed
        for finding in job.findings():
            if not finding.is_ignored:
                document = opened.get(finding.file)
                place = document.uri if document else finding.file.as_uri()
                findings.setdefault(place, []).append(self._diagnostic(finding))
        for file, document in opened.items():
            if file.name.endswith(SUFFIX):
                findings[document.uri] = [*map(self._problem, self._test_problems(document.source, job_dir))]
        for place in self._shown.get(job_dir, set()) - {*findings}:
            self._publish(place, [])
        for place, diagnostics in findings.items():
            self._publish(place, diagnostics)
        self._shown[job_dir] = {*findings}

    def _publish(self, uri: str, diagnostics: list[lsp.Diagnostic]) -> None:
        document = self.server.workspace.text_documents.get(uri)
        version = document.version if document else None
        parameters = lsp.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=version)
        self.server.text_document_publish_diagnostics(parameters)

    def _diagnostic(self, finding: JobFinding) -> lsp.Diagnostic:
        return lsp.Diagnostic(
            range=_whole_line(finding.line),
            message=finding.message,
            severity=SEVERITIES[finding.level],
            code=finding.rule,
            source="deepwork",
        )

    def _problem(self, problem: Problem) -> lsp.Diagnostic:
        return lsp.Diagnostic(
            range=_whole_line(problem.line),
            message=problem.text,
            severity=lsp.DiagnosticSeverity.Error,
            code="test",
            source="deepwork",
        )

    def _test_problems(self, text: str, job_dir: Path) -> list[Problem]:
        try:
            document, test = parsed_test(text.encode("utf-8", "surrogatepass"))
        except DocumentError as error:
            return error.problems
        job = self._job(job_dir)
        return [*unknown_names(test, document, job)] if job else []

    def _job(self, job_dir: Path) -> Job | None:
        text = self.text(job_dir / FILE_NAME)
        result = None if text is None else JobReading.of(text.encode("utf-8", "surrogatepass"), job_dir).result
        return result if isinstance(result, Job) else None

    # Names

    def uses(self, path: Path, job_dir: Path, *, now: bool = False) -> list[Use]:
        """Return the uses of steps and outputs in a file: of the job, of a test, or of the configuration."""
        document = self.current(path) if now else self.document(path)
        if document is None:
            return []
        if path.name == FILE_NAME:
            return [*symbols.uses_in_job(document)]
        if path.name.endswith(SUFFIX):
            return [*symbols.uses_in_test(document)]
        job = self.document(job_dir / FILE_NAME)
        name = job.data.get("name") if job and isinstance(job.data, dict) else None
        return [*symbols.uses_in_routes(document, str(name))]

    def use_at(self, parameters: Any) -> tuple[Path, Use] | None:
        """Return the job's folder and the use of a name at a place."""
        path = path_of(parameters.text_document.uri)
        line, column = self._place(parameters)
        job_dir = self._job_dir_at(path, line)
        if job_dir is None:
            return None
        use = symbols.at(self.uses(path, job_dir, now=True), line, column)
        return (job_dir, use) if use else None

    def _job_dir_at(self, path: Path, line: int) -> Path | None:
        """Return the folder of the job that a line is about; in a configuration its route names the job."""
        if path.name != CONFIG:
            return job_dir_of(path)
        lines = (self.text(path) or "").splitlines()
        begin = next((number for number in range(min(line, len(lines) - 1), -1, -1) if _begins(lines[number])), line)
        route = [*lines[begin : begin + 1], *takewhile(lambda text: not _begins(text), lines[begin + 1 :])]
        match = re.search(r"\bjob:\s*[\"']?(\w+)", "\n".join(route))
        job_dir = path.parent / "jobs" / match[1] if match else None
        return job_dir if job_dir and (job_dir / FILE_NAME).is_file() else None

    def _place(self, parameters: Any) -> tuple[int, int]:
        document = self.server.workspace.get_text_document(parameters.text_document.uri)
        position = document.position_codec.position_from_client_units(document.lines, parameters.position)
        return position.line, position.character

    def range_of(self, path: Path, use: Use) -> lsp.Range:
        """Return where a use stands, in the units of the editor."""
        lines = (self.text(path) or "").splitlines(keepends=True)
        scalar = use.scalar
        codec = self.server.workspace.position_codec
        return codec.range_to_client_units(
            lines,
            lsp.Range(lsp.Position(scalar.line, scalar.column), lsp.Position(scalar.end_line, scalar.end_column)),
        )

    def definition(self, parameters: lsp.DefinitionParams) -> lsp.Location | None:
        """Return where a step or an output is made, or the instructions file that is named."""
        job_dir = self._job_dir_at(path_of(parameters.text_document.uri), parameters.position.line)
        if job_dir is None:
            return None
        file = self._instructions_at(parameters, job_dir)
        if file:
            return lsp.Location(file.as_uri(), _whole_line(1))
        named = self.use_at(parameters)
        job_file = job_dir / FILE_NAME
        for use in self.uses(job_file, job_dir) if named else ():
            if use.is_definition and named and symbols.same(use, named[1].symbol):
                return lsp.Location(job_file.as_uri(), self.range_of(job_file, use))
        return None

    def _instructions_at(self, parameters: Any, job_dir: Path) -> Path | None:
        path = path_of(parameters.text_document.uri)
        document = self.current(path) if path.name == FILE_NAME else None
        line, column = self._place(parameters)
        for scalar in document.scalars() if document else ():
            is_there = scalar.line == line and scalar.column <= column <= scalar.end_column
            if is_there and scalar.location[-1:] == ("instructions_file",) and not scalar.is_key:
                file = job_dir / scalar.text
                return file if file.resolve().is_relative_to(job_dir.resolve()) else None
        return None

    def hover(self, parameters: lsp.HoverParams) -> lsp.Hover | None:
        """Return what the agent will read in the step of the place."""
        job_dir = self._job_dir_at(path_of(parameters.text_document.uri), parameters.position.line)
        job = self._job(job_dir) if job_dir else None
        if job is None or job_dir is None:
            return None
        steps = {step.id: step for step in job.definition.steps}
        named = self.use_at(parameters)
        step_id = (named[1].symbol.step or named[1].symbol.name) if named else ""
        file = self._instructions_at(parameters, job_dir)
        step = steps.get(step_id) or next(
            (item for item in steps.values() if file and job_dir / item.instructions_file == file), None
        )
        if step is None:
            return None
        text = self._instructions(job_dir, step.instructions_file) or "(there are no instructions yet)"
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, read_by_agent(job, step, text)[:MAX_HOVER]))

    def _instructions(self, job_dir: Path, name: str) -> str | None:
        """Return an instructions file as the editor has it, else as it is on the disk, within the job's folder."""
        document = self.documents().get(job_dir / name)
        try:
            return document.source if document else read_regular(name, [job_dir], limit=MAX_INSTRUCTIONS).decode()
        except (PathRefused, OSError, UnicodeDecodeError):
            return None

    def completion(self, parameters: lsp.CompletionParams) -> lsp.CompletionList:
        """Return the ids, outputs or runners that fit the place."""
        path = path_of(parameters.text_document.uri)
        document = self.server.workspace.get_text_document(parameters.text_document.uri)
        line, column = self._place(parameters)
        lines = document.source.splitlines()
        before = lines[line][:column] if line < len(lines) else ""
        names = self._fitting(path, lines[:line], before)
        items = [lsp.CompletionItem(label=name) for name in dict.fromkeys(names)]
        return lsp.CompletionList(is_incomplete=False, items=items)

    def _fitting(self, path: Path, above: list[str], before: str) -> Iterator[str]:
        keys = _enclosing_keys(above, before)
        key = keys[0] if keys else ""
        if key == "runner" or (path.name == CONFIG and key == "runners"):
            yield from _runners(path)
            return
        job_dir = self._job_dir_at(path, len(above))
        document = self.document(job_dir / FILE_NAME) if job_dir else None
        if document is None:
            return
        defined = [use.symbol for use in symbols.uses_in_job(document) if use.is_definition]
        step_id = _step_above(above, before)
        if key in ("from_step", "dependencies", "step") or (key == "steps" and "id" not in before):
            yield from (symbol.name for symbol in defined if symbol.kind == "step")
        elif key in ("run_each", "review"):
            yield from ("step", *(symbol.name for symbol in defined if symbol.step == step_id))
        elif key in ("file", "outputs", "verdicts"):
            own = [symbol.name for symbol in defined if symbol.kind == "output" and symbol.step == step_id]
            others = [symbol.name for symbol in defined if symbol.kind == "output" and symbol.step != step_id]
            yield from others if key == "file" else own

    def rename(self, parameters: lsp.RenameParams) -> lsp.WorkspaceEdit:
        """Rename a step or an output in the job, its tests and the routes of the configuration.

        Raises:
            JsonRpcInvalidParams: There is no name at the place, or the new one is invalid or taken.
        """
        named = self.use_at(parameters)
        if named is None:
            raise JsonRpcInvalidParams("here is neither a step nor an output that could be renamed")
        job_dir, use = named
        symbol, new = use.symbol, parameters.new_name
        if self.current(job_dir / FILE_NAME) is None:
            raise JsonRpcInvalidParams(f"{FILE_NAME} cannot be read as it is: correct it first")
        job_uses = self.uses(job_dir / FILE_NAME, job_dir, now=True)
        definitions = [item.symbol for item in job_uses if item.is_definition]
        if symbol.kind == "output" and not symbol.step:
            owners = [item.step for item in definitions if (item.kind, item.name) == ("output", symbol.name)]
            symbol = Symbol("output", symbol.name, owners[0] if len(owners) == 1 else "")
        self._check_new(symbol, new, definitions)
        config = job_dir.parent.parent / CONFIG
        files = [job_dir / FILE_NAME, *files_in([job_dir]), *([config] if config.is_file() else [])]
        written = yaml_text(new)
        changes: dict[str, list[lsp.TextEdit]] = {}
        for file in files:
            for item in self.uses(file, job_dir, now=True):
                if symbols.same(item, symbol):
                    edit = lsp.TextEdit(self.range_of(file, item), written)
                    changes.setdefault(self._uri(file), []).append(edit)
        return lsp.WorkspaceEdit(changes=changes)

    def _uri(self, path: Path) -> str:
        document = self.documents().get(path)
        return document.uri if document else path.as_uri()

    def _check_new(self, symbol: Symbol, new: str, definitions: list[Symbol]) -> None:
        if symbol.kind == "step" and not NAME.fullmatch(new):
            allowed = "lower-case letters, digits and '_', beginning with a letter"
            raise JsonRpcInvalidParams(f"{new!r} is no id of a step: {allowed}")
        if not new.strip() or (symbol.kind == "output" and (new == "step" or not new.isprintable())):
            raise JsonRpcInvalidParams(f"{new!r} is no name of an output")
        if symbol.kind == "output" and not symbol.step:
            raise JsonRpcInvalidParams(f"several steps have an output {symbol.name!r}: rename it where it is made")
        taken = Symbol(symbol.kind, new, symbol.step)
        if new != symbol.name and taken in definitions:
            raise JsonRpcInvalidParams(f"{new!r} is taken")


def read_by_agent(job: Job, step: Step, instructions: str) -> str:
    """Return what an agent reads of a step, as Markdown."""
    parts = [f"**{step.id}**: what the agent reads", instructions.strip()]
    outputs = [
        f"- `{name}` ({output.type}{'' if output.required else ', optional'}): {output.description}"
        for name, output in step.outputs.items()
    ]
    criteria = [
        f"- {review.run_each}: **{name}** {question}"
        for review in step.reviews
        for name, question in review.quality_criteria.items()
    ]
    for title, lines in (("Outputs", outputs), ("Criteria", criteria)):
        if lines:
            parts.append("\n".join([f"*{title}*", "", *lines]))
    parts.append(f"*Common*\n\n{job.definition.common_job_info_provided_to_all_steps_at_runtime.strip()}")
    return "\n\n".join(parts)


def path_of(uri: str) -> Path:
    """Return the path of a document."""
    return Path(unquote(urlsplit(uri).path))


def job_dir_of(path: Path) -> Path | None:
    """Return the folder of the job to which a file belongs."""
    if path.name == FILE_NAME:
        return path.parent
    if path.name.endswith((SUFFIX, ".md")):
        return next((folder for folder in path.parents[:3] if (folder / FILE_NAME).is_file()), None)
    return None


def _begins(line: str) -> bool:
    """True if an item of a list begins in a line."""
    return line.lstrip().startswith("-")


def _whole_line(line: int | None) -> lsp.Range:
    number = max((line or 1) - 1, 0)
    return lsp.Range(lsp.Position(number, 0), lsp.Position(number + 1, 0))


def _enclosing_keys(above: list[str], before: str) -> list[str]:
    """Return the keys in whose value a place is, the nearest first."""
    in_line = re.findall(r"([\w.]+):\s*[^,{}:]*$", before)
    if in_line:
        return in_line
    indent = len(before) - len(before.lstrip())
    keys: list[str] = []
    for line in reversed(above):
        match = _KEY.match(line)
        if match and len(match[1]) <= indent and (len(match[1]) < indent or line.rstrip().endswith(":")):
            keys.append(match[2])
            indent = len(match[1])
        if not indent:
            break
    return keys


def _step_above(above: list[str], before: str) -> str:
    """Return the id of the step in which a place is, also while the file cannot be parsed."""
    for line in (before, *reversed(above)):
        match = re.search(r"(?:^|[\s{,-])(?:id|step):\s*[\"']?(\w+)", line)
        if match:
            return match[1]
    return ""


def _runners(config: Path) -> list[str]:
    """Return the names of the reviewers that the project can choose."""
    try:
        return project_at(config.parent.parent).reviewer_names()
    except DeepWorkError:
        return ["self"]


def serve() -> None:
    """Serve on stdin and stdout until the editor says that it is enough."""
    server = language_server()
    # Whatever is loaded by now stays: to look through it for garbage takes as long as to lint a job of 5,000 lines.
    gc.freeze()
    # What is printed by others would break the protocol, and pygls closes the stream that it is given.
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(stdout), "wb") as output:
            server.start_io(stdout=output)
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def language_server() -> LanguageServer:
    """Make a server that knows no document yet."""
    jobs = JobServer()
    server = jobs.server

    def check(parameters: Any) -> None:
        jobs.check(parameters.text_document.uri)
        forget_ended(server)

    for event in (
        lsp.TEXT_DOCUMENT_DID_OPEN,
        lsp.TEXT_DOCUMENT_DID_CHANGE,
        lsp.TEXT_DOCUMENT_DID_SAVE,
        lsp.TEXT_DOCUMENT_DID_CLOSE,
    ):
        server.feature(event)(check)
    trigger = lsp.CompletionOptions(trigger_characters=[" ", "["])
    server.feature(lsp.TEXT_DOCUMENT_COMPLETION, trigger)(partial(_call, jobs.completion))
    server.feature(lsp.TEXT_DOCUMENT_HOVER)(partial(_call, jobs.hover))
    server.feature(lsp.TEXT_DOCUMENT_DEFINITION)(partial(_call, jobs.definition))
    server.feature(lsp.TEXT_DOCUMENT_RENAME)(partial(_call, jobs.rename))
    return server


def _call(method: Any, parameters: Any) -> Any:
    return method(parameters)
