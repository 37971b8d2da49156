"""Tools with types without a schema, beside a good one."""

from deepwork import hookimpl
from deepwork.api import ToolSet, ToolSpec


class Thing:
    """Pydantic knows nothing of it."""


def take(thing: Thing) -> str:
    """Take a thing."""
    return str(thing)


def spread(*things) -> str:
    """Take any number of things."""
    return str(things)


def echo(text: str) -> str:
    """Return the same text."""
    return text


@hookimpl
def deepwork_tool_sets():
    specs = [ToolSpec(fn.__name__, fn, title=fn.__name__, output="text") for fn in (take, spread, echo)]
    yield ToolSet("things", specs, prefix="things_")
