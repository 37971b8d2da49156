"""Check what an agent submits against what the step declares (JOBS-REQ-001.5)."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from deepwork.errors import OutputError, PathRefused, UnknownOutputs
from deepwork.files.paths import is_utf8, open_regular
from deepwork.files.workspace import Workspace
from deepwork.models.jobs import StepOutput
from deepwork.models.outputs import KINDS, Outputs
from deepwork.text.foreign import quoted, visible

MAX_PATH = 200

_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
# What is often given for a path: its form, what it is, and the cure.
_FORMS = (
    (re.compile(r"\n"), "this is text, not a path", "Write the text to a file, and give its path."),
    (re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://"), "this is a URL, not a path", "Save it to a file, and give its path."),
    (
        re.compile(r"^\s*[\[{].*[\]}]\s*$"),
        "this is JSON in a string, not a path",
        "Give the value itself.",
    ),
    (re.compile(r"^~"), "'~' is not replaced by a folder", "Give the path in full."),
    (re.compile(r"\$\w|\$\{|%\w+%"), "variables are not replaced", "Give the path in full."),
    (re.compile(r"[*?\[]"), "patterns are not expanded", "Name each file."),
    (
        re.compile(r"\\"),
        "folders are separated by '/'",
        "Give the path with '/', once the file is there.",
    ),
    (re.compile(r"/$"), "it ends with '/', as only a folder does", "Give the path of a file."),
    (re.compile(r"[,;] ?\S"), "one string is one path", "Give one path; for type 'files' a list of them."),
)


class CheckedOutputs(NamedTuple):
    """Outputs with their paths as they were resolved, and what the agent should know about them."""

    outputs: Outputs
    notices: list[str]


def check_outputs(
    submitted: Mapping[str, Any], declared: Mapping[str, StepOutput], workspace: Workspace, *, owner: str
) -> CheckedOutputs:
    """Check names, then presence, then types, then files. Every error names the step.

    Args:
        submitted: What the agent has sent.
        declared: What the step declares.
        workspace: The project in which the files lie.
        owner: The step in words, for errors.

    Raises:
        OutputError: What is wrong first, with the output, what was given, what would be right, and the owner.
    """
    try:
        return _checked(submitted, declared, workspace)
    except OutputError as error:
        error.message = f"{error.message} ({owner})"
        raise


def _checked(submitted: Mapping[str, Any], declared: Mapping[str, StepOutput], workspace: Workspace) -> CheckedOutputs:
    unknown = sorted(set(submitted) - set(declared))
    if unknown:
        valid = visible(", ".join(sorted(declared))) or "none: submit {}"
        raise UnknownOutputs(f"Unknown outputs: {visible(', '.join(unknown))}. Declared outputs: {valid}", unknown)
    missing = sorted(name for name, output in declared.items() if output.required and name not in submitted)
    if missing:
        raise OutputError(f"Missing required outputs: {visible(', '.join(missing))}")
    for name, value in submitted.items():
        KINDS[declared[name].type].check(name, value, required=declared[name].required)
    outputs: Outputs = {}
    notices: list[str] = []
    for name, value in submitted.items():
        kind = KINDS[declared[name].type]
        files = [_resolve(name, path, workspace) for path in kind.files(value)]
        outputs[name] = kind.with_files([file.path for file in files])
        notices += [f"Output {name!r}: {file.path!r} is an empty file." for file in files if file.is_empty]
    return CheckedOutputs(outputs, notices)


class _File(NamedTuple):
    path: str
    is_empty: bool


def _resolve(name: str, path: str, workspace: Workspace) -> _File:
    """Open a file, and give its path as it was resolved."""
    try:
        if not is_utf8(path):
            raise PathRefused("is not UTF-8, which no reply could carry")
        with open_regular(path, workspace.output_roots) as (resolved, descriptor):
            if path.endswith("/"):
                raise PathRefused(f"ends with '/', as only a folder does; give {path.rstrip('/')!r}")
            return _File(workspace.shown(resolved), os.fstat(descriptor).st_size == 0)
    except FileNotFoundError:
        raise _not_found(name, path, workspace) from None
    except PathRefused as error:
        raise OutputError(f"Output {name!r}: {quoted(path, MAX_PATH)} {_reason(error, path, workspace)}") from None


def _not_found(name: str, path: str, workspace: Workspace) -> OutputError:
    """Say what a path is that names no file, and the cure: only a plain path is cured by writing the file."""
    message = f"Output {name!r}: file not found at {quoted(path, MAX_PATH)}"
    reason, cure = next(((reason, cure) for form, reason, cure in _FORMS if form.search(path)), (None, None))
    meant = next((similar for similar in _similar(path) if similar != path and _exists(similar, workspace)), None)
    if meant:
        because = f": {reason}" if reason else ""
        return OutputError(f"{message}{because}", hint=f"{meant!r} is there; call again with that.")
    if reason:
        return OutputError(f"{message}: {reason}", hint=cure)
    return OutputError(
        f"{message}; paths are relative to the project, or absolute; the project is {workspace.root}",
        hint="Write the file first, then call finished_step again.",
    )


def _similar(path: str) -> Iterator[str]:
    """Give the paths that may have been meant: with the separator of this system, and without what surrounds a path."""
    yield path.replace("\\", "/")
    yield path.strip().strip("`'\"@<>()[]")
    # macOS writes accents as characters of their own, which look the same.
    yield unicodedata.normalize("NFC", path)
    yield unicodedata.normalize("NFD", path)
    yield "".join(char for char in path if unicodedata.category(char) != "Cf")


def _reason(error: PathRefused, path: str, workspace: Workspace) -> str:
    root = str(workspace.root)
    if _WINDOWS.match(path):
        return f"is a path of Windows; give it relative to the project, {root}, with '/'"
    lexical = os.path.normpath(os.path.join(root, path))
    leads_out = error.message.startswith("lies outside") and lexical.startswith(f"{root}{os.sep}")
    if leads_out:
        return "is, or lies behind, a link that leads out of the project; give a file in the project"
    if error.message.startswith("lies outside"):
        return f"{error.message}; give a file in the project, {root}"
    return error.message if "; give " in error.message else f"{error.message}; give a file in the project"


def _exists(path: str, workspace: Workspace) -> bool:
    try:
        with open_regular(path, workspace.output_roots):
            return True
    except (PathRefused, OSError):
        return False
