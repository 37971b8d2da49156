"""Commands that run only as their user has trusted them, files of the project that they name included."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from deepwork.errors import PathRefused, ProgramMissing
from deepwork.ports.context import TrustedCommand
from deepwork.programs.copies import ProjectFile, named_files, private_copies
from deepwork.programs.programs import find_program
from deepwork.project.trust import Trust, TrustRequest


@contextmanager
def trusted_copies(
    command: TrustedCommand, project: Path, trust: Trust, *, owner: str, work: Collection[str] = ()
) -> Iterator[list[str] | None]:
    """Yield the arguments of a command for one run; None if the user has not trusted its present form.

    Files of the work are neither trusted content nor copied: what was trusted counts without them.

    Raises:
        ProgramMissing: It names a file that can never run.
    """
    try:
        files = named_files(command.arguments, project)
    except PathRefused as error:
        raise ProgramMissing(f"{command.arguments[0]!r} cannot be started: {error.message}") from error
    own = {number: file for number, file in files.items() if file.path not in work or not number}
    request, shown = _request(command, own, owner), _request(command, files, owner)
    is_trusted = request is None or trust.allows_request(request) or trust.allows_apart_from(shown, own.values())
    if not is_trusted:
        yield None
        return
    files = own
    with private_copies(command.arguments, files) as arguments:
        yield arguments


def pending_request(command: TrustedCommand, project: Path, trust: Trust, *, owner: str) -> TrustRequest | None:
    """Return what the user has to trust before a command can run; None if nothing is missing.

    Raises:
        PathRefused: It names a file that can never run.
    """
    request = _request(command, named_files(command.arguments, project), owner)
    return None if request is None or trust.allows_request(request) else request


def obstacle(command: TrustedCommand, project: Path, environment: Mapping[str, str]) -> str | None:
    """Return why a command can never run as it is written, trusted or not; None if it can."""
    try:
        files = named_files(command.arguments, project)
        if command.arguments[0] and 0 not in files:
            find_program(command.arguments[0], environment, project)
    except (PathRefused, ProgramMissing) as error:
        return error.message
    return None


def _request(command: TrustedCommand, files: dict[int, ProjectFile], owner: str) -> TrustRequest | None:
    if not (files or command.needs_trust):
        return None
    label = command.label if command.label.startswith("setting ") else f"{owner}: {command.label}"
    content = {"run": list(command.arguments), **command.more}
    return TrustRequest(label, content, {file.path: file for file in files.values()})
