"""Check what an agent submits against what the step declares (JOBS-REQ-001.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deepwork.errors import OutputError, PathRefused
from deepwork.models.jobs import StepOutput
from deepwork.workspace import is_utf8, open_regular

MAX_PATHS = 1000


def check_outputs(
    submitted: Mapping[str, Any], declared: Mapping[str, StepOutput], roots: Sequence[Path]
) -> dict[str, str | list[str]]:
    """Check names, then presence, then types, then files.

    Raises:
        OutputError: What is wrong first, with the output, what was given and what would be right.
    """
    unknown = sorted(set(submitted) - set(declared))
    if unknown:
        valid = ", ".join(sorted(declared)) or "none: submit {}"
        raise OutputError(f"Unknown outputs: {', '.join(unknown)}. Declared outputs: {valid}")
    missing = sorted(name for name, output in declared.items() if output.required and name not in submitted)
    if missing:
        raise OutputError(f"Missing required outputs: {', '.join(missing)}")
    for name, value in submitted.items():
        _check_type(name, value, declared[name])
    for name, value in submitted.items():
        for path in value if isinstance(value, list) else [value]:
            _check_file(name, path, roots)
    return dict(submitted)


def _check_type(name: str, value: object, output: StepOutput) -> None:
    kind = type(value).__name__
    if output.type == "file" and not isinstance(value, str):
        raise OutputError(f"Output {name!r} is declared as type 'file': give one path as a string, not {kind}")
    if output.type == "files":
        if not isinstance(value, list):
            raise OutputError(f"Output {name!r} is declared as type 'files': give a list of paths, not {kind}")
        for element in value:
            if not isinstance(element, str):
                found = type(element).__name__
                raise OutputError(f"Output {name!r} is declared as type 'files': each path is a string, not {found}")
        if not value and output.required:
            raise OutputError(f"Output {name!r} is required: give at least one path, not an empty list")
        if len(value) > MAX_PATHS:
            raise OutputError(f"Output {name!r} has {len(value):,} paths; the limit is {MAX_PATHS:,}")


def _check_file(name: str, path: str, roots: Sequence[Path]) -> None:
    shown = path if len(path) <= 200 else f"{path[:199]}…"
    try:
        if not is_utf8(path):
            raise PathRefused("is not UTF-8, which no reply could carry")
        with open_regular(path, roots):
            return
    except FileNotFoundError:
        raise OutputError(
            f"Output {name!r}: file not found at {shown!r}; paths are relative to the project, or absolute",
            hint="Write the file first, then call finished_step again.",
        ) from None
    except PathRefused as error:
        raise OutputError(f"Output {name!r}: {shown!r} {error.message}; give a regular file in the project") from None
