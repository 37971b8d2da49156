"""Check what an agent submits against what the step declares (JOBS-REQ-001.5)."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from deepwork.errors import OutputError, PathRefused, UnknownOutputs
from deepwork.gate.fingerprints import content_digest
from deepwork.gate.snapshot import Snapshot
from deepwork.models.jobs import StepOutput
from deepwork.models.outputs import KINDS, Outputs
from deepwork.paths.paths import is_utf8, open_regular
from deepwork.paths.workspace import Workspace
from deepwork.text import quoted, visible

MAX_PATH = 200
MAX_NAMED = 20

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


# Of more files than these, and of larger ones, no digest is noted: a call must not wait for them.
MAX_DIGESTS = 50
MAX_DIGEST_BYTES = 4 * 1024 * 1024


class CheckedOutputs(NamedTuple):
    """Outputs with their paths as they were resolved.

    Attributes:
        notices: What the agent should know about them.
        digests: What tells the contents of the files from any others, by path.
    """

    outputs: Outputs
    notices: list[str]
    digests: dict[str, str]


def check_outputs(
    submitted: Mapping[str, Any],
    declared: Mapping[str, StepOutput],
    workspace: Workspace,
    *,
    owner: str,
    copied: Snapshot | None = None,
) -> CheckedOutputs:
    """Check names, then presence, then types, then files. Every error names the owner: the step in words.

    `copied` gets a copy of each file, taken of the very file that was checked; None if nothing will be judged.

    Raises:
        OutputError: What is wrong first, with the output, what was given, what would be right, and the owner.
    """
    try:
        return _checked(submitted, declared, workspace, copied)
    except OutputError as error:
        error.message = f"{error.message} ({owner})"
        raise


def _checked(
    submitted: Mapping[str, Any],
    declared: Mapping[str, StepOutput],
    workspace: Workspace,
    copied: Snapshot | None,
) -> CheckedOutputs:
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
    files: dict[str, _File] = {}
    notices: list[str] = []
    for name, value in submitted.items():
        kind = KINDS[declared[name].type]
        paths = []
        for path in kind.files(value):
            file = _file(name, path, workspace, copied, is_noted=len(files) < MAX_DIGESTS)
            files.setdefault(file.path, file)
            paths.append(file.path)
            if file.size == 0:
                notices.append(f"Output {name!r}: {file.path!r} is an empty file.")
        outputs[name] = kind.with_files(paths)
    return CheckedOutputs(outputs, notices, {path: file.digest for path, file in files.items() if file.digest})


def unread_inputs(paths: Sequence[str], workspace: Workspace, copied: Snapshot) -> list[str]:
    """Return a notice of the files of earlier steps that no reviewer can see; no notice if all are there.

    What was copied of them already is not opened again.
    """

    def is_read(path: str) -> bool:
        original = copied.originals.get(path)
        return bool(original.identity) if original else _exists(path, workspace)

    unread = [quoted(path, MAX_PATH) for path in dict.fromkeys(paths) if not is_read(path)]
    if not unread:
        return []
    more = f" and {len(unread) - MAX_NAMED} more" if len(unread) > MAX_NAMED else ""
    return [
        f"Reviewed without input files that are missing or cannot be read: {', '.join(unread[:MAX_NAMED])}{more}. "
        "Tell the user if this step needs them."
    ]


class _File(NamedTuple):
    path: str
    size: int
    digest: str | None


def _file(name: str, path: str, workspace: Workspace, copied: Snapshot | None, *, is_noted: bool) -> _File:
    """Open a file once: to resolve its path, to copy it if it will be judged, and to digest it unless it is large."""
    roots = workspace.output_roots
    try:
        if not is_utf8(path):
            raise PathRefused("is not UTF-8, which no reply could carry")
        with open_regular(path, roots) as (resolved, descriptor):
            if path.endswith("/"):
                raise PathRefused(f"ends with '/', as only a folder does; give {path.rstrip('/')!r}")
            path_shown, size = workspace.shown(resolved), os.fstat(descriptor).st_size
            is_noted = is_noted and size <= MAX_DIGEST_BYTES
            digest = None
            if copied:
                original = copied.add(path_shown, roots, descriptor)
                digest = original.digest if original.identity and is_noted else None
            elif is_noted:
                with suppress(OSError):
                    digest = content_digest(descriptor)
            return _File(path_shown, size, digest)
    except FileNotFoundError:
        raise _not_found(name, path, workspace) from None
    except PathRefused as error:
        raise OutputError(f"Output {name!r}: {quoted(path, MAX_PATH)} {_reason(error, path, workspace)}") from None


def _not_found(name: str, path: str, workspace: Workspace) -> OutputError:
    """Return the error for a path without a file, and its cure: only a plain path is cured by writing the file."""
    message = f"Output {name!r}: file not found at {quoted(path, MAX_PATH)}"
    reason, cure = next(((reason, cure) for form, reason, cure in _FORMS if form.search(path)), (None, None))
    candidate = next((similar for similar in _similar(path) if similar != path and _exists(similar, workspace)), None)
    if candidate:
        because = f": {reason}" if reason else ""
        return OutputError(f"{message}{because}", hint=f"{candidate!r} is there; call again with that.")
    if reason:
        return OutputError(f"{message}: {reason}", hint=cure)
    return OutputError(
        f"{message}; paths are relative to the project, or absolute; the project is {workspace.root}",
        hint="Write the file first, then call finished_step again.",
    )


def _similar(path: str) -> Iterator[str]:
    """Yield similar paths: with the separator of this system, and without quotes and brackets."""
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
