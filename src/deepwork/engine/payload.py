"""The text of what is judged, with the section lines of the specification."""

from __future__ import annotations

from collections.abc import Iterable

from deepwork.models.jobs import FileInput, Step
from deepwork.models.replies import Outputs

BEGIN_INPUTS = "==================== BEGIN INPUTS ===================="
END_INPUTS = "==================== END INPUTS ===================="
BEGIN_OUTPUTS = "==================== BEGIN OUTPUTS ===================="
END_OUTPUTS = "==================== END OUTPUTS ===================="

Listed = tuple[str, str]  # path, and the output it belongs to


def review_payload(step: Step, outputs: Outputs, outputs_by_step: dict[str, Outputs]) -> str:
    """List the files of a step by path: its inputs from earlier steps, then its outputs."""
    inputs = [
        listed
        for given in step.inputs
        if isinstance(given, FileInput)
        for listed in files_of({given.file: outputs_by_step.get(given.from_step, {}).get(given.file, [])})
    ]
    parts = [_section(BEGIN_INPUTS, inputs, END_INPUTS)] if inputs else []
    parts.append(_section(BEGIN_OUTPUTS, list(files_of(outputs)), END_OUTPUTS))
    return "\n\n".join(parts)


def files_of(outputs: Outputs) -> Iterable[Listed]:
    """Flatten outputs to single files; a path that could forge a line is quoted."""
    for name, value in outputs.items():
        for path in [value] if isinstance(value, str) else value:
            yield path if path.isprintable() else ascii(path), name


def _section(begin: str, files: list[Listed], end: str) -> str:
    if not files:
        return f"{begin}\n[No files provided]\n{end}"
    count = f"{len(files)} {'file' if len(files) == 1 else 'files'}, listed by path. Read each of them:"
    lines = [f"- {path}  (output: {name})" for path, name in files]
    return "\n".join([begin, count, *lines, end])
