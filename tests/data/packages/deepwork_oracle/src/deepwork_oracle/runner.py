"""Runs the program `oracle`: rules and work on stdin, a verdict as JSON on stdout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

from deepwork.api import (
    NeedsTrust,
    NeedsWork,
    Passed,
    ReviewRequest,
    ReviewRunner,
    allowed_environment,
    read_verdict,
    run_program,
    verdict_schema,
)
from deepwork.errors import BadVerdict, RunnerError
from pydantic import BaseModel


class OracleSettings(BaseModel, extra="forbid", frozen=True):
    """What can be set under `plugins.settings.oracle`."""

    command: Annotated[str, NeedsTrust()] = "oracle"


class OracleRunner(ReviewRunner):
    """One process for each review."""

    def __init__(self, settings: OracleSettings, environment: Mapping[str, str]) -> None:
        self._command = settings.command
        self._environment = allowed_environment(environment, ("ORACLE_*",))

    async def review(self, request: ReviewRequest) -> Passed | NeedsWork:
        """Run the program once."""
        criteria = [f"{name}: {question}" for name, question in request.criteria.items()]
        schema = f"Answer by this JSON Schema: {json.dumps(verdict_schema(request.criteria))}"
        rules = ["Judge strictly by these criteria.", *criteria, request.how_to_read, request.guidance or "", schema]
        completed = await run_program(
            [self._command, "--json"],
            cwd=request.files_root,
            environment=self._environment,
            seconds=request.seconds,
            stdin="\n\n".join([*rules, request.payload, request.notes or ""]).encode(),
            project=request.project_root,
        )
        if completed.returncode:
            raise RunnerError(f"oracle ended with code {completed.returncode}: {completed.stderr[-500:]!r}")
        try:
            answer = json.loads(completed.stdout)
        except ValueError:
            raise BadVerdict(f"oracle printed no JSON: {completed.stdout[:500]!r}") from None
        return read_verdict(answer)
