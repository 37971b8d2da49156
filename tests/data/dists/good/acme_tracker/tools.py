"""Tools of every kind: sync and async, with and without `ToolCall`, one for each kind of result."""

from __future__ import annotations

import threading
from typing import Annotated

import anyio
from pydantic import BaseModel, Field

from deepwork.api import ToolCall
from deepwork.errors import ToolError


class Greeting(BaseModel):
    text: str
    principal: str
    to: list[str] = []


def greeter(greeting):
    async def greet(name: Annotated[str, Field(description="Whom to greet")], call: ToolCall) -> Greeting:
        """Greet a person."""
        return Greeting(text=f"{greeting} {name}", principal=call.principal)

    return greet


def where(call: ToolCall) -> dict[str, str]:
    """Return the thread that this runs in, and its principal."""
    return {"thread": threading.current_thread().name, "principal": call.principal}


def text() -> str:
    """Return text."""
    return "plain text"


async def nothing() -> list[str]:
    """Return an empty list."""
    return []


def job_counter(engine):
    def jobs() -> int:
        """Count the jobs."""
        return len(engine.catalogue.list().jobs)

    return jobs


def gate_reader(engine):
    def gate() -> dict[str, int | bool] | None:
        """Tell how the quality gate is set; null without a gate."""
        gate = engine.gate
        if gate is None:
            return None
        return {
            "external": gate.cli is not None,
            "max_inline_files": gate.max_inline_files,
            "timeout": gate.timeout,
            "max_attempts": gate.max_attempts,
        }

    return gate


async def refuse() -> str:
    """Refuse."""
    raise ToolError("not today", hint="Come back tomorrow.")


def crash() -> str:
    """Crash."""
    raise ZeroDivisionError("a secret of the server")


async def wait(path: str) -> str:
    """Report by a named pipe that the call has arrived, then wait for ever."""
    await anyio.Path(path).write_text("arrived")
    await anyio.sleep_forever()
    return "never"


def about() -> str:
    """Tell about Acme."""
    return "All about Acme"


async def item(item: str, call: ToolCall) -> str:
    """Tell about an item."""
    return f"{item} for {call.principal}"
