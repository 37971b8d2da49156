"""Check what an agent submits against what the step declares (JOBS-REQ-001.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deepwork.errors import OutputError, PathRefused
from deepwork.files.paths import is_utf8, open_regular
from deepwork.models.jobs import StepOutput
from deepwork.models.outputs import KINDS, Outputs


def check_outputs(submitted: Mapping[str, Any], declared: Mapping[str, StepOutput], roots: Sequence[Path]) -> Outputs:
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
        KINDS[declared[name].type].check(name, value, required=declared[name].required)
    for name, value in submitted.items():
        for path in KINDS[declared[name].type].files(value):
            _check_file(name, path, roots)
    return dict(submitted)


def _check_file(name: str, path: str, roots: Sequence[Path]) -> None:
    short_path = path if len(path) <= 200 else f"{path[:199]}…"
    try:
        if not is_utf8(path):
            raise PathRefused("is not UTF-8, which no reply could carry")
        with open_regular(path, roots):
            return
    except FileNotFoundError:
        raise OutputError(
            f"Output {name!r}: file not found at {short_path!r}; paths are relative to the project, or absolute",
            hint="Write the file first, then call finished_step again.",
        ) from None
    except PathRefused as error:
        raise OutputError(
            f"Output {name!r}: {short_path!r} {error.message}; give a regular file in the project"
        ) from None
